"""Generates memories and questions: the same ones for the same seed, any stretch by itself.

Frequencies follow Zipf's law; a conversation keeps to a topic and to a few of its nouns, names and
places, so that vectors form clusters within clusters, as real conversations do. A memory has 38
tokens of the bundled model on average, its producer included: what LoCoMo's turns have.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ekphory.bench.vocabulary import Topic, vocabulary

TURNS = 25
"""Memories in a session."""

_FIRST_SESSION = datetime(2025, 1, 6, 8, 0, tzinfo=UTC)
_BETWEEN_SESSIONS = timedelta(minutes=4)
_BETWEEN_TURNS = timedelta(seconds=70)
_MEDIAN_WORDS = 18.9
_SPREAD = 0.62
_MOST_WORDS = 70
_FOCUS = 0.7
_OFF_TOPIC = 0.08
_QUERY_WORDS = range(5, 13)
_POOLS = ("agent_memory", "agent_tools", "agent_mistakes", "shared_knowledge")
_POOL_SHARES = (0.8, 0.08, 0.04, 0.08)
_CHANNELS = ("chat", "mail", "meeting")
_SLOT = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """A question about an existing memory.

    Attributes:
        text: 5 to 12 words.
        project: The scope that holds what it is about.
    """

    text: str
    project: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Memories without end, numbered from 0.

    Attributes:
        seed: Decides every word.
        scopes: Number of projects that the sessions are dealt to in turn; it changes no text.
    """

    seed: int = 7
    scopes: int = 50

    def records(self, start: int, stop: int) -> Iterator[dict[str, object]]:
        """Give the memories numbered from `start` up to `stop`, for `Memory.add_many`."""
        for number in range(start // TURNS, -(-stop // TURNS)):
            first = number * TURNS
            for place, record in enumerate(self._session(number)):
                if start <= first + place < stop:
                    yield record

    def project(self, session: int) -> str:
        """Give the scope of a session."""
        return f"project-{session % self.scopes:02d}"

    def projects(self) -> list[str]:
        """All scopes."""
        return [self.project(number) for number in range(self.scopes)]

    def queries(self, count: int, *, rows: int) -> list[BenchQuery]:
        """Give distinct questions about the first `rows` memories, in random order of scopes."""
        source = random.Random(f"queries {self.seed} {rows}")  # noqa: S311  no secret
        found: dict[str, BenchQuery] = {}
        while len(found) < count:
            number = source.randrange(max(1, rows // TURNS))
            text = _Session(self.seed, number).question(source)
            found.setdefault(text, BenchQuery(text, self.project(number)))
        return list(found.values())

    def _session(self, number: int) -> Iterator[dict[str, object]]:
        session = _Session(self.seed, number)
        begin = _FIRST_SESSION + _BETWEEN_SESSIONS * number
        for sequence in range(TURNS):
            source = session.source
            record: dict[str, object] = {
                "id": f"m{number * TURNS + sequence:08d}",
                "text": session.text(),
                "at": begin + _BETWEEN_TURNS * sequence,
                "producer": session.speakers[sequence % 2],
                "project": self.project(number),
                "session": f"session-{number}",
                "sequence": sequence,
                "pool": source.choices(_POOLS, _POOL_SHARES)[0],
            }
            if source.random() < 0.2:
                record["importance"] = round(source.random(), 1)
            if source.random() < 0.3:
                record["metadata"] = {"channel": source.choice(_CHANNELS)}
            yield record


class _Session:
    """One conversation: its topic, and the few words of it that keep coming back."""

    def __init__(self, seed: int, number: int) -> None:
        self.source = random.Random(f"session {seed} {number}")  # noqa: S311  no secret
        self._words = vocabulary()
        topics = self._words.topics
        # The topics' own frequencies fall slowly, or one would swallow the others.
        self._topic = topics[int(len(topics) * self.source.random() ** 1.3)]
        self._nouns = self.source.sample(self._topic.nouns.words, 5)
        self._names = [self._words.draw_name(self.source) for _ in range(4)]
        people = self._words.general["person"]
        self.speakers = self.source.sample(people.words, 2)
        self._people = [people.draw(self.source) for _ in range(3)]

    def text(self) -> str:
        """Say something next."""
        target = self.source.lognormvariate(0, _SPREAD) * _MEDIAN_WORDS
        parts: list[str] = []
        length = 0
        while length < min(target, _MOST_WORDS) or not parts:
            phrase = self._filled(self._words.phrases.draw(self.source), self.source)
            parts.append(_sentence(phrase))
            length += len(phrase.split())
        return " ".join(parts)

    def question(self, source: random.Random) -> str:
        """Ask something about this conversation."""
        while True:
            text = self._filled(source.choice(self._words.frames), source)
            if len(text.split()) in _QUERY_WORDS:
                return f"{_capitalised(text)}?"

    def _filled(self, phrase: str, source: random.Random) -> str:
        off_topic = source.random() < _OFF_TOPIC
        topic = source.choice(self._words.topics) if off_topic else self._topic
        return _SLOT.sub(lambda slot: self._word(slot[1], topic, source), phrase)

    def _word(self, slot: str, topic: Topic, source: random.Random) -> str:
        own = {
            "noun": lambda: self._noun(topic, source),
            "compound": lambda: topic.compound(self._noun(topic, source)),
            "other": lambda: topic.nouns.draw(source),
            "verb": lambda: topic.verbs.draw(source),
            "adjective": lambda: topic.adjectives.draw(source),
            "place": lambda: source.choice(self._names[:2]),
            "name": lambda: source.choice(self._names[2:]),
            "number": lambda: str(int(2 + 1.5 / (1.001 - source.random()))),
            "person": lambda: source.choice(self._people),
        }
        return own[slot]() if slot in own else self._words.general[slot].draw(source)

    def _noun(self, topic: Topic, source: random.Random) -> str:
        if topic is self._topic and source.random() < _FOCUS:
            return source.choice(self._nouns)
        return topic.nouns.draw(source)


def _sentence(phrase: str) -> str:
    return _capitalised(phrase) if phrase[-1] in ".!?" else f"{_capitalised(phrase)}."


def _capitalised(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:]
