"""Transcripts with what of them is worth remembering.

They lie in `captures/`, in plain text: its README tells the form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from ekphory.errors import DatasetError
from ekphory.models.captures import (
    MESSAGE_CLASSES,
    MOST_REACHED,
    DialogueMessage,
    MessageClass,
    TextSpan,
)
from ekphory.models.onnx_capture_reader import SPAN_KINDS, CaptureLayout, Window
from ekphory_lab.training.changes import Part, part_by_hash, read_blocks

CAPTURES = Path(__file__).parent / "captures"
Worth = Literal["drop", "context", "steer", "keep"]
_HEAD = re.compile(r"== (coding-agent|assistant|chat): (.+)")
_LINE = re.compile(r'(u|a|t|"[^"|]+") (drop|context|steer|keep (\w+)(?: (-\d(?:,-\d)*))?) \| (.+)')
_MARK = re.compile(r"\(\((.+?)\)\)|\[([^\[\]|]+)\|(\w+)\]")
_ROLES = {"u": "user", "a": "assistant", "t": "tool"}


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message and what it is worth.

    Attributes:
        message: As a reader gets it.
        worth: drop, context, steer or keep.
        class_: Of what is kept; else None.
        reaches: How many messages before it are needed to understand it.
        spans: What it names, and secrets.
    """

    message: DialogueMessage
    worth: Worth
    class_: MessageClass | None
    reaches: int
    spans: tuple[TextSpan, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A dialogue.

    Attributes:
        name: File and line.
        kind: coding-agent, assistant or chat.
        topic: What it is about.
        messages: In their order.
    """

    name: str
    kind: str
    topic: str
    messages: list[LabelledMessage] = field(default_factory=list)

    @property
    def part(self) -> Part:
        """What it is for, by its first message."""
        return part_by_hash(self.messages[0].message.text)


def read_transcripts(folder: Path = CAPTURES) -> list[Transcript]:
    """Read all files of a folder, in the order of their names.

    Raises:
        DatasetError: A line cannot be read.
    """
    read = read_blocks(folder, _HEAD, Transcript, _read_line, what="transcript")
    return [transcript for transcript in read if transcript.messages]


def _read_line(transcript: Transcript, line: str, place: str) -> bool:
    found = _LINE.fullmatch(line)
    if found is not None:
        transcript.messages.append(_read_message(place, found))
    return found is not None


def _read_message(place: str, line: re.Match[str]) -> LabelledMessage:
    who, label, class_, reached, marked = line.groups()
    if class_ is not None and class_ not in get_args(MessageClass):
        raise DatasetError(f"{place}: no such class: {class_!r}.")
    named = who.strip('"') if who not in _ROLES else ""
    text, spans = read_marks(marked.replace("\\n", "\n"))
    if any(span.kind not in SPAN_KINDS for span in spans):
        raise DatasetError(f"{place}: no such kind of thing: {marked[:60]!r}.")
    reaches = max((-int(each) for each in reached.split(",")), default=0) if reached else 0
    worth: Worth = "keep" if class_ else label  # type: ignore[assignment]
    message = DialogueMessage(_ROLES.get(who, "user"), text, named)
    return LabelledMessage(message, worth, class_, reaches, spans)  # type: ignore[arg-type]


def read_marks(marked: str) -> tuple[str, tuple[TextSpan, ...]]:
    """Return a text without its marks, and what they mark: `[Bonn|place]` and `((secret))`."""
    text, spans, done = "", [], 0
    for mark in _MARK.finditer(marked):
        text += marked[done : mark.start()]
        inner = mark[1] or mark[2]
        kind = "secret" if mark[1] else mark[3]
        spans.append(TextSpan(len(text), len(text) + len(inner), kind, 1.0))  # type: ignore[arg-type]
        text += inner
        done = mark.end()
    return text + marked[done:], tuple(spans)


# What the capture reader is to say of a transcript.

NOT_COUNTED = -100
"""A label that the loss passes over."""


@dataclass(frozen=True, slots=True)
class LabelledWindow:
    """A window with what the model is to say of it.

    Attributes:
        window: What it reads.
        outcome: 0 for nothing, 1 for what steers, then the classes.
        reaches: How many messages before are needed; passed over where nothing is kept.
        tags: Of each token of the message.
    """

    window: Window
    outcome: int
    reaches: int
    tags: list[int]


def labelled_windows(
    transcripts: Sequence[Transcript], layout: CaptureLayout
) -> list[LabelledWindow]:
    """Return the first window of each message, with its labels."""
    found = []
    for transcript in transcripts:
        messages = [each.message for each in transcript.messages]
        seen = set()
        for window in layout.windows(messages):
            if window.place in seen:
                continue
            seen.add(window.place)
            labelled = transcript.messages[window.place]
            reached = min(labelled.reaches, MOST_REACHED)
            reaches = reached if labelled.worth == "keep" else NOT_COUNTED
            tags = _tags(labelled, window)
            found.append(LabelledWindow(window, outcome_of(labelled), reaches, tags))
    return found


def outcome_of(labelled: LabelledMessage) -> int:
    """Return the place of what a message is worth among the logits."""
    if labelled.class_ is not None:
        return 2 + MESSAGE_CLASSES.index(labelled.class_)
    return int(labelled.worth == "steer")


def _tags(labelled: LabelledMessage, window: Window) -> list[int]:
    tags = []
    for start, end in window.offsets:
        tag = 0
        for span in labelled.spans:
            if span.start < end and start < span.end:
                tag = 1 + 2 * SPAN_KINDS.index(span.kind) + (start > span.start)
        tags.append(tag)
    return tags
