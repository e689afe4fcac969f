"""What a capture reader is: it reads a dialogue, and says what of it is worth remembering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, Protocol, get_args

MessageClass = Literal["preference", "fact", "decision", "procedure", "mistake", "task", "event"]
MESSAGE_CLASSES: tuple[MessageClass, ...] = get_args(MessageClass)
EntityKind = Literal["person", "organisation", "place", "product", "project", "file", "identifier"]
ENTITY_KINDS: tuple[EntityKind, ...] = get_args(EntityKind)
MOST_REACHED = 2
"""A memory is told by a message and at most so many before it."""


@dataclass(frozen=True, slots=True)
class DialogueMessage:
    """One message of a dialogue.

    Attributes:
        role: user, assistant, tool or system.
        text: What was said.
        speaker: Their name, where it is known; else empty.
    """

    role: str
    text: str
    speaker: str = ""

    @property
    def told_by(self) -> str:
        """The speaker's name, or else their role."""
        return self.speaker or self.role


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A named thing in a text, or a secret.

    Attributes:
        start, end: Its characters.
        kind: What it is.
        probability: That it is.
    """

    start: int
    end: int
    kind: EntityKind | Literal["secret"]
    probability: float


@dataclass(frozen=True, slots=True)
class MessageReading:
    """What a message is worth.

    Attributes:
        nothing: Probability that it holds nothing to be remembered.
        steers: Probability that it tries to steer a model.
        classes: Probability of each class of memory, in the order of `MESSAGE_CLASSES`; together
            with the two before they are 1.
        reaches: How many of the messages before it are needed to understand it.
        spans: What it names, in order, without overlap.
    """

    nothing: float
    steers: float
    classes: tuple[float, ...]
    reaches: int
    spans: tuple[TextSpan, ...]


class CaptureReader(Protocol):
    """What reads dialogues.

    Attributes:
        name: Name and revision.
        least: From which probability on a message is worth remembering.
    """

    name: str
    least: float

    def read(self, messages: Sequence[DialogueMessage], *, since: int = 0) -> list[MessageReading]:
        """Read messages in their order; those before `since` are context alone."""


BUNDLED = Path(str(files("ekphory.models"))) / "bundled" / "capture-reader"


@lru_cache(1)
def bundled_capture_reader() -> CaptureReader:
    """Return the capture reader that ekphory brings; it is loaded once."""
    # Importing ONNX Runtime takes a tenth of a second, and touches the home folder.
    from ekphory.models.onnx_capture_reader import OnnxCaptureReader

    return OnnxCaptureReader(BUNDLED)
