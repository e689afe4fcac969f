"""Stage 1: the query's own text, what kind of query it is, and the time that it names.

The rules are data, in `query_rules.toml`: no model, nothing stored. English first, with a few
question words of German, French, Spanish, Chinese and Japanese; whatever else is a `lookup`. Which
state of what changed is asked for is read in Italian, Portuguese, Dutch and Russian as well.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from importlib.resources import files
from itertools import pairwise
from typing import Any, Generic, Literal, TypeVar, get_args

from ekphory.errors import InvalidInput
from ekphory.retrieval.pipeline import NO_HINTS, Intent, QueryClass, QueryHints, SearchState, Stage
from ekphory.time_words.parse import read_time
from ekphory.time_words.reference import TimeReference
from ekphory.types import EPOCH

INTENTS: tuple[Intent, ...] = get_args(Intent)

MOST_CHARACTERS = 2000
"""Characters of a query that are classified, from its end."""
LONGEST = 2000
"""Characters of a query that are searched, as in Memory-Spark."""
READ_PER_KEPT = 50
"""How many times `longest` is read at all, so that time stays bounded."""
OVERLONG = "overlong start"
DEEPEST = 2.0
ENOUGH = 1.0
"""The weight at which an intent is taken."""

_RULES = tomllib.loads(files(__package__).joinpath("query_rules.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """Phrases that mean the same; `query_rules.toml` says what each field is."""

    signal: str
    example: str
    phrases: tuple[str, ...]
    intent: Intent | None = None
    weight: float = 0.0
    hints: QueryHints = NO_HINTS


Tense = Literal["past", "first", "usual"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenseCue:
    """Phrases that ask for the same state of what changed; likewise.

    One without a tense keeps others from being read out of its words.
    """

    signal: str
    example: str
    phrases: tuple[str, ...]
    tense: Tense | None = None
    beside: frozenset[str] = frozenset()


# A mark between words counts as a word, so that no phrase reaches across it.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[?!;,](?=\s+\w)")
# A sentence ends where a word of five letters or more does, so that "Dr. Novak" stays whole.
_SENTENCE_END = re.compile(r"(?<=[?？!！。])\s*|(?<=[^\W\d_]{5}\.)\s+")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_JOINS = frozenset(
    "and or but because if while although unless und oder aber weil wenn et ou mais si parce y o "
    "pero porque".split()
)
_RELATIVES = frozenset({"who", "whom", "which", "whose", "where"})


def _read_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    phrases = tuple(" ".join(phrase.split()) for phrase in rule["phrases"].split(","))
    hints = {"hints": QueryHints(**rule["hints"])} if "hints" in rule else {}
    beside = {"beside": frozenset(rule["beside"].split())} if "beside" in rule else {}
    return {**rule, "phrases": phrases, **hints, **beside}


AnyCue = TypeVar("AnyCue", Cue, TenseCue)


class _Phrases(Generic[AnyCue]):
    """Cues by the phrases that stand for them."""

    def __init__(self, cues: Iterable[AnyCue]) -> None:
        found: dict[str, list[tuple[tuple[str, ...], AnyCue]]] = defaultdict(list)
        self._unspaced: list[tuple[str, AnyCue]] = []
        for cue in cues:
            for phrase in cue.phrases:
                if _UNSPACED.search(phrase):
                    self._unspaced.append((phrase, cue))
                else:
                    words = tuple(words_of(phrase))
                    found[words[0]].append((words, cue))
        # The longest first.
        self._spaced: Mapping[str, Sequence[tuple[tuple[str, ...], AnyCue]]] = {
            first: sorted(each, key=lambda pair: -len(pair[0])) for first, each in found.items()
        }

    def find(self, words: Sequence[str], text: str) -> Iterator[AnyCue]:
        """Yield the cue of each phrase in a text, which has these words."""
        place = 0
        while place < len(words):
            phrase, cue = self._phrase_at(words, place) or ((words[place],), None)
            if cue is not None:
                yield cue
            place += len(phrase)
        if not text.isascii():
            yield from (cue for mark, cue in self._unspaced if mark in text)

    def _phrase_at(self, words: Sequence[str], place: int) -> tuple[tuple[str, ...], AnyCue] | None:
        for phrase, cue in self._spaced.get(words[place], ()):
            if tuple(words[place : place + len(phrase)]) == phrase:
                return phrase, cue
        return None


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; what an apostrophe parts off stands by itself."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text).replace("’", "'")
    return [part for word in _WORD.findall(composed) for part in _split_word(word.lower())]


def _split_word(word: str) -> tuple[str, ...]:
    """Split off what an apostrophe parts from a word: a possessive, or "is"."""
    stem, apostrophe, ending = word.rpartition("'")
    if not apostrophe or ending != "s":
        return (word,)
    return (stem, "is" if stem in _BEFORE_IS else "'s")


_BEFORE_IS = frozenset(
    "what which who whom whose where why when how i we he she they it that here there".split()
)
_QUESTION_OPENERS = frozenset(_RULES["question_openers"].split())
CUES = tuple(Cue(**_read_rule(rule)) for rule in _RULES["cue"])
TENSES = tuple(TenseCue(**_read_rule(rule)) for rule in _RULES["tense"])
_CUE_PHRASES, _TENSE_PHRASES = _Phrases(CUES), _Phrases(TENSES)


def classify_query(text: str) -> QueryClass:
    """Say what kind of query `text` is; see `QueryClass`.

    Of a text with statements and questions only the questions count.
    """
    asked = find_questions(text[-MOST_CHARACTERS:])
    words = words_of(asked)
    # A cue for nothing keeps others from being read out of its words.
    found = dict.fromkeys(_CUE_PHRASES.find(words, asked))
    cues = [cue for cue in found if cue.intent or cue.hints.given]
    intent = _heaviest(cues)
    signals = tuple(dict.fromkeys(cue.signal for cue in cues))
    return QueryClass(intent, _complexity(asked, words), signals, _hints(cues, intent))


def find_tenses(question: str) -> set[Tense]:
    """Return which states the cues of a question ask for."""
    words = words_of(question)
    cues = _TENSE_PHRASES.find(words, question)
    meant = (cue for cue in cues if not cue.beside or not cue.beside.isdisjoint(words))
    return {cue.tense for cue in meant if cue.tense is not None}


def depth_factor(query_class: QueryClass | None) -> float:
    """Return what a search's depth is multiplied by, in [1, `DEEPEST`].

    A plain lookup, and a query of which nothing is known, has 1; a chain 2. Comparisons and
    questions about a time lie between, and complexity adds up to a half.
    """
    if query_class is None:
        return 1.0
    extra: float = _RULES["depth"].get(query_class.intent, 0.0) + 0.5 * query_class.complexity
    return min(1.0 + extra, DEEPEST)


def find_questions(text: str) -> str:
    """Return the questions of a text with statements and questions; else the whole text."""
    sentences = [part for part in _SENTENCE_END.split(text) if part]
    asking = [part for part in sentences if part.rstrip().endswith(("?", "？"))]
    return " ".join(asking) if asking and len(asking) < len(sentences) else text


def is_question(text: str) -> bool:
    """Return whether a text asks for something: by its mark, or in English by how it begins."""
    first, *_ = text.lower().split() or [""]
    return "?" in text or "？" in text or first in _QUESTION_OPENERS


def _heaviest(cues: Iterable[Cue]) -> Intent:
    weights: dict[Intent, float] = dict.fromkeys(INTENTS, 0.0)
    for cue in cues:
        if cue.intent is not None:
            weights[cue.intent] += cue.weight
    # Of equal ones the later, which asks for more.
    best = max(reversed(INTENTS), key=weights.__getitem__)
    return best if weights[best] >= ENOUGH else "lookup"


def _hints(cues: Iterable[Cue], intent: Intent) -> QueryHints:
    strongest: dict[str, float] = defaultdict(float)
    for cue in cues:
        # What speaks for another intent was misread, or matters less.
        if cue.intent in (None, intent):
            for name, strength in cue.hints.given.items():
                strongest[name] = max(strongest[name], strength)
    return QueryHints(**strongest)


def _complexity(text: str, words: Sequence[str]) -> float:
    """Return .2 for a further clause, .1 for a name after the first, .02 for a word after eight."""
    clauses = sum(word in _JOINS for word in words) + sum(
        word in _RELATIVES and before not in _JOINS for before, word in pairwise(words)
    )
    length = sum(word[0].isalnum() for word in words) - 8
    names = sum(word[0].isupper() or word[0].isdigit() for word in text.split()[1:] if word != "I")
    return round(min(1.0, 0.2 * clauses + 0.1 * max(0, names - 1) + 0.02 * max(0, length)), 2)


# What hosts of agents put around a message: taken out of a query, and told.


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """A stretch of text from a mark at which it opens to the next mark at which it closes."""

    name: str | None
    opens: re.Pattern[str]
    closes: re.Pattern[str]


BLOCKS = tuple(
    QueryBlock(rule.get("name"), re.compile(rule["opens"]), re.compile(rule.get("closes", "")))
    for rule in _RULES["block"]
)
# Marks at the start of a line, and lines that are nothing else, each with its name.
_PREFIXES = [(rule["name"], re.compile(rf"{rule['pattern']}\s*+")) for rule in _RULES["prefix"]]
_LINES = [(rule["name"], re.compile(rule["pattern"])) for rule in _RULES["line"]]
_TASK_QUEUE = re.compile(_RULES["task_queue"]["pattern"], re.MULTILINE | re.VERBOSE)
# At one place the first that matches decides; all begin with a plain character.
_ANY_BLOCK = re.compile("|".join(block.opens.pattern for block in BLOCKS))


@dataclass(frozen=True, slots=True)
class Removal:
    """How often one kind of thing was removed, and how long it was in all."""

    count: int
    characters: int


@dataclass(frozen=True, slots=True)
class CleanedQuery:
    """A query in one line.

    Attributes:
        text: What is searched; empty only where nothing but white space was given.
        removed: By name what was removed.
        kept_as_given: Whether nothing but wrapping was given, so that it is searched itself.
    """

    text: str
    removed: Mapping[str, Removal]
    kept_as_given: bool = False


_Removed = dict[str, Removal]


def _count_removed(removed: _Removed, name: str, characters: int) -> None:
    if characters:
        before = removed.get(name, Removal(0, 0))
        removed[name] = Removal(before.count + 1, before.characters + characters)


def clean_query(text: str, *, longest: int = LONGEST) -> CleanedQuery:
    """Remove wrapping, fold white space, and keep the last `longest` characters.

    What is clean already is left as it is: cleaning twice is cleaning once. Where nothing would be
    left, the text itself is searched, in one line, so that no search fails because of cleaning.

    Raises:
        InvalidInput: `longest` is less than 1.
    """
    if longest < 1:
        raise InvalidInput("longest", longest, "no character would be left", "Give at least 1")
    cleaned = _reduce(text, longest)
    if cleaned.text or not text.strip():
        return cleaned
    # In one line less is recognised, since what marks a line needs its line.
    folded = _take_end(_fold(text[-READ_PER_KEPT * longest :]), longest)
    again = _reduce(folded, longest)
    return CleanedQuery(again.text or folded, again.removed if again.text else {}, True)


def _reduce(text: str, longest: int) -> CleanedQuery:
    removed: _Removed = {}
    before, after = None, text[-READ_PER_KEPT * longest :]
    _count_removed(removed, OVERLONG, len(text) - len(after))
    # From the second round on at most `longest` characters, fewer each time.
    while after != before:
        before = after
        folded = _fold(_remove_wrapping(before, removed))
        after = _take_end(folded, longest)
        _count_removed(removed, OVERLONG, len(folded) - len(after))
    return CleanedQuery(after, removed)


def _fold(text: str) -> str:
    return " ".join(text.split())


def _take_end(folded: str, longest: int) -> str:
    return folded[-longest:].lstrip()


def _remove_wrapping(text: str, removed: _Removed) -> str:
    without_blocks = _remove_blocks(text.replace("\r\n", "\n").replace("\r", "\n"), removed)

    def take_out(queue: re.Match[str]) -> str:
        _count_removed(removed, "task queue", len(queue[0]))
        return ""

    without_queues = _TASK_QUEUE.sub(take_out, without_blocks)
    return "\n".join(_remove_marks(line, removed) for line in without_queues.split("\n"))


def _remove_blocks(text: str, removed: _Removed) -> str:
    pieces: list[str] = []
    unclosed: set[re.Pattern[str]] = set()
    kept_from = position = 0
    while opening := _ANY_BLOCK.search(text, position):
        start, position = opening.span()
        block = next(block for block in BLOCKS if block.opens.match(text, start))
        # A mark that is not found once is not found further on either: time stays linear.
        closing = None if block.closes in unclosed else block.closes.search(text, position)
        if closing is None:
            unclosed.add(block.closes)
            continue
        position = closing.end()
        if block.name is not None:
            # A space keeps what stood before and after apart.
            pieces += [text[kept_from:start], " "]
            _count_removed(removed, block.name, position - start)
            kept_from = position
    return "".join([*pieces, text[kept_from:]])


def _remove_marks(line: str, removed: _Removed) -> str:
    rest = line.strip()
    position = 0
    while mark := _mark_at(rest, position):
        name, end = mark
        _count_removed(removed, name, end - position)
        position = end
    rest = rest[position:]
    for name, pattern in _LINES:
        if pattern.fullmatch(rest):
            _count_removed(removed, name, len(rest))
            return ""
    return rest


def _mark_at(line: str, position: int) -> tuple[str, int] | None:
    for name, pattern in _PREFIXES:
        found = pattern.match(line, position)
        if found:
            return name, found.end()
    return None


# Stage 1: the query without what a host has put around it, in one line, of a sensible length.


@dataclass(frozen=True, kw_only=True, eq=False)
class CleanQuery(Stage):
    """Removes wrapping and folds white space; of an overlong query the end is kept.

    The cleaned query is empty only where nothing but white space was asked: where nothing but
    wrapping was, it is searched as it is, and the trace says so in `kept_as_given`.
    """

    number = 1
    name = "clean query"
    gives = frozenset({"query"})

    longest: int = LONGEST

    def run(self, state: SearchState) -> SearchState:
        """Clean the query's text."""
        cleaned = clean_query(state.text, longest=self.longest)
        notes = {
            "characters_removed": len(state.text) - len(cleaned.text),
            "removed": {name: asdict(removal) for name, removal in cleaned.removed.items()},
            "kept_as_given": cleaned.kept_as_given,
        }
        return replace(state, text=cleaned.text, notes=notes)


# Stage 1, second half: what kind of query it is.


class ClassifyQuery(Stage):
    """Says what kind of query it is, by its words alone; later stages search and weigh by it."""

    number = 1
    name = "classify query"
    needs = frozenset({"query"})
    gives = frozenset({"query_class"})

    def run(self, state: SearchState) -> SearchState:
        """Classify the query's text."""
        found = classify_query(state.text)
        notes = {
            "intent": found.intent,
            "complexity": found.complexity,
            "signals": list(found.signals),
            "hints": found.hints.given,
            "depth_factor": depth_factor(found),
        }
        return replace(state, query_class=found, notes=notes)


# Stage 1, last part: which time the query names.


class ReadTime(Stage):
    """Reads the time in the query's words: "last Tuesday", "in May", "our third session"."""

    number = 1
    name = "read time"
    needs = frozenset({"query"})
    gives = frozenset({"time"})

    def skip_reason(self, state: SearchState) -> str | None:
        """Nothing to read where the caller wants time ignored."""
        return "time is ignored on request" if state.request.time == "ignore" else None

    def run(self, state: SearchState) -> SearchState:
        """Read the query's text, or the one that names the time in its place."""
        now = EPOCH + timedelta(microseconds=state.request.now)
        other = state.request.times_of
        text = state.text if other is None else clean_query(other).text
        reading = read_time(text, now=now, timezone=state.request.timezone)
        notes: dict[str, object] = {"found": [_note(each) for each in reading.references]}
        if reading.only_time:
            notes["asks_for"] = "the time alone"
        return replace(state, reading=reading, notes=notes, degraded=reading.missing)


def _note(reference: TimeReference) -> dict[str, object]:
    note: dict[str, object] = {"text": reference.text, "confidence": reference.confidence}
    if reference.kind == "event":
        note["unknown"] = "when that was; nothing is filtered or lifted by it"
    if reference.sessions is not None:
        note["sessions"] = [reference.sessions.first, reference.sessions.last]
    if reference.interval is not None:
        start, end = reference.interval.start, reference.interval.end
        note["from"] = None if start is None else start.isoformat()
        note["until"] = None if end is None else end.isoformat()
    return note
