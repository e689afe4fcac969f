"""Generated memories and questions with their vectors: the same ones for the same seed."""

from __future__ import annotations

import hashlib
import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import accumulate
from pathlib import Path

import numpy as np

from ekphory.models.embedder import EmbedderIdentity, EmbeddingModel, FloatMatrix
from ekphory_lab.bench.options import TURNS

# The words of generated memories: hand-written topics, and coined names without end.

NAMES = 1_000_000
"""How many coined names there are."""
_NAME_TAIL = 2.5
_FREQUENT_NAMES = 20


@dataclass(frozen=True, slots=True)
class Ranked:
    """Words from frequent to rare.

    Attributes:
        words: In the order of their frequency.
        cumulative: Sums of the weights 1 / (rank + 2), as Zipf's law with Mandelbrot's offset.
    """

    words: tuple[str, ...]
    cumulative: tuple[float, ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Ranked:
        """Rank words by their order."""
        weights = (1 / (rank + 2) for rank in range(1, len(words) + 1))
        return cls(tuple(words), tuple(accumulate(weights)))

    def draw(self, source: random.Random) -> str:
        """Draw a word by its frequency."""
        return source.choices(self.words, cum_weights=self.cumulative)[0]


@dataclass(frozen=True, slots=True)
class Topic:
    """What one conversation is about.

    Attributes:
        nouns, verbs, adjectives: Its own words.
    """

    nouns: Ranked
    verbs: Ranked
    adjectives: Ranked

    def compound(self, noun: str) -> str:
        """Join the noun with the one that always follows it, as collocations do."""
        words = self.nouns.words
        return f"{noun} {words[(words.index(noun) * 5 + 3) % len(words)]}"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All words and phrases.

    Attributes:
        topics: From frequent to rare.
        general: Words that every topic shares, by the name of their slot.
        phrases: Sentences of a memory, with slots.
        frames: Questions, with slots.
        syllables: What names are coined from.
    """

    topics: tuple[Topic, ...]
    general: Mapping[str, Ranked]
    phrases: Ranked
    frames: tuple[str, ...]
    syllables: tuple[str, ...]

    def name(self, number: int) -> str:
        """Coin the name with that number; always the same one."""
        source = random.Random(f"name {number}")  # noqa: S311  no secret
        return "".join(source.choices(self.syllables, k=source.randint(2, 4))).capitalize()

    def draw_name(self, source: random.Random) -> str:
        """Draw a coined name: few are frequent, most are rare, and new ones keep coming."""
        number = int(_FREQUENT_NAMES * (1 - source.random()) ** -_NAME_TAIL)
        return self.name(min(number, NAMES))


@cache
def vocabulary() -> Vocabulary:
    """Read the words that lie beside this file."""
    text = files("ekphory_lab.bench").joinpath("words.toml").read_text(encoding="utf-8")
    given = tomllib.loads(text)
    topics = (
        Topic(*(_ranked(topic[kind]) for kind in ("nouns", "verbs", "adjectives")))
        for topic in given["topics"]
    )
    return Vocabulary(
        topics=tuple(topics),
        general={slot: _ranked(words) for slot, words in given["general"].items()},
        phrases=Ranked.of(given["phrases"]),
        frames=tuple(given["frames"]),
        syllables=tuple(given["syllables"].split()),
    )


def _ranked(words: str) -> Ranked:
    return Ranked.of(words.split())


# Generates memories and questions: the same ones for the same seed, any stretch by itself.
#
# Frequencies follow Zipf's law; a conversation keeps to a topic and to a few of its nouns, names
# and places, so that vectors form clusters within clusters, as real conversations do. A memory has
# 38 tokens of the bundled model on average, its producer included: what LoCoMo's turns have.

_FIRST_SESSION = datetime(2025, 1, 6, 8, 0, tzinfo=UTC)
_BETWEEN_SESSIONS = timedelta(minutes=4)
_BETWEEN_TURNS = timedelta(seconds=70)
_MEDIAN_WORDS = 18.9
_SPREAD = 0.62
_MOST_WORDS = 70
_FOCUS = 0.7
_OFF_TOPIC = 0.08
_QUERY_WORDS = range(5, 13)
_SPARE_QUERIES = 8
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

    def asked(self, k: int) -> dict[str, str | int]:
        """Return what a measuring process is told."""
        return {"text": self.text, "project": self.project, "k": k}


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
        """Return the memories numbered from `start` up to `stop`, for `Memory.add_many`."""
        for number in range(start // TURNS, -(-stop // TURNS)):
            first = number * TURNS
            for place, record in enumerate(self._session(number)):
                if start <= first + place < stop:
                    yield record

    def project(self, session: int) -> str:
        """Return the scope of a session."""
        return f"project-{session % self.scopes:02d}"

    def projects(self) -> list[str]:
        """All scopes."""
        return [self.project(number) for number in range(self.scopes)]

    def queries(self, count: int, *, rows: int) -> list[BenchQuery]:
        """Return distinct questions about the first `rows` memories, in random order of scopes."""
        source = random.Random(f"queries {self.seed} {rows}")  # noqa: S311  no secret
        found: dict[str, BenchQuery] = {}
        while len(found) < count:
            number = source.randrange(max(1, rows // TURNS))
            text = _Session(self.seed, number).question(source)
            found.setdefault(text, BenchQuery(text, self.project(number)))
        return list(found.values())

    def cold_and_warm(self, count: int, *, rows: int) -> tuple[list[BenchQuery], list[BenchQuery]]:
        """Return a question for each scope that holds something, and `count` others."""
        scopes = min(self.scopes, max(1, rows // TURNS))
        first: dict[str, BenchQuery] = {}
        others: list[BenchQuery] = []
        for query in self.queries(scopes * _SPARE_QUERIES + count, rows=rows):
            if first.setdefault(query.project, query) is not query:
                others.append(query)
        return list(first.values()), others[:count]

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
            end = "" if phrase[-1] in ".!?" else "."
            parts.append(_capitalised(phrase) + end)
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


def _capitalised(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:]


# Vectors of generated memories: embedded once, kept on disk, served in place of the model.

BATCH = 256
NOISE = 0.3
"""Length of the random part added to a reused vector of length 1; their cosine is about .96."""
_SAMPLE = 200
_IDENTITY_FILE = "embedder.json"
_VECTOR_FILE = "vectors.f32"


class VectorPool:
    """The vectors of the first memories of a corpus, as rows of 32-bit floats in a file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        identity = json.loads((directory / _IDENTITY_FILE).read_text(encoding="utf-8"))
        self.identity = EmbedderIdentity(**identity)
        self._file = directory / _VECTOR_FILE
        self._row_bytes = 4 * self.identity.dimension

    @classmethod
    def at(cls, cache: Path, *, embedder: EmbeddingModel, corpus: Corpus) -> VectorPool:
        """Open the pool of an embedder and a corpus, or make an empty one."""
        identity = embedder.identity
        name = re.sub(r"[^\w.-]", "-", identity.name)
        parts = [str(identity), *(passage(record) for record in corpus.records(0, _SAMPLE))]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
        directory = cache / f"{name}-{identity.dimension}-{digest}"
        directory.mkdir(parents=True, exist_ok=True)
        fields = json.dumps(asdict(identity))
        (directory / _IDENTITY_FILE).write_text(fields, encoding="utf-8")
        (directory / _VECTOR_FILE).touch()
        return cls(directory)

    def __len__(self) -> int:
        return self._file.stat().st_size // self._row_bytes

    def extend(self, texts: Sequence[str], *, embedder: EmbeddingModel) -> None:
        """Embed further texts, in order, and keep their vectors."""
        with self._file.open("r+b") as stream:
            # An interrupted run may have left a part of a row.
            stream.seek(len(self) * self._row_bytes)
            stream.truncate()
            for first in range(0, len(texts), BATCH):
                vectors = embedder.encode(texts[first : first + BATCH])
                stream.write(np.ascontiguousarray(vectors, np.float32).tobytes())
                stream.flush()

    def rows(self, start: int, stop: int) -> FloatMatrix:
        """Vectors of the memories from `start` up to `stop`; beyond the pool reused with noise."""
        size = len(self)
        own = self._read(min(start, size), min(stop, size))
        reused = [self._reused(number, size) for number in range(max(start, size), stop)]
        return np.concatenate([own, *reused]) if reused else own

    def _read(self, start: int, stop: int) -> FloatMatrix:
        # Read, not mapped: mapped pages would count as memory of the process that is measured.
        with self._file.open("rb") as stream:
            stream.seek(start * self._row_bytes)
            values = np.fromfile(stream, np.float32, (stop - start) * self.identity.dimension)
        return values.reshape(-1, self.identity.dimension)

    def _reused(self, number: int, size: int) -> FloatMatrix:
        vector = self._read(number % size, number % size + 1)
        noise = np.random.default_rng(number).standard_normal(vector.shape, np.float32)
        noisy = vector + noise * np.float32(NOISE / np.sqrt(self.identity.dimension))
        return np.asarray(noisy / np.linalg.norm(noisy), np.float32)


class PooledEmbedder:
    """An embedder that gives announced passages their vectors from a pool; the rest is the model's.

    The model is loaded only when a query or another passage needs it.
    """

    def __init__(self, pool: VectorPool, load_model: Callable[[], EmbeddingModel]) -> None:
        self._pool = pool
        self._load_model = load_model
        self._model: EmbeddingModel | None = None
        self._announced: dict[str, FloatMatrix] = {}

    @property
    def identity(self) -> EmbedderIdentity:
        """That of the model."""
        return self._pool.identity

    @property
    def model(self) -> EmbeddingModel:
        """The model itself."""
        if self._model is None:
            self._model = self._load_model()
        return self._model

    def announce(self, records: Sequence[dict[str, object]], *, start: int) -> None:
        """Say which records come next, numbered from `start`: their vectors are in the pool."""
        vectors = self._pool.rows(start, start + len(records))
        self._announced = {
            passage(record): vector for record, vector in zip(records, vectors, strict=True)
        }

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Return passages their vectors."""
        unknown = [text for text in texts if text not in self._announced]
        computed = iter(self.model.encode(unknown)) if unknown else iter(())
        rows = [
            self._announced[text] if text in self._announced else next(computed) for text in texts
        ]
        return np.array(rows, np.float32).reshape(len(texts), self.identity.dimension)

    def encode_query(self, texts: Sequence[str]) -> FloatMatrix:
        """Embed queries with the model."""
        return self.model.encode_query(texts)

    def windows(self, text: str, *, prefix: str = "") -> list[str]:
        """Split as the model does; announced passages fit."""
        if prefix + text in self._announced:
            return [prefix + text]
        return self.model.windows(text, prefix=prefix)


def passage(record: dict[str, object]) -> str:
    """Return the text of a record as it is embedded."""
    return f"{record['producer']}: {record['text']}"
