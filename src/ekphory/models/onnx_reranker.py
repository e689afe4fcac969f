"""Reranks on the CPU with ONNX Runtime, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ekphory.errors import InvalidInput, ModelError
from ekphory.models.batching import length_batches
from ekphory.models.cores import usable_cores
from ekphory.models.cross_encoder_layout import CrossEncoderLayout, PairTokens
from ekphory.models.model_record import MODEL_FILE, TOKENIZER_FILE, read_checked
from ekphory.models.onnx_session import OnnxSession
from ekphory.models.platt_scaling import UNCALIBRATED
from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.rerank_probe import check_order
from ekphory.models.reranker import Judgement, RelevanceScores
from ekphory.models.reranker_record import CalibrationCard, RerankerRecord, read_reranker_record
from ekphory.models.tokenizer_file import load_tokenizer
from ekphory.models.workers import Workers

PASSAGES_AT_A_TIME = 32
TOKENS_PER_RUN = 512  # as for the embedder: fits the cache of one core
PASSAGES_PER_ROUND = 1024  # bounds the tokens in memory while a long list is read
_LOGITS = "logits"


class OnnxReranker:
    """A cross-encoder in a directory of `model.onnx`, `tokenizer.json` and `model.json`.

    The graph takes `input_ids`, `attention_mask` and `token_type_ids`, all int64 of shape
    (batch, tokens), and gives `logits` of shape (batch,) or (batch, 1).

    Safe to call from several threads: each call runs on up to `threads` threads.
    """

    def __init__(self, directory: Path | str, *, threads: int | None = None) -> None:
        """Load the model, and check that it ranks known pairs rightly.

        Args:
            directory: Where the files are.
            threads: Most threads of one call; None takes the cores this process may use.

        Raises:
            ModelError: A file is missing, cut short or changed, or is not such a model.
        """
        self._directory = Path(directory)
        self._record = read_reranker_record(self._directory)
        files = self._record.files
        tokenizer = load_tokenizer(self._directory / TOKENIZER_FILE, files[TOKENIZER_FILE])
        self._layout = CrossEncoderLayout(tokenizer)
        model = read_checked(self._directory / MODEL_FILE, files[MODEL_FILE])
        self._session = OnnxSession(model, name=str(directory))
        self._workers = Workers(threads or usable_cores())
        card = self._record.calibration
        self._scaling = UNCALIBRATED if card is None else card.scaling
        check_order(self)

    def __repr__(self) -> str:
        return f"OnnxReranker({self.name!r}, revision {self._record.revision})"

    @property
    def name(self) -> str:
        """As its record says."""
        return self._record.name

    @property
    def model_id(self) -> str:
        """`name@revision` of its record."""
        return self._record.model_id

    @property
    def record(self) -> RerankerRecord:
        """What `model.json` says."""
        return self._record

    @property
    def batch_size(self) -> int:
        """Enough passages to keep every core at work."""
        return PASSAGES_AT_A_TIME

    @property
    def is_calibrated(self) -> bool:
        """Whether its record has a calibration."""
        return self._record.calibration is not None

    @property
    def calibration(self) -> CalibrationCard | None:
        """That of its record."""
        return self._record.calibration

    def score(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> RelevanceScores:
        """Give the probability that each passage answers; shape (len(passages),).

        A score does not depend on the passages beside it. The model reads context, date and
        neighbours; it knows no `now` and no type.

        Raises:
            InvalidInput: The query has an instruction, which the model cannot read.
            ModelError: The model gives numbers that are not finite, or too many.
        """
        return self.judge(query, passages).scores

    def judge(self, query: RerankQuery, passages: Sequence[RerankPassage], /) -> Judgement:
        """Give probabilities, and the logits that they are made from; otherwise as `score`."""
        logits = self._logits(query, passages)
        return Judgement(self._scaling.probabilities(logits), logits)

    def _logits(self, query: RerankQuery, passages: Sequence[RerankPassage]) -> RelevanceScores:
        if query.instruction is not None:
            raise InvalidInput(
                "instruction",
                query.instruction,
                f"{self.name} cannot be told what is relevant",
                "Leave it out, or take a model that can, such as MemReranker",
            )
        asked = self._layout.query(query)
        logits = np.empty(len(passages), np.float32)
        for start in range(0, len(passages), PASSAGES_PER_ROUND):
            some = passages[start : start + PASSAGES_PER_ROUND]
            share = -(-len(some) // self._workers.threads)
            parts = [some[place : place + share] for place in range(0, len(some), share)]
            pairs = self._workers.map(
                lambda part: [self._layout.pair(asked, passage) for passage in part], parts
            )
            self._run_all([pair for part in pairs for pair in part], logits[start:])
        if not np.isfinite(logits).all():
            raise ModelError(
                f"{self!r}: the model gave numbers that are not finite. "
                "Export the model again, or take another one."
            )
        return logits

    def _run_all(self, pairs: Sequence[PairTokens], logits: RelevanceScores) -> None:
        def run(batch: list[int]) -> None:
            logits[batch] = self._run([pairs[position] for position in batch])

        batches = length_batches(
            [len(pair.ids) for pair in pairs],
            most_tokens=TOKENS_PER_RUN,
            threads=self._workers.threads,
        )
        self._workers.map(run, batches)

    def _run(self, pairs: Sequence[PairTokens]) -> RelevanceScores:
        shape = (len(pairs), max(len(pair.ids) for pair in pairs))
        ids, mask, type_ids = (np.zeros(shape, np.int64) for _ in range(3))
        for row, pair in enumerate(pairs):
            ids[row, : len(pair.ids)] = pair.ids
            mask[row, : len(pair.ids)] = 1
            type_ids[row, : len(pair.ids)] = pair.type_ids
        (given,) = self._session.run([_LOGITS], input_ids=ids, mask=mask, type_ids=type_ids)
        if given.size != len(pairs):
            raise ModelError(
                f"{self!r}: gave logits of shape {given.shape} for {len(pairs)} passages. "
                "Export a model with one logit for each."
            )
        return given.reshape(-1)
