"""How a sentence-transformers model cuts a text into tokens, and how many it reads at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

from ekphory.models.encodable import encodable
from ekphory.models.windowing import Offsets

FALLBACK_MAX_TOKENS = 512
"""Of models that name no window, as those that take the mean of static word vectors."""


@dataclass(frozen=True, slots=True)
class TorchWindow:
    """A model's tokenizer, and the room it leaves for text.

    Attributes:
        offsets: Gives the tokens of a text, none left out.
        room: Most tokens of prompt and text together.
    """

    offsets: Callable[[str], Offsets]
    room: int


def window_of(model: Any) -> TorchWindow:  # noqa: ANN401  torch's
    """Give the window of a `SentenceTransformer`."""
    if isinstance(model.tokenizer, Tokenizer):
        return _static_window(model.tokenizer)
    tokenizer = model.tokenizer

    def offsets(text: str) -> Offsets:
        tokens = tokenizer(
            encodable(text), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return [(int(start), int(end)) for start, end in tokens["offset_mapping"]]

    special = int(tokenizer.num_special_tokens_to_add(pair=False))
    return TorchWindow(offsets, (model.max_seq_length or FALLBACK_MAX_TOKENS) - special)


def _static_window(tokenizer: Tokenizer) -> TorchWindow:
    """Leave room for as many tokens as the tokenizer lets be; none of them is special."""
    truncation = tokenizer.truncation
    whole = Tokenizer.from_str(tokenizer.to_str())
    whole.no_truncation()

    def offsets(text: str) -> Offsets:
        return whole.encode(encodable(text), add_special_tokens=False).offsets

    return TorchWindow(offsets, truncation["max_length"] if truncation else FALLBACK_MAX_TOKENS)
