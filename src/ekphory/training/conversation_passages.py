"""Turns of training conversations as the passages that a search sees: `speaker: text`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

_GREETINGS = (
    "Hey {}! {}",
    "Thanks, {}! {}",
    "{}, {}",
    "Wow, {}! {}",
    "Hi {}, good to see you! {}",
    "That's great, {}! {}",
    "Appreciate it, {}. {}",
)
_GREETED_SHARE = 0.2
_JOINED_SHARE = 0.35


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: who says what."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnPassages:
    """The passages of a conversation.

    Attributes:
        texts: The passages, in order.
        rows: For every turn the position of the passage that holds it.
    """

    texts: tuple[str, ...]
    rows: tuple[int, ...]


def turn_passages(
    turns: Sequence[Turn], addressee: Mapping[str, str], random: Random
) -> TurnPassages:
    """Write turns as passages, some of them longer and some with the other's name.

    Short chats become more like written ones: a share of the turns takes in what its speaker says
    next, and a share opens with the name of whom it is said to, so that a name in a question means
    who speaks and not who is greeted.

    Args:
        turns: The conversation.
        addressee: Whom each speaker talks to.
        random: Decides which turns change.
    """
    rows: list[int] = [-1] * len(turns)
    texts: list[str] = []
    for place, turn in enumerate(turns):
        if rows[place] >= 0:
            continue
        rows[place] = len(texts)
        text = turn.text
        later = place + 2
        joins = later < len(turns) and turns[later].speaker == turn.speaker
        if joins and random.random() < _JOINED_SHARE:
            rows[later] = len(texts)
            text = f"{text} {turns[later].text}"
        texts.append(f"{turn.speaker}: {_greeted(text, addressee[turn.speaker], random)}")
    return TurnPassages(tuple(texts), tuple(rows))


def _greeted(text: str, name: str, random: Random) -> str:
    if random.random() >= _GREETED_SHARE:
        return text
    return random.choice(_GREETINGS).format(name, text)
