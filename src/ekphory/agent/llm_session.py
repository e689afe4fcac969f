"""The loop of a session with a language model, and the providers that run it."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from ekphory.agent import llm_dialogue
from ekphory.agent.dialogues import AnthropicDialogue, OpenAIDialogue
from ekphory.agent.provider import (
    AgentSettings,
    Budget,
    QueryHits,
    SearchTool,
    SessionCancelled,
    SessionFault,
    SessionOutcome,
    normalise_query,
    tell_thread,
)
from ekphory.agent_trace import (
    BRANCH,
    BranchStarted,
    EventLog,
    HopResolved,
    ModelAnswered,
    ModelRetried,
    Route,
    RouteChosen,
)
from ekphory.errors import InvalidInput
from ekphory.http_service import ServiceSettings, compute_backoff

# Runs a dialogue's coroutines in a thread of its own, so that any call of them can be ended.

Result = TypeVar("Result")
_LOOK_SECONDS = 0.1
_END_SECONDS = 5.0


class ModelThread:
    """An event loop in a thread; use it in a `with` block, which ends it and all that runs in it.

    The caller may itself run inside an event loop, and waits in slices, between which it looks
    whether there is time and somebody who waits.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Streams that were left before their end are closed here, and not when memory is cleaned.
        ending = asyncio.run_coroutine_threadsafe(self._loop.shutdown_asyncgens(), self._loop)
        wait([ending], _END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, Result], check: Callable[[], None]) -> Result:
        """Run a coroutine to its end.

        Args:
            work: The coroutine.
            check: Is called while it runs; what it raises ends the coroutine and is raised.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while True:
                check()
                try:
                    return future.result(_LOOK_SECONDS)
                except NotYet:
                    if future.done():
                        raise
        except BaseException:
            _cancel(future)
            raise


def _cancel(future: Future[Any]) -> None:
    """Cancel what still runs, and wait until it has let go of its connection."""
    future.cancel()
    try:
        future.exception(_END_SECONDS)
    except (CancelledError, NotYet):
        return


# `[StageResult]` lines: what a model says that each hop gave.

# No two repetitions side by side take the same character, and none begins a line and goes on to the
# next: a model that writes blanks without end would be read for minutes.
_LINE = re.compile(
    r"^[^\w\n]*\[StageResult[^\]\n]*\]\s*Query:(?P<query>[^|\n]+)\|\s*Answer:(?P<answer>[^|\n]*)"
    r"(?:\|\s*Confidence:(?P<confidence>[^|\n]*))?"
    r"(?:\|\s*Reason:(?P<reason>[^\n]*))?$",
    re.MULTILINE | re.IGNORECASE,
)
_NUMBER = re.compile(r"(?P<number>-?(?:\d{1,9}(?:\.\d{0,20})?|\.\d{1,20}))(?P<percent> ?%)?")
_INSUFFICIENT = re.compile(r"^[^\w\n]*sufficient\W+no\b", re.MULTILINE | re.IGNORECASE)
_LONGEST_QUERY, _LONGEST_ANSWER, _LONGEST_REASON = 400, 400, 300
_MOST = 16


@dataclass(frozen=True, slots=True)
class FinalWords:
    """What a model ended with.

    Attributes:
        response: Its words without the lines about hops.
        sufficient: Whether it holds the evidence to be enough.
        hops: The hops in order.
    """

    response: str
    sufficient: bool
    hops: tuple[HopResolved, ...]


def read_final_words(text: str, found: Sequence[QueryHits]) -> FinalWords:
    """Read a model's last message.

    A hop's memories are those that its query found and that name its answer, the best three; of a
    model that tells no hops, every query is one, and its evidence the best memory.
    """
    hops = [
        _read_hop(place, line, found) for place, line in enumerate(_LINE.finditer(text), start=1)
    ]
    fruitful = [each for each in found if each.hits]
    untold = [_make_hop(place, each) for place, each in enumerate(fruitful, start=1)]
    response = _LINE.sub("", text).strip()
    return FinalWords(response, not _INSUFFICIENT.search(text), tuple(hops[:_MOST] or untold))


def _read_hop(place: int, line: re.Match[str], found: Sequence[QueryHits]) -> HopResolved:
    query = line["query"].strip()[:_LONGEST_QUERY]
    answer = line["answer"].strip()[:_LONGEST_ANSWER]
    return HopResolved(
        branch=1,
        hop=place,
        query=query,
        answer=answer,
        confidence=_probability(line["confidence"]),
        reason=(line["reason"] or "").strip()[:_LONGEST_REASON] or "the model says so",
        memory_ids=_find_stating(query, answer, found),
    )


def _make_hop(place: int, found: QueryHits) -> HopResolved:
    best = found.hits[0]
    return HopResolved(
        branch=1,
        hop=place,
        query=found.query[:_LONGEST_QUERY],
        answer="",
        confidence=round(best.score, 4),
        reason="the best memory of a query",
        memory_ids=(best.id,),
    )


def _find_stating(query: str, answer: str, found: Sequence[QueryHits]) -> tuple[str, ...]:
    asked = normalise_query(query)
    lists = [each.hits for each in found if normalise_query(each.query) == asked]
    hits = [hit for hits in lists or [each.hits for each in found] for hit in hits]
    stating = [hit.id for hit in hits if answer and answer.lower() in hit.memory.text.lower()]
    if not stating and lists:
        stating = [hits[0].id] if hits else []
    return tuple(dict.fromkeys(stating))[:3]


def _probability(given: str | None) -> float:
    """Read "0.9" and "90 %"; a word says neither yes nor no."""
    said = _NUMBER.search(given or "")
    if said is None:
        return 0.5
    number = float(said["number"]) / (100 if said["percent"] else 1)
    return min(max(number, 0.0), 1.0)


# The loop of a session with a language model: it asks, the tool answers, until it has enough.

_log = logging.getLogger("ekphory.agent")
ATTEMPTS = 4
"""How often one message is asked for."""
_FIRST_WAIT = 1.0
"""Seconds before the first repeat, doubled each time."""
_LOOP_LOOK_SECONDS = 0.05


Dialogue = OpenAIDialogue | AnthropicDialogue
"""A conversation with a model at a service, which keeps what was said. Asking again after a fault
gives the same answers."""


@dataclass(frozen=True, slots=True)
class SessionLoop:
    """One session with a model.

    Attributes:
        dialogue: The conversation with the model.
        calls: Answers its calls.
        log: Where everything is told.
        spec: How many messages it may write.
        settings: How long it may wait before a repeat.
    """

    dialogue: Dialogue
    calls: llm_dialogue.ToolCalls
    log: EventLog
    spec: llm_dialogue.AgentSpec
    settings: AgentSettings

    def run(self, question: str) -> SessionOutcome:
        """Hold the session.

        Raises:
            SessionFault: It cannot go on.
        """
        with ModelThread() as thread:
            try:
                words = self._final_words(thread)
            except SessionFault:
                self._tell(question, read_final_words("", self.calls.tool.found), status="failed")
                raise
            finally:
                thread.run(self.dialogue.close(), lambda: None)
        self._tell(question, words, status="success")
        confidence = min((hop.confidence for hop in words.hops), default=0.0)
        return SessionOutcome(words.response, words.sufficient, confidence)

    def _final_words(self, thread: ModelThread) -> FinalWords:
        answers: list[llm_dialogue.ToolAnswer] = []
        for number in range(1, self.spec.max_steps + 1):
            turn = self._asked(thread, number, answers)
            if turn.refusal is not None:
                raise SessionFault("invalid_agent_output", f"the model refused: {turn.refusal}")
            if not turn.calls:
                if not self.calls.tool.found:
                    raise SessionFault("missing_tool_call", "the model answered without a search")
                return read_final_words(turn.text, self.calls.tool.found)
            answers = [self.calls.answer(call) for call in turn.calls]
        raise SessionFault("max_steps_exceeded", f"the model wrote {self.spec.max_steps} messages")

    def _asked(
        self, thread: ModelThread, number: int, answers: Sequence[llm_dialogue.ToolAnswer]
    ) -> llm_dialogue.ModelTurn:
        """Ask for the next message, again after faults that may pass."""
        started = time.perf_counter()
        for attempt in range(1, ATTEMPTS + 1):
            asking = self.dialogue.answer(answers, must_search=not self.calls.tool.found)
            try:
                turn = thread.run(asking, self._budget.check_time)
            except llm_dialogue.ModelFault as fault:
                self._wait(fault, number, attempt)
                continue
            except (SessionFault, SessionCancelled):
                raise
            except Exception as error:  # noqa: BLE001  a boundary to code that is not ours
                # An SDK lets errors of its transport through, such as a stream that breaks off.
                _log.info("the provider's SDK raised", exc_info=error)
                self._wait(
                    llm_dialogue.ModelFault(type(error).__name__, may_pass=True), number, attempt
                )
                continue
            took = (time.perf_counter() - started) * 1000
            tokens = {"input_tokens": turn.input_tokens, "output_tokens": turn.output_tokens}
            self.log.add(ModelAnswered(turn=number, attempts=attempt, milliseconds=took, **tokens))
            return turn
        raise SessionFault("downstream_tool_failure", f"{ATTEMPTS} attempts failed")

    def _wait(self, fault: llm_dialogue.ModelFault, number: int, attempt: int) -> None:
        """Wait before a repeat.

        Raises:
            SessionFault: Repeating is useless, or there is no time for it.
        """
        settings = ServiceSettings(
            backoff=_FIRST_WAIT, longest_wait=self.settings.agent_session_max_retry_interval_seconds
        )
        wait = compute_backoff(attempt - 1, retry_after=fault.retry_after, settings=settings)
        if not fault.may_pass or attempt == ATTEMPTS or wait >= self._budget.seconds_left:
            raise SessionFault("downstream_tool_failure", fault.problem) from fault
        self.log.add(
            ModelRetried(turn=number, attempt=attempt, wait_seconds=wait, problem=fault.problem)
        )
        until, nobody = time.monotonic() + wait, threading.Event()
        while (left := until - time.monotonic()) > 0:
            self._budget.check_time()
            nobody.wait(min(left, _LOOP_LOOK_SECONDS))

    def _tell(self, question: str, words: FinalWords, *, status: str) -> None:
        """Tell the way that the session took, and its hops."""
        searches = self.calls.tool.found
        is_chain = len(searches) > 1 or len(words.hops) > 1
        route: Route = "coq" if is_chain else "memmachine_search"
        note = f"the model made {len(searches)} searches"
        self.log.add(RouteChosen(route=route, reason_code="model", reason_note=note))
        if not is_chain:
            return
        self.log.add(BranchStarted(branch=1, query=question), actor=BRANCH)
        is_resolved = status == "success" and words.sufficient
        tell_thread(self.log, question, words.hops, is_resolved=is_resolved)

    @property
    def _budget(self) -> Budget:
        return self.calls.tool.budget


# The provider that lets a language model decide on the queries.

_BUNDLE = ("retrieve_agent", "coq")


class ModelProvider:
    """A session with a model behind OpenAI's Responses API or Anthropic's Messages API."""

    def __init__(self, settings: AgentSettings) -> None:
        """Check the settings; nothing is sent yet.

        Raises:
            InvalidInput: No language model is configured, or it has no key.
            MissingExtra: The YAML reader is not installed.
        """
        self.name = settings.provider
        self._settings = settings
        model = settings.llm_model
        if self.name == "anthropic":
            if not settings.anthropic_api_key:
                problem = "the provider anthropic needs one"
                remedy = "Give it, as $ANTHROPIC_API_KEY for example"
                raise InvalidInput("anthropic_api_key", None, problem, remedy)
        elif model is None:
            problem = "the provider openai needs a language model"
            remedy = "Name one of resources.language_models"
            raise InvalidInput("llm_model", None, problem, remedy)
        elif not model.holds_sessions:
            problem = f"is of the provider {model.provider}, which holds no session of an agent"
            remedy = "Name one of the provider openai-responses, or take the provider local"
            raise InvalidInput("llm_model", model.id, problem, remedy)
        elif not model.api_key:
            problem = f"the language model {model.id!r} has none"
            remedy = "Give it in resources.language_models, as $OPENAI_API_KEY for example"
            raise InvalidInput("api_key", None, problem, remedy)
        self._specs = tuple(llm_dialogue.load_spec(name) for name in _BUNDLE)

    def run(self, question: str, tool: SearchTool, log: EventLog) -> SessionOutcome:
        """Hold the session.

        Raises:
            SessionFault: It cannot go on.
        """
        settings, spec = self._settings, self._specs[0]
        if self.name == "anthropic" or settings.llm_model is None:
            calls = llm_dialogue.ToolCalls(tool, spec.max_return_len)
            anthropic = AnthropicDialogue(question, settings, self._specs)
            return SessionLoop(anthropic, calls, log, spec, settings).run(question)
        with llm_dialogue.lay_out(self._specs, settings.agent_native_bundle_root) as bundle:
            local = settings.openai_native_agent_environment == "local"
            calls = llm_dialogue.ToolCalls(tool, spec.max_return_len, bundle if local else None)
            openai = OpenAIDialogue(question, settings.llm_model, settings, bundle)
            return SessionLoop(openai, calls, log, spec, settings).run(question)
