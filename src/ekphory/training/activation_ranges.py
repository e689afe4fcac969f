"""The range that every activation of an encoder takes on sample texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ekphory.training.encoder_graph import FloatArithmetic, Site, build_encoder, give_out
from ekphory.training.encoder_weights import Array, EncoderWeights

if TYPE_CHECKING:
    from onnx import ModelProto

TEXTS_PER_RUN = 16
ModelInputs: TypeAlias = Mapping[str, NDArray[np.int64]]
"""Arrays of shape (batch, tokens) by the name of the input."""


@dataclass(frozen=True, slots=True)
class ActivationRange:
    """Lowest and highest value that each channel takes; both of shape (channels,)."""

    low: Array
    high: Array

    @property
    def magnitude(self) -> Array:
        """Largest absolute value of each channel; never 0."""
        return np.maximum(np.maximum(-self.low, self.high), np.float32(1e-4))

    def scaled(self, factors: Array) -> ActivationRange:
        """Divide every channel by its factor (> 0)."""
        return ActivationRange(self.low / factors, self.high / factors)

    def select(self, channels: NDArray[np.intp]) -> ActivationRange:
        """Keep some channels only."""
        return ActivationRange(self.low[channels], self.high[channels])


def record_ranges(
    weights: EncoderWeights, tokenizer: Tokenizer, texts: Sequence[str]
) -> Mapping[Site, ActivationRange]:
    """Run the float encoder over texts and note what goes into each projection.

    Args:
        weights: The encoder.
        tokenizer: Its tokenizer, with truncation and padding set.
        texts: Neutral texts, never evaluation data.
    """
    arithmetic = FloatArithmetic()
    model = build_encoder(weights, arithmetic)
    return ranges_over(model, arithmetic, _text_batches(tokenizer, texts))


def ranges_over(
    model: ModelProto, arithmetic: FloatArithmetic, batches: Iterable[ModelInputs]
) -> Mapping[Site, ActivationRange]:
    """Run a float model over batches and note what goes into each projection.

    Args:
        model: Written with this arithmetic; gets further outputs.
        arithmetic: Knows where activations meet weights.
        batches: The model's inputs, `attention_mask` among them.
    """
    sites, names = list(arithmetic.tensors), list(arithmetic.tensors.values())
    give_out(model, names)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ranges: dict[Site, ActivationRange] = {}
    for batch in batches:
        present = batch["attention_mask"].astype(bool)
        for site, value in zip(sites, session.run(names, dict(batch)), strict=True):
            seen = value[present]
            ranges[site] = _widened(ranges.get(site), seen.min(axis=0), seen.max(axis=0))
    return ranges


def _text_batches(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[ModelInputs]:
    ordered = sorted(texts, key=len)
    for start in range(0, len(ordered), TEXTS_PER_RUN):
        encodings = tokenizer.encode_batch(ordered[start : start + TEXTS_PER_RUN])
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        yield {"input_ids": ids, "attention_mask": mask}


def _widened(known: ActivationRange | None, low: Array, high: Array) -> ActivationRange:
    if known is None:
        return ActivationRange(low, high)
    return ActivationRange(np.minimum(known.low, low), np.maximum(known.high, high))
