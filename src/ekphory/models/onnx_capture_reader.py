"""Runs a capture reader on the CPU with ONNX Runtime.

The model stands above the lower layers of the bundled reranker. It reads

    [CLS] speaker: message before the last speaker: last message [SEP] speaker: message [SEP]

with type id 0 up to and with the first [SEP], and 1 after it. Of the messages before, the ends are
read; a long message is read in windows. Its logits are, of each message: nothing, steers, then the
classes; then how many messages before are needed. Of each token: outside, then the beginning and
the inside of each kind of span.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekphory.models.captures import (
    ENTITY_KINDS,
    MESSAGE_CLASSES,
    MOST_REACHED,
    DialogueMessage,
    EntityKind,
    MessageReading,
    TextSpan,
)
from ekphory.models.embedder import Offsets, batch_by_length, replace_lone_surrogates
from ekphory.models.onnx_change_reader import softmax
from ekphory.models.onnx_models import TOKENS_PER_RUN, PairLayout, PairTokens
from ekphory.models.shared_layers import LOGITS, TAGS, UpperModel

LAYOUT_NAME = "ekphory-capture-1"
RECORD_KIND = "capture reader"
TOKENS_BEFORE = (24, 48)
"""Of the message before the last one, and of the last one."""
WINDOW = 128
"""Tokens of a message that are read at once."""
_OVERLAP = 16
LEAST_NAMED = 0.6
"""From this probability on words are a name or a thing (LOG, 61)."""
LEAST_SHAPED = 0.2
"""The same for words that look like a name."""
LEAST_SECRET = 0.5
"""The same for a secret."""
LEAST_NEEDED = (0.06, 0.7)
"""From which probability on the message before is needed, and the one before that (LOG, 61)."""
MOST_WINDOWS = 16
"""Of a longer message the rest is not read: it is a log or a document."""
SPAN_KINDS: tuple[EntityKind | str, ...] = (*ENTITY_KINDS, "secret")
OUTCOMES = 2 + len(MESSAGE_CLASSES)
"""Nothing, steers, and the classes."""
KINDS = OUTCOMES + MOST_REACHED + 1
TAG_COUNT = 1 + 2 * len(SPAN_KINDS)
Shares = NDArray[np.float64]
"""Of each token, how much of it is of each tag; shape (tokens, tags)."""


OPENING = (DialogueMessage("user", "hi"), DialogueMessage("assistant", "Hello! What are we doing?"))
"""Read before the first message of a dialogue: the model knows few beginnings, and takes what is
said there for a greeting."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a message as the model reads it.

    Attributes:
        place: Of the message among those that are read.
        tokens: What the model reads.
        begins: Where the message's own tokens begin among them.
        offsets: Characters of the message that these tokens are.
    """

    place: int
    tokens: PairTokens
    begins: int
    offsets: Offsets


class CaptureLayout(PairLayout):
    """Turns messages into tokens. Safe to call from several threads."""

    def windows(self, messages: Sequence[DialogueMessage], *, since: int = 0) -> Iterator[Window]:
        """Tokenise messages, in windows, those before `since` as context alone."""
        for place in range(since, len(messages)):
            yield from self._windows_of(place, messages)

    def _windows_of(self, place: int, messages: Sequence[DialogueMessage]) -> Iterator[Window]:
        before = messages[max(0, place - MOST_REACHED) : place] or OPENING
        room = TOKENS_BEFORE[len(TOKENS_BEFORE) - len(before) :]
        context: list[int] = []
        for earlier, most in zip(before, room, strict=True):
            said = f"{earlier.told_by}: {earlier.text[-most * 20 :]}"
            context += self._encode(said).ids[-most:]
        first = [self._start, *context, self._end]
        message = messages[place]
        speaker = self._encode(f"{message.told_by}:").ids
        encoded = self._encode(message.text[: WINDOW * MOST_WINDOWS * 20])
        starts = range(0, max(1, len(encoded.ids) - _OVERLAP), WINDOW - _OVERLAP)
        for start in starts[:MOST_WINDOWS]:
            ids = encoded.ids[start : start + WINDOW]
            second = [*speaker, *ids, self._end]
            tokens = PairTokens(first + second, [0] * len(first) + [1] * len(second))
            offsets = encoded.offsets[start : start + WINDOW]
            yield Window(place, tokens, len(first) + len(speaker), offsets)

    def _encode(self, text: str) -> Any:  # noqa: ANN401  tokenizers' Encoding
        return self._tokenizer.encode(replace_lone_surrogates(text), add_special_tokens=False)


class OnnxCaptureReader:
    """A capture reader in a directory of `model.onnx` and `model.json`.

    Attributes:
        name: Name and revision.
        least: As its record says.
    """

    def __init__(self, directory: Path) -> None:
        """Load the model and the layers that it shares.

        Raises:
            ModelError: A file is missing or changed, or belongs to another reranker.
        """
        self._upper = UpperModel(
            directory, kind=RECORD_KIND, layout=LAYOUT_NAME, kinds=MESSAGE_CLASSES
        )
        self.name = self._upper.name
        self.least = float(self._upper.record["least"])
        self._layout = CaptureLayout(self._upper.tokenizer)

    def read(self, messages: Sequence[DialogueMessage], *, since: int = 0) -> list[MessageReading]:
        """Read messages in their order; those before `since` are context alone."""
        windows = list(self._layout.windows(messages, since=since))
        logits = np.empty((len(windows), KINDS), np.float32)
        tags: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(windows)

        lengths = [len(window.tokens) for window in windows]
        for batch in batch_by_length(lengths, most_tokens=TOKENS_PER_RUN):
            found = self._upper.run([LOGITS, TAGS], [windows[place].tokens for place in batch])
            logits[batch] = found[0]
            for place, each in zip(batch, found[1], strict=True):
                window = windows[place]
                tags[place] = each[window.begins : window.begins + len(window.offsets)]
        outcomes = softmax(self._upper.scaled(logits[:, :OUTCOMES]))
        by_place: dict[int, list[int]] = defaultdict(list)
        for number, window in enumerate(windows):
            by_place[window.place].append(number)
        readings = []
        for place, its_own in by_place.items():
            marked = [(windows[number].offsets, tags[number]) for number in its_own]
            spans = find_spans(messages[place].text, marked)
            # Of several windows the one counts that holds most.
            best = min(its_own, key=lambda number: outcomes[number, 0])
            nothing, steers, *classes = outcomes[best].tolist()
            reaches = min(_count_needed(logits[best, OUTCOMES:]), place)
            readings.append(MessageReading(nothing, steers, tuple(classes), reaches, spans))
        return readings


def _count_needed(logits: NDArray[np.float32]) -> int:
    """Return how many messages before are needed; one too many costs less than one too few."""
    shares = softmax(logits[None])[0]
    needed = [n for n, least in enumerate(LEAST_NEEDED, start=1) if shares[n:].sum() >= least]
    return max(needed, default=0)


def find_spans(
    text: str, windows: Sequence[tuple[Offsets, NDArray[np.float32]]]
) -> tuple[TextSpan, ...]:
    """Return the spans of a text from the logits of its tokens, whole words of it.

    Args:
        text: What was read.
        windows: Of each the characters of its tokens and their logits; where two overlap, the
            earlier one counts.
    """
    found: list[TextSpan] = []
    done = 0
    for offsets, logits in windows:
        shares = softmax(logits)
        read = [span for span in _spans_of(text, offsets, shares) if _is_sure(span)]
        shaped = _shaped_spans(text, offsets, shares)
        read += [span for span in shaped if not any(_overlap(span, each) for each in read)]
        for span in sorted(read, key=lambda each: each.start):
            if span.start >= done:
                found.append(span)
            elif span.kind == "secret" and span.end > done:
                # Of a secret that goes on behind a window nothing may stay.
                found.append(replace(span, start=done))
            done = max(done, span.end)
    return tuple(found)


def _is_sure(span: TextSpan) -> bool:
    return span.probability >= (LEAST_SECRET if span.kind == "secret" else LEAST_NAMED)


def _overlap(one: TextSpan, other: TextSpan) -> bool:
    return one.start < other.end and other.start < one.end


def _shaped_spans(text: str, offsets: Offsets, shares: Shares) -> Iterator[TextSpan]:
    """Yield what looks like a name or an identifier, and that the model holds for possible.

    The model reads small letters only, so the shape of a word is what it does not know.
    """
    if not offsets:
        return
    for match in _SHAPES.finditer(text, offsets[0][0], offsets[-1][1]):
        start, end = match.span()
        if match[0].endswith(_POSSESSIVE):
            end -= len(_POSSESSIVE[0])
        tokens = [n for n, (begins, ends) in enumerate(offsets) if begins < end and start < ends]
        if not tokens:
            continue
        by_kind = shares[tokens, 1:].mean(axis=0).reshape(-1, 2).sum(axis=1)[: len(ENTITY_KINDS)]
        if by_kind.sum() >= LEAST_SHAPED:
            kind = ENTITY_KINDS[int(by_kind.argmax())]
            yield TextSpan(start, end, kind, float(max(LEAST_NAMED, by_kind.sum())))


_SHAPES = re.compile(
    r"""
    (?<![\w./-])[\w.-]*/[\w./-]*\w               # a path
    | \b\w[\w-]*\.[a-z]{1,8}\d?\b(?:\(\))?         # a file, a host, a method
    | \b[A-Z]{2,}[ -]\d+\b                         # ADR 22
    | \b\w+(?:[_-]\w+)+\b(?:\(\))? | \b\w+\(\)      # names of programs
    | \b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{2,}\b       # an identifier
    | \b[A-ZÀ-Þ][\w'’]*(?:[ ](?:(?:&|of|de|van|von|der|the)[ ])?[A-ZÀ-Þ][\w'’]*)*   # names
    """,
    re.VERBOSE,
)


_POSSESSIVE = ("'s", "’s")


def _spans_of(text: str, offsets: Offsets, shares: Shares) -> Iterator[TextSpan]:
    said = shares.argmax(axis=1)
    place = 0
    while place < len(offsets):
        tag = int(said[place])
        if tag == 0:
            place += 1
            continue
        kind = (tag - 1) // 2
        inside = 2 + 2 * kind
        last = place + 1
        while last < len(offsets) and (said[last] == inside or _same_word(offsets, last)):
            last += 1
        start, end = _whole_words(text, offsets[place][0], offsets[last - 1][1])
        both = shares[place:last, 1 + 2 * kind] + shares[place:last, inside]
        yield TextSpan(start, end, SPAN_KINDS[kind], float(both.mean()))  # type: ignore[arg-type]
        place = last


def _same_word(offsets: Offsets, place: int) -> bool:
    return offsets[place][0] == offsets[place - 1][1] and offsets[place][0] != offsets[place][1]


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    if text[start - 1 : start] in ("/", "~", ".") and "/" in text[start:end]:
        start -= 1  # of a path
    while end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    while end - start > 1 and text[end - 1] in ".,;:!?)\"'":
        end -= 1
    if text[start:end].endswith(_POSSESSIVE):
        end -= len(_POSSESSIVE[0])
    return start, end
