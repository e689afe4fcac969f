"""Questions about the slots of task dialogues: who asked for what, who offered what."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

SERVICE_NOUNS: Mapping[str, str] = {
    "Restaurants": "restaurant",
    "Events": "event",
    "Calendar": "calendar event",
    "Movies": "movie",
    "Travel": "attraction",
    "Media": "film",
    "Weather": "weather",
    "Flights": "flight",
    "Homes": "apartment",
    "RideSharing": "ride",
    "Hotels": "hotel",
    "Banks": "bank account",
    "Music": "song",
    "Buses": "bus",
    "RentalCars": "rental car",
    "Services": "appointment",
}
_ASKED = (
    "What {slot} did {user} want for the {noun}?",
    "Which {slot} did {user} ask for?",
    "What {slot} did {user} mention for the {noun}?",
    "What {slot} does {user} prefer?",
    "Which {slot} did {user} give {assistant} for the {noun}?",
)
_ASKED_WHEN = (
    "When does {user} want the {noun}?",
    "For when did {user} need the {noun}?",
    "What {slot} did {user} choose for the {noun}?",
    "When did {user} say the {noun} should be?",
)
_ASKED_WHERE = (
    "Where did {user} want the {noun}?",
    "Where was {user} looking for the {noun}?",
    "Which {slot} did {user} name for the {noun}?",
    "In which place does {user} need the {noun}?",
)
_ASKED_COUNT = (
    "How many {counted} did {user} ask for?",
    "For how many {counted} did {user} want the {noun}?",
)
_OFFERED = (
    "Which {slot} did {assistant} suggest to {user}?",
    "What {slot} did {assistant} recommend?",
    "What {slot} did {assistant} find for {user}?",
    "Which {noun} {slot} did {assistant} offer {user}?",
)
_TOLD = (
    "What is the {slot} of the {noun} that {user} asked about?",
    "What {slot} did {assistant} tell {user}?",
    "What did {assistant} say about the {slot}?",
    "Which {slot} did {user} get from {assistant}?",
)
_WHEN_WORDS = ("date", "time")
_WHERE_WORDS = ("city", "location", "destination", "origin", "area", "station", "airport", "where")
_COUNT_PREFIX = "number of "
_ABOUT = (" about {}", " for {}", " with {}", ", given {},")


def slot_question(kind: str, slot: str, noun: str, random: Random) -> str:
    """Give a question about one slot, with the places `{user}` and `{assistant}` for names.

    Args:
        kind: `asked` for what the user informs of, `offered` or `told` for the assistant.
        slot: The slot's name, with underscores.
        noun: What the dialogue is about.
        random: Chooses the wording.
    """
    words = slot.replace("_", " ")
    counted = words.removeprefix(_COUNT_PREFIX)
    wording = random.choice(_templates(kind, words))
    return wording.replace("{slot}", words).replace("{noun}", noun).replace("{counted}", counted)


def with_detail(question: str, value: str, random: Random) -> str:
    """Put a value that the same dialogue names before the question mark."""
    detail = random.choice(_ABOUT).format(value).rstrip(",")
    return question.removesuffix("?") + detail + "?"


def _templates(kind: str, words: str) -> tuple[str, ...]:
    if kind == "offered":
        return _OFFERED
    if kind == "told":
        return _TOLD
    if words.startswith(_COUNT_PREFIX):
        return _ASKED_COUNT
    if any(word in words for word in _WHEN_WORDS):
        return _ASKED_WHEN
    if any(word in words for word in _WHERE_WORDS):
        return _ASKED_WHERE
    return _ASKED
