"""Reranks on the CPU with ONNX Runtime, without torch; the bundled rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.embedder import (
    CHARACTERS_PER_TOKEN,
    check_finite,
    find_best_piece,
    find_best_tokens,
    list_distinct_words,
    replace_lone_surrogates,
)
from ekphory.models.model_record import LAYOUT_NAME, read_reranker_record
from ekphory.models.onnx_session import BatchedRun, load_session, load_tokenizer
from ekphory.models.reranker import (
    UNCALIBRATED,
    Judgement,
    JudgingReranker,
    LocalReranker,
    RelevanceScores,
    RerankPassage,
    RerankQuery,
)
from ekphory.threads import Workers, count_usable_cores
from ekphory.types import format_date

# How the bundled cross-encoder reads a question and a memory: training and inference both use it.
#
#     [CLS] context / context / question [SEP] target (8 May 2023) [SEP] before [SEP] after [SEP]
#
# The type id is 0 up to and with the first [SEP] and 1 after it. What is long is cut: of the
# question its beginning counts, of the context and of the turn before their end, of the turn after
# its beginning, and of the target the window that shares most words with the question.

MOST_QUERY_TOKENS = 64
MOST_TARGET_TOKENS = 128
"""The date included, which is never cut."""
MOST_NEIGHBOUR_TOKENS = {"ekphory-turn-2": (12, 12), "ekphory-turn-3": (24, 16)}
"""Of the turn before and of the turn after, by the name of the layout."""
MOST_TOKENS = (
    1 + MOST_QUERY_TOKENS + 1 + MOST_TARGET_TOKENS + 1 + sum(MOST_NEIGHBOUR_TOKENS[LAYOUT_NAME]) + 2
)
TURN_MARK = " / "
_KEPT_TEXTS = 2048
_LONGEST_KEPT = 512
"""In characters: what is kept takes a few megabytes."""


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """The question's side of a pair, tokenised once for all passages.

    Attributes:
        ids: Token ids from [CLS] to the first [SEP].
        words: The question's words, by which a long target is cut; those of the context not.
    """

    ids: list[int]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class PairTokens:
    """What the model reads: token ids and type ids of equal length, at most `MOST_TOKENS`."""

    ids: list[int]
    type_ids: list[int]

    def __len__(self) -> int:
        return len(self.ids)


class CrossEncoderLayout:
    """Turns questions and passages into tokens. Safe to call from several threads.

    Attributes:
        name: Of the layout.
    """

    def __init__(self, tokenizer: Tokenizer, *, name: str = LAYOUT_NAME) -> None:
        """Take a copy of the tokenizer that neither pads nor cuts.

        Args:
            tokenizer: The model's.
            name: Which layout, as the model's record says.

        Raises:
            ModelError: It knows no [CLS] or [SEP].
        """
        own = self._tokenizer = copy_plain(tokenizer)
        self.name = name
        self._most_before, self._most_after = MOST_NEIGHBOUR_TOKENS[name]
        # A turn is the target of one pair and the neighbour of two others, in search after search.
        self._kept = lru_cache(_KEPT_TEXTS)(self._tokenised)
        self._start = find_special_token(own, "[CLS]")
        self._end = find_special_token(own, "[SEP]")

    def query(self, query: RerankQuery) -> QueryTokens:
        """Tokenise the question's side."""
        asked = self._beginning(query.text, MOST_QUERY_TOKENS)
        said = self._said_before(query.context, MOST_QUERY_TOKENS - len(asked))
        ids = [self._start, *said, *asked, self._end]
        return QueryTokens(ids, list_distinct_words(replace_lone_surrogates(query.text)))

    def pair(self, query: QueryTokens, passage: RerankPassage) -> PairTokens:
        """Tokenise a passage's side, and put the question's before it."""
        before = self._ending(passage.before or "", self._most_before)
        after = self._beginning(passage.after or "", self._most_after)
        parts = [self._target(passage, query.words), before, after]
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        tail = [token for part in parts for token in (*part, self._end)]
        type_ids = [0] * len(query.ids) + [1] * len(tail)
        return PairTokens(query.ids + tail, type_ids)

    def pairs(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> list[PairTokens]:
        """Tokenise a question with each of some passages."""
        return self.pairs_with(self.query(query), passages)

    def pairs_with(self, query: QueryTokens, passages: Sequence[RerankPassage]) -> list[PairTokens]:
        """Tokenise the passages' side, with a question that is tokenised already."""
        return [self.pair(query, passage) for passage in passages]

    def _said_before(self, context: Sequence[str], room: int) -> list[int]:
        if not context or room <= 0:
            return []
        return self._ending(TURN_MARK.join([*context[-room:], ""]), room)

    def _target(self, passage: RerankPassage, words: frozenset[str]) -> list[int]:
        date = () if passage.at is None else self._ids(f"({format_date(passage.at)})")
        room = MOST_TARGET_TOKENS - len(date)
        whole = replace_lone_surrogates(passage.text)
        text = find_best_piece(whole, words, most_tokens=MOST_TARGET_TOKENS)
        ids = self._ids(text)
        if len(ids) > room:
            offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
            start, end = find_best_tokens(text, offsets, words, most=room)
            ids = ids[start:end]
        return [*ids, *date]

    def _beginning(self, text: str, most: int) -> list[int]:
        return list(self._ids(replace_lone_surrogates(text[: most * CHARACTERS_PER_TOKEN]))[:most])

    def _ending(self, text: str, most: int) -> list[int]:
        ending = replace_lone_surrogates(text[-most * CHARACTERS_PER_TOKEN :])
        return list(self._ids(ending)[-most:])

    def _ids(self, text: str) -> tuple[int, ...]:
        return self._kept(text) if len(text) <= _LONGEST_KEPT else self._tokenised(text)

    def _tokenised(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)


def copy_plain(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy that neither pads nor cuts, and to which "[SEP]" in a text is text."""
    own = Tokenizer.from_str(tokenizer.to_str())
    own.no_padding()
    own.no_truncation()
    own.encode_special_tokens = True
    return own


def find_special_token(tokenizer: Tokenizer, token: str) -> int:
    """Return the id of a mark of the layout.

    Raises:
        ModelError: The tokenizer does not know it.
    """
    known = tokenizer.token_to_id(token)
    if known is None:
        problem = f"The tokenizer knows no {token}, which the layout {LAYOUT_NAME!r} needs"
        raise ModelError(f"{problem}. Give a tokenizer of a BERT-like model.")
    return int(known)


# A check that a model's weights, tokenizer and layout belong together.

PROBES = (
    (
        "What is the capital of China?",
        "The capital of China is Beijing.",
        "Python is a popular programming language.",
    ),
    (
        "Where does the sister of Anna live?",
        "Anna: My sister Clara will live in Lisbon from May on.",
        "Ben: The train to work was late again.",
    ),
)
"""Question, answer, and what is not an answer."""


def check_order(model: LocalReranker) -> None:
    """Score known pairs, and refuse a model that puts one the wrong way round.

    Raises:
        ModelError: It does, or gives numbers that are not finite.
    """
    for question, answer, other in PROBES:
        passages = [RerankPassage(answer), RerankPassage(other)]
        right, wrong = model.judge(RerankQuery(question), passages).raw.tolist()
        if not right > wrong:
            raise ModelError(
                f"{model.name}: failed the check at loading: for {question!r} it scores {answer!r} "
                f"with {right:.4g}, not above {other!r} with {wrong:.4g}. Weights, tokenizer and "
                "layout do not belong together, or it is not a reranker: export it again, or take "
                "another model."
            )


# The reranker.

_LOGITS = "logits"
_LOGIT_OF_NOTHING = -30.0
"""Of a passage without a letter or a digit."""


class OnnxReranker(JudgingReranker):
    """A cross-encoder in a directory of `model.onnx`, `tokenizer.json` and `model.json`.

    The graph takes `input_ids`, `attention_mask` and `token_type_ids`, all int64 of shape
    (batch, tokens), and gives `logits` of shape (batch,) or (batch, 1).

    Safe to call from several threads: each call runs on up to `threads` threads.

    Attributes:
        record: What `model.json` says.
        name, model_id, calibration: As its record says.
        batch_size: Enough passages to keep every core at work.
        is_calibrated: Whether its record has a calibration.
    """

    batch_size = 32

    def __init__(self, directory: Path | str, *, threads: int | None = None) -> None:
        """Load the model, and check that it ranks known pairs rightly.

        Args:
            directory: Where the files are.
            threads: Most threads of one call; None takes the cores this process may use.

        Raises:
            ModelError: A file is missing, cut short or changed, or is not such a model.
        """
        folder = Path(directory)
        self.record = read_reranker_record(folder)
        self.name, self.model_id = self.record.name, self.record.model_id
        self.calibration = self.record.calibration
        self.is_calibrated = self.calibration is not None
        self._scaling = UNCALIBRATED if self.calibration is None else self.calibration.scaling
        tokenizer = load_tokenizer(folder, self.record.files)
        self._layout = CrossEncoderLayout(tokenizer, name=self.record.layout)
        self._session = load_session(folder, self.record.files)
        self._workers = Workers(threads or count_usable_cores())
        check_order(self)

    def __repr__(self) -> str:
        return f"OnnxReranker({self.name!r}, revision {self.record.revision})"

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Return probabilities, shape (len(passages),), and the logits that they are made from.

        A score does not depend on the passages beside it. The model reads context, date and
        neighbours; it knows no `now` and no type.

        Raises:
            InvalidInput: The query has an instruction, which the model cannot read.
            ModelError: The model gives numbers that are not finite, or too many.
        """
        if query.instruction is not None:
            problem = f"{self.name} cannot be told what is relevant"
            remedy = "Leave it out, or take a model that can, such as MemReranker"
            raise InvalidInput("instruction", query.instruction, problem, remedy)
        asked = self._layout.query(query)
        logits = np.empty(len(passages), np.float32)
        tokenise = partial(self._layout.pairs_with, asked)
        BatchedRun(self._workers, tokenise, self._run).fill(logits, passages)
        check_finite(logits, model=repr(self))
        # The model never saw a text that says nothing, and takes it for an answer.
        says_nothing = [not any(map(str.isalnum, passage.text)) for passage in passages]
        logits[np.array(says_nothing, np.bool_)] = _LOGIT_OF_NOTHING
        return Judgement(self._scaling.probabilities(logits), logits)

    def _run(self, pairs: Sequence[PairTokens]) -> RelevanceScores:
        ids, type_ids = [pair.ids for pair in pairs], [pair.type_ids for pair in pairs]
        (given,) = self._session.run([_LOGITS], ids, type_ids=type_ids)
        if given.size != len(pairs):
            problem = f"{self!r}: gave logits of shape {given.shape} for {len(pairs)} passages"
            raise ModelError(f"{problem}. Export a model with one logit for each.")
        return given.reshape(-1)
