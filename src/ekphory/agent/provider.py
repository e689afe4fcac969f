"""Who decides on the queries of a session, and within what limits."""

from __future__ import annotations

import math
import re
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from ekphory import agent_trace
from ekphory.errors import EkphoryError, InvalidInput
from ekphory.types import Hit

if TYPE_CHECKING:
    from ekphory.memmachine_config import LanguageModel
    from ekphory.models.reranker import RerankingModel


# Why a session cannot go on; each fault ends it with plain search and the evidence so far.

FaultReason = Literal[
    "global_timeout",
    "session_call_budget_exceeded",
    "max_steps_exceeded",
    "missing_tool_call",
    "invalid_tool_call",
    "invalid_agent_output",
    "downstream_tool_failure",
]
"""MemMachine's names. What a provider's service does wrong is `downstream_tool_failure`."""


class SessionFault(EkphoryError):
    """A session ends here.

    Attributes:
        reason: MemMachine's name for it.
        problem: What went wrong, in words, without a secret.
    """

    def __init__(self, reason: FaultReason, problem: str) -> None:
        self.reason: FaultReason = reason
        self.problem = problem
        super().__init__(f"{reason}: {problem}")


# How the agent works: the section `retrieval_agent` of the configuration.

ProviderName = Literal["local", "openai", "anthropic"]
OpenAIEnvironment = Literal["local", "container_auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """How sessions are held.

    Attributes:
        llm_model: The language model of the provider `openai`; None where none is configured.
        reranker: Orders evidence, given the chain; None takes that of the search, where it has one.
        agent_session_provider: Who decides on the queries; by default `openai` where there is a
            language model with a key, and `local` otherwise.
        agent_session_timeout_seconds: How long one session may take.
        agent_session_max_combined_calls: How many searches, of top level and branch together.
        agent_session_log_raw_output: Whether payloads of the provider are logged for debugging,
            without keys; they hold memories.
        agent_native_bundle_root: Where the Markdown bundle is laid out for the provider; by default
            a temporary directory.
        agent_session_max_retry_interval_seconds: Longest wait before a repeat.
        openai_native_agent_environment: Where OpenAI's model finds the bundle.
        anthropic_model: The model of the provider `anthropic`.
        anthropic_api_key: The key of the provider `anthropic`.
        anthropic_base_url: Another address than Anthropic's own.
        anthropic_max_output_tokens: Longest message of that model.
    """

    llm_model: LanguageModel | None = None
    reranker: RerankingModel | None = None
    agent_session_provider: ProviderName | None = None
    agent_session_timeout_seconds: float = 180.0
    agent_session_max_combined_calls: int = 10
    agent_session_log_raw_output: bool = False
    agent_native_bundle_root: str | None = None
    agent_session_max_retry_interval_seconds: float = 120.0
    openai_native_agent_environment: OpenAIEnvironment = "local"
    anthropic_model: str = "claude-sonnet-4-5"
    anthropic_api_key: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    anthropic_max_output_tokens: int = 2048

    def __post_init__(self) -> None:
        _check_choice(self, "agent_session_provider", get_args(ProviderName))
        _check_choice(self, "openai_native_agent_environment", get_args(OpenAIEnvironment))
        self._check_number("agent_session_timeout_seconds", "above 0")
        for name in ("agent_session_max_combined_calls", "anthropic_max_output_tokens"):
            self._check_number(name, "above 0")
            if not isinstance(getattr(self, name), int):
                raise InvalidInput(name, getattr(self, name), "must be an integer", "Give one")
        self._check_number("agent_session_max_retry_interval_seconds", "0 or more")

    def _check_number(self, name: str, least: Literal["above 0", "0 or more"]) -> None:
        value = getattr(self, name)
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or not 0 <= value < math.inf or (value == 0 and least == "above 0"):
            raise InvalidInput(name, value, "is out of range", f"Give a number {least}")

    @property
    def provider(self) -> ProviderName:
        """Who decides on the queries."""
        if self.agent_session_provider is not None:
            return self.agent_session_provider
        model = self.llm_model
        is_held = model is not None and model.holds_sessions and model.api_key
        return "openai" if is_held else "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """How one search with the agent is done.

    Attributes:
        settings: How sessions are held; None reads the configuration.
        stage_results: `none` leaves the hops' summaries out of the trace's plain form, `trace`
            tells them there, `memory` gives confident ones as lines of the answer context too.
        on_event: Is told of every event when it happens.
    """

    settings: AgentSettings | None = None
    stage_results: agent_trace.StageResults = "none"
    on_event: agent_trace.Listener | None = None

    def __post_init__(self) -> None:
        _check_choice(self, "stage_results", get_args(agent_trace.StageResults))
        if not isinstance(self.settings, AgentSettings | None):
            remedy = "Give AgentSettings(…) or None"
            raise InvalidInput("settings", self.settings, "are no settings", remedy)


def check_options(given: object) -> AgentOptions:
    """Return the options of a search, those that hold by default for None.

    Raises:
        InvalidInput: It is something else.
    """
    if given is None:
        return AgentOptions()
    if not isinstance(given, AgentOptions):
        problem, remedy = "are no options of the agent", "Give AgentOptions(…) or None"
        raise InvalidInput("agent_options", given, problem, remedy)
    return given


def _check_choice(given: object, name: str, choices: tuple[str, ...]) -> None:
    value = getattr(given, name)
    if value is not None and value not in choices:
        raise InvalidInput(name, value, "no such choice", f"Choose {', '.join(choices)}")


# A session that nobody waits for any more is told so, and ends at its next step.

_cancelled: ContextVar[threading.Event | None] = ContextVar("ekphory_cancelled", default=None)


class SessionCancelled(EkphoryError):
    """Whoever asked has gone."""


@contextmanager
def cancellable(cancelled: threading.Event) -> Iterator[None]:
    """Let sessions that begin inside, also in threads that copy this context, be cancelled."""
    token = _cancelled.set(cancelled)
    try:
        yield
    finally:
        _cancelled.reset(token)


# What a session may spend: calls of the search tool, top level and branch together, and time.


@dataclass(slots=True, kw_only=True)
class Budget:
    """Counts calls, and watches the clock from its making on.

    Attributes:
        most_calls: How many calls may be made, refused ones included.
        seconds: How long the session may take.
        calls: How many were made.
    """

    most_calls: int
    seconds: float
    calls: int = 0
    _began: float = field(default_factory=time.monotonic)

    @property
    def calls_left(self) -> int:
        """How many calls may still be made."""
        return max(0, self.most_calls - self.calls)

    @property
    def seconds_left(self) -> float:
        """How much time is left; 0 once it is over."""
        return max(0.0, self._began + self.seconds - time.monotonic())

    def spend_call(self) -> int:
        """Count one call; return its number, from 1.

        Raises:
            SessionFault: No call or no time is left.
        """
        self.check_time()
        if not self.calls_left:
            problem = f"all {self.most_calls} calls were made"
            raise SessionFault("session_call_budget_exceeded", problem)
        self.calls += 1
        return self.calls

    def check_time(self) -> None:
        """Go on only while there is time and somebody waits.

        Raises:
            SessionFault: The time is over.
            SessionCancelled: Nobody waits any more.
        """
        cancelled = _cancelled.get()
        if cancelled is not None and cancelled.is_set():
            raise SessionCancelled
        if self.seconds_left <= 0:
            raise SessionFault("global_timeout", f"the session took over {self.seconds:g} s")


# `memmachine_search`: the one tool of a session.

NAME = "memmachine_search"
LONGEST_QUERY = 2000
_WORD = re.compile(r"[^\W_]+")

PlainSearch = Callable[[str], Sequence[Hit]]
"""Searches the session's scope as the caller asked it to be searched, with another query."""


class QueryRefused(EkphoryError):
    """A query is not searched; the text says why."""


@dataclass(frozen=True, slots=True)
class QueryHits:
    """What one query found.

    Attributes:
        query: The query.
        hits: Best first.
    """

    query: str
    hits: tuple[Hit, ...]


@dataclass(slots=True)
class SearchTool:
    """Searches within a budget, refuses what was searched already, and keeps all that it found.

    Attributes:
        search: What searches.
        budget: What may be spent.
        log: Where every call is told.
        read: Searches too, and has more of what it finds read; None where nothing reads more.
        now: The moment of the question; None for the current one.
        found: What the calls found, in their order.
    """

    search: PlainSearch
    budget: Budget
    log: agent_trace.EventLog
    read: PlainSearch | None = None
    now: datetime | None = None
    found: list[QueryHits] = field(default_factory=list)
    _asked: set[str] = field(default_factory=set)

    def __call__(self, query: str, *, actor: str = agent_trace.TOP_LEVEL) -> tuple[Hit, ...]:
        """Search.

        Args:
            query: What to look for.
            actor: Who asks.

        Returns:
            The hits, best first.

        Raises:
            QueryRefused: It is empty, too long, or was searched already.
            SessionFault: No call or no time is left, or the search failed.
        """
        self.log.step = self.budget.spend_call()
        told = partial(agent_trace.ToolReturned, call=self.log.step, query=query)
        refusal = self._refusal(query)
        if refusal is not None:
            returned = told(query=query[:200], status="refused", summary=refusal)
            self.log.add(returned, actor=actor)
            raise QueryRefused(refusal)
        self._asked.add(normalise_query(query))
        started = time.perf_counter()
        try:
            hits = tuple(self.search(query))
        except EkphoryError as error:
            self.log.add(told(status="failed", summary=str(error)), actor=actor)
            raise SessionFault("downstream_tool_failure", str(error)) from error
        self.found.append(QueryHits(query, hits))
        ids, took = tuple(hit.id for hit in hits), (time.perf_counter() - started) * 1000
        summary = f"episodes={len(hits)}"
        returned = told(status="success", summary=summary, memory_ids=ids, milliseconds=took)
        self.log.add(returned, actor=actor)
        return hits

    def read_more(self, query: str, found: Sequence[Hit]) -> Sequence[Hit]:
        """Return what a query that was searched finds where more of the candidates are read.

        Args:
            query: What was searched.
            found: What it found, which is given back where no more is read.

        Raises:
            SessionFault: No time is left, or the search failed.
        """
        self.budget.check_time()
        if self.read is None:
            return found
        try:
            return tuple(self.read(query))
        except EkphoryError as error:
            raise SessionFault("downstream_tool_failure", str(error)) from error

    def _refusal(self, query: str) -> str | None:
        if not query.strip():
            return "the query is empty"
        if len(query) > LONGEST_QUERY:
            return f"the query is longer than {LONGEST_QUERY:,} characters"
        if normalise_query(query) in self._asked:
            return "this query was searched already; ask for something else, or finish"
        return None


_MEANT_MARKS = frozenset("#%&@")
"""Of the marks that count as punctuation those that tell words apart, as in C#."""
_ACCENTED = ("LATIN ", "GREEK ", "ARABIC ", "HEBREW ")
"""Where a letter with a mark is the same letter; elsewhere the mark makes it another one."""


def normalise_query(query: str) -> str:
    """Return a query as it is compared: without case, accents, punctuation and blanks."""
    letters = "".join(" " if _only_parts(mark) else mark for mark in _without_accents(query))
    return " ".join(letters.split()) or query.strip()


def _only_parts(mark: str) -> bool:
    return unicodedata.category(mark)[0] in "PZC" and mark not in _MEANT_MARKS


def _without_accents(text: str) -> Iterator[str]:
    carrier = ""
    for mark in unicodedata.normalize("NFKD", text.casefold()):
        is_combining = bool(unicodedata.combining(mark))
        carrier = carrier if is_combining else mark
        if not (is_combining and unicodedata.name(carrier, "").startswith(_ACCENTED)):
            yield mark


def words_in(text: str) -> list[str]:
    """Return the words of a text, folded, in order."""
    return _WORD.findall(folded(text))


def folded(text: str) -> str:
    """Return a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(mark for mark in decomposed if not unicodedata.combining(mark))


def tell_thread(
    log: agent_trace.EventLog,
    query: str,
    hops: Sequence[agent_trace.HopResolved],
    *,
    branch: int = 1,
    is_resolved: bool,
    retries: int = 0,
) -> None:
    """Tell what was found for a thread of the question, and that it has ended."""
    for hop in hops:
        log.add(hop, actor=agent_trace.BRANCH)
    memories = len({each for hop in hops for each in hop.memory_ids})
    status: agent_trace.RunStatus = "success" if is_resolved else "failed"
    ended = agent_trace.BranchEnded(
        branch=branch, query=query, status=status, memories=memories, retries=retries
    )
    log.add(ended, actor=agent_trace.BRANCH)


# How a session ended.


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """How a session ended.

    Attributes:
        response: The closing words; of a language model, its answer.
        sufficient: Whether the evidence is held to be enough.
        confidence: Probability in [0, 1] that the chain is right; None where nobody said.
        ranking: All that was found, best first; None where it is yet to be put together.
    """

    response: str
    sufficient: bool
    confidence: float | None
    ranking: tuple[Hit, ...] | None = None
