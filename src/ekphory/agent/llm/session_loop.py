"""The loop of a session with a language model: it asks, the tool answers, until it has enough."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ekphory.agent.budget import Budget
from ekphory.agent.cancellation import SessionCancelled
from ekphory.agent.faults import SessionFault
from ekphory.agent.llm.model_thread import ModelThread
from ekphory.agent.llm.model_turn import Dialogue, ModelFault, ModelTurn, ToolAnswer
from ekphory.agent.llm.stage_results import FinalWords, read_final_words
from ekphory.agent.llm.tool_calls import ToolCalls
from ekphory.agent.provider import Outcome
from ekphory.agent_trace.event_log import EventLog
from ekphory.agent_trace.events import (
    BRANCH,
    BranchEnded,
    BranchStarted,
    ModelAnswered,
    ModelRetried,
    RouteChosen,
)
from ekphory.services.settings import ServiceSettings
from ekphory.services.waiting import seconds_before_repeat

_log = logging.getLogger("ekphory.agent")
ATTEMPTS = 4
"""How often one message is asked for."""
_FIRST_WAIT = 1.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class SessionLoop:
    """One session with a model.

    Attributes:
        dialogue: The conversation with the model.
        calls: Answers its calls.
        log: Where everything is told.
        most_steps: How many messages it may write.
        longest_wait: Most seconds before a repeat.
        first_wait: Seconds before the first repeat, doubled each time.
    """

    dialogue: Dialogue
    calls: ToolCalls
    log: EventLog
    most_steps: int
    longest_wait: float
    first_wait: float = _FIRST_WAIT

    def run(self, question: str) -> Outcome:
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
                thread.run(self.dialogue.close(), _unchecked)
        self._tell(question, words, status="success")
        confidence = min((hop.confidence for hop in words.hops), default=0.0)
        return Outcome(words.response, words.sufficient, confidence)

    def _final_words(self, thread: ModelThread) -> FinalWords:
        answers: list[ToolAnswer] = []
        for number in range(1, self.most_steps + 1):
            turn = self._asked(thread, number, answers)
            if turn.refusal is not None:
                raise SessionFault("invalid_agent_output", f"the model refused: {turn.refusal}")
            if not turn.calls:
                if not self.calls.tool.found:
                    raise SessionFault("missing_tool_call", "the model answered without a search")
                return read_final_words(turn.text, self.calls.tool.found)
            answers = [self.calls.answer(call) for call in turn.calls]
        raise SessionFault("max_steps_exceeded", f"the model wrote {self.most_steps} messages")

    def _asked(self, thread: ModelThread, number: int, answers: Sequence[ToolAnswer]) -> ModelTurn:
        """Ask for the next message, again after faults that may pass."""
        started = time.perf_counter()
        for attempt in range(1, ATTEMPTS + 1):
            must_search = not self.calls.tool.found
            asking = self.dialogue.answer(answers, must_search=must_search)
            try:
                turn = thread.run(asking, self._budget.check_time)
            except ModelFault as fault:
                self._wait(fault, number, attempt)
                continue
            except (SessionFault, SessionCancelled):
                raise
            except Exception as error:  # noqa: BLE001  a boundary to code that is not ours
                # An SDK lets errors of its transport through, such as a stream that breaks off.
                _log.info("the provider's SDK raised", exc_info=error)
                self._wait(ModelFault(type(error).__name__, may_pass=True), number, attempt)
                continue
            self.log.add(
                ModelAnswered(
                    turn=number,
                    attempts=attempt,
                    input_tokens=turn.input_tokens,
                    output_tokens=turn.output_tokens,
                    milliseconds=(time.perf_counter() - started) * 1000,
                )
            )
            return turn
        raise SessionFault("downstream_tool_failure", f"{ATTEMPTS} attempts failed")

    def _wait(self, fault: ModelFault, number: int, attempt: int) -> None:
        """Wait before a repeat.

        Raises:
            SessionFault: Repeating is useless, or there is no time for it.
        """
        settings = ServiceSettings(backoff=self.first_wait, longest_wait=self.longest_wait)
        wait = seconds_before_repeat(attempt - 1, retry_after=fault.retry_after, settings=settings)
        if not fault.may_pass or attempt == ATTEMPTS or wait >= self._budget.seconds_left:
            raise SessionFault("downstream_tool_failure", fault.problem) from fault
        self.log.add(
            ModelRetried(turn=number, attempt=attempt, wait_seconds=wait, problem=fault.problem)
        )
        until, nobody = time.monotonic() + wait, threading.Event()
        while (left := until - time.monotonic()) > 0:
            self._budget.check_time()
            nobody.wait(min(left, _LOOK_SECONDS))

    def _tell(self, question: str, words: FinalWords, *, status: str) -> None:
        """Tell the way that the session took, and its hops."""
        searches = self.calls.tool.found
        is_chain = len(searches) > 1 or len(words.hops) > 1
        self.log.add(
            RouteChosen(
                route="coq" if is_chain else "memmachine_search",
                reason_code="model",
                reason_note=f"the model made {len(searches)} searches",
            )
        )
        if not is_chain:
            return
        self.log.add(BranchStarted(branch=1, query=question), actor=BRANCH)
        for hop in words.hops:
            self.log.add(hop, actor=BRANCH)
        self.log.add(
            BranchEnded(
                branch=1,
                query=question,
                status="success" if status == "success" and words.sufficient else "failed",
                memories=len({each for hop in words.hops for each in hop.memory_ids}),
            ),
            actor=BRANCH,
        )

    @property
    def _budget(self) -> Budget:
        return self.calls.tool.budget


def _unchecked() -> None:
    """Let a dialogue close in any case."""
