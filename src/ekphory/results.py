"""What a search gives back, and its way into a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ekphory.agent_trace.retrieval_trace import RetrievalTrace
from ekphory.prompting.block import (
    NOTHING_FOUND,
    NOTHING_LIKELY,
    BlockSettings,
    Injections,
    PromptBlock,
    prompt_block,
)
from ekphory.prompting.hop_notes import hop_notes
from ekphory.prompting.token_budget import CountTokens, estimate_tokens
from ekphory.trace import Trace
from ekphory.types import Hit, ResultOrder


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What one search gave.

    Attributes:
        hits: Best first.
        trace: What every stage did.
        abstained: True when memories were found but none reached `min_score`.
        retrieval_trace: What the retrieval agent did; None without `agent_mode`.
        order: What the hits are ordered by. By `score`, scores never rise, and `min_score`
            cuts the end of the list. Else the order is that of fused `ranks`, of `time`, of
            relevance weighed against `diversity`, with `pins` first, of the `newest`, along a
            `chain` of memories, or as the `stages` of one's own pipeline left it.
    """

    hits: tuple[Hit, ...]
    trace: Trace
    abstained: bool = False
    retrieval_trace: RetrievalTrace | None = None
    order: ResultOrder = "score"

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def to_prompt(
        self,
        max_tokens: int = 2000,
        *,
        now: str | datetime | None = None,
        recent_messages: Sequence[str] = (),
        injections: Injections = "drop",
        count_tokens: CountTokens = estimate_tokens,
    ) -> str:
        """Give the hits as text for a model's prompt: the `text` of `prompt_block`."""
        return self.prompt_block(
            max_tokens,
            now=now,
            recent_messages=recent_messages,
            injections=injections,
            count_tokens=count_tokens,
        ).text

    def prompt_block(
        self,
        max_tokens: int = 2000,
        *,
        now: str | datetime | None = None,
        recent_messages: Sequence[str] = (),
        injections: Injections = "drop",
        count_tokens: CountTokens = estimate_tokens,
    ) -> PromptBlock:
        """Give the hits as a block for a model's prompt, and say what was left out of it.

        The block says that its content is data and no instruction; all of it is escaped. Each
        memory carries its place in `hits` from 1, source, type, date, age, score and producer.
        Without hits the block says so in words: it is not empty, as if no search had run. It is
        empty only when `max_tokens` cannot hold its frame.

        Args:
            max_tokens: Limit for the whole block; a memory that does not fit is passed over.
            now: The moment that ages are told from; None for the current one.
            recent_messages: Texts that the prompt holds besides. A memory of which more than .4
                of the words stand in one of them is left out. Give what the model reads anyway;
                a question shares words with its answers, and would push out 1 to 3 % of them.
            injections: `drop` leaves out memories that try to steer a model, `keep` shows them.
            count_tokens: Counts the tokens of a text; by default an estimate from above.

        Raises:
            InvalidInput: An argument cannot be used.
        """
        settings = BlockSettings(
            max_tokens=max_tokens,
            now=now,
            recent_messages=recent_messages,
            injections=injections,
            count_tokens=count_tokens,
        )
        return self._block(settings, notes=())

    def answer_context(
        self,
        max_tokens: int = 2000,
        *,
        now: str | datetime | None = None,
        recent_messages: Sequence[str] = (),
        injections: Injections = "drop",
        count_tokens: CountTokens = estimate_tokens,
    ) -> str:
        """Give the evidence chain of the retrieval agent and the hits as text for a prompt.

        It is the block of `to_prompt`, which first tells, a line each, what every hop looked for,
        what it found, how sure that is, and which memories state it. Without `agent_mode`, and
        where one lookup was enough, it is the same as `to_prompt`.
        """
        settings = BlockSettings(
            max_tokens=max_tokens,
            now=now,
            recent_messages=recent_messages,
            injections=injections,
            count_tokens=count_tokens,
        )
        notes = () if self.retrieval_trace is None else hop_notes(self.retrieval_trace, self.hits)
        return self._block(settings, notes=notes).text

    def _block(self, settings: BlockSettings, *, notes: Sequence[str]) -> PromptBlock:
        if_empty = NOTHING_LIKELY if self.abstained else NOTHING_FOUND
        return prompt_block(self.hits, settings, if_empty=if_empty, notes=notes)
