"""Reads out of a question what must be found first, and what is asked of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from typing import Literal, cast

from ekphory.agent.provider import folded, words_in

_RULES = tomllib.loads(files(__package__).joinpath("question_rules.toml").read_text("utf-8"))
WORDS: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split()) for name, words in _RULES["words"].items()
}
"""Sets of words; `question_rules.toml` says what each is."""

# Words for comparing: only those that mean something.

_NO_MEANING = WORDS["particles"] | WORDS["empty"]


def meaning_words(text: str) -> frozenset[str]:
    """Return the words that tell one name from another."""
    words = frozenset(words_in(text))
    return words - _NO_MEANING or words


# Relations


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, such as `director`.

    Attributes:
        word: As the question has it.
        cues: Words and phrases that stand beside the name of the one that is meant.
        through: The relations that it is made of, the nearest first; empty for a simple one.
        is_person: Whether somebody is meant, and no place.
    """

    word: str
    cues: tuple[str, ...]
    through: tuple[str, ...] = ()
    is_person: bool = False


_CUES: Mapping[str, str] = _RULES["relations"]
_SAME: Mapping[str, str] = _RULES["same"]
_THROUGH: Mapping[str, Sequence[str]] = _RULES["through"]
_KNOWN = frozenset((*_CUES, *_SAME, *_THROUGH))


def is_relation(word: str) -> bool:
    """Whether this word, in the singular or plural, says what one thing is to another.

    Those that are listed do, and words that end as those for people who do something.
    """
    said = folded(word)
    return _singular(said) is not None or _does_something(said)


def _does_something(word: str) -> bool:
    if len(word) < 6 or not word.endswith(("er", "or", "ist")):
        return False
    return word not in WORDS["no_doers"]


def relation(word: str) -> Relation:
    """Return the relation of this word; of a word that is not listed the word itself is the cue."""
    said = folded(word)
    name = _singular(said) or said
    listed = _CUES.get(_SAME.get(name, name))
    cues = [name]
    if listed is not None:
        cues += (" ".join(cue.split()) for cue in listed.split(","))
    elif _does_something(name) and not name.endswith("ist"):
        # What memories may say of a doer: "illustrated by" of an illustrator.
        cues += (name[:-2] + ending for ending in ("ed by", "ed", "es", "s"))
    is_person = name not in WORDS["places"] and (name in _KNOWN or _does_something(name))
    return Relation(name, tuple(dict.fromkeys(cues)), tuple(_THROUGH.get(name, ())), is_person)


def _singular(word: str) -> str | None:
    """Return the listed word that this one is, or is the plural of."""
    endings = (("", ""), ("s", ""), ("ies", "y"), ("ren", ""), ("ves", "fe"), ("es", ""))
    for ending, singular in endings:
        if word.endswith(ending):
            stem = word[: len(word) - len(ending)] + singular
            if stem in _KNOWN:
                return stem
    return None


# Names in a text: runs of words that are written as names.

Style = Literal["question", "memory"]
"""In a question a title keeps its commas, colons and brackets; in a memory a name ends there."""

_NAME_WORD = re.compile(r"[^\W_]+(?:[-’'][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s$")
_ABBREVIATION = re.compile(
    r"[A-Z]|[A-Z]?(?:Dr|Jr|Sr|Mr|Mrs|Ms|St|Prof|Hon|Rev|Gen|Col|Capt|Lt|No|Vol)"
)
_INITIAL_GAP = re.compile(r"\. ?")
_GAPS: dict[Style, re.Pattern[str]] = {
    "question": re.compile(r" |- |, |: |! ?| & |/| – |['’] "),
    "memory": re.compile(r" |- | & "),
}
_BRACKET = re.compile(r" ?\([^()]{1,60}\)")
_SENTENCE_BREAK = re.compile(r"[.!?\n\"“”:;(\[]|^$")
_MOST_PARTICLES = 2
_INSIDE: dict[Style, frozenset[str]] = {
    "question": WORDS["particles"] | {"on", "in"},
    "memory": WORDS["particles"],
}
_LONGEST_NUMBER = 4
_SEEN = 24
_NEXT_WORD = re.compile(r" ([a-zà-ÿ]+)")
_VERB = re.compile(r"ed$|...s$")
_NAMES_NONE = WORDS["never_alone"] | {"on", "in"}


ItemKind = Literal["name", "word", "possessive", "mark"]


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of a text.

    Attributes:
        kind: What it is.
        text: Of a name as written, without a possessive ending; else in lower case.
        start, end: Its place in the text.
    """

    kind: ItemKind
    text: str
    start: int
    end: int

    @property
    def words(self) -> frozenset[str]:
        """Its words for comparing, without articles and the like."""
        return meaning_words(self.text)


def names_in(text: str, *, style: Style) -> tuple[Item, ...]:
    """Find names: capitalised words with what may stand between them.

    A capital at the beginning of a sentence counts where what follows goes with a name. Days and
    months alone are no names.
    """
    found: list[Item] = []
    for run in _Scan(text, style).runs():
        start, end = run[0].start(), run[-1].end()
        if found and start < found[-1].end:
            continue  # within the bracket of the name before it
        end = start + len(_POSSESSIVE.sub("", text[start:end]))
        if style == "question" and (bracket := _BRACKET.match(text, end)):
            end = bracket.end()
        name = Item("name", text[start:end], start, end)
        # Days, months, numbers and small words alone are none.
        is_date = all(word in _NAMES_NONE or word[0].isdigit() for word in name.words)
        if len(name.text) > 1 and not is_date:
            found.append(name)
    return tuple(found)


@dataclass(slots=True)
class _Scan:
    """Goes through a text word by word and puts the words of names together.

    Attributes:
        text, style: As for `names_in`.
        run: The words of the name that is being read.
        waiting: Small words after it, which belong to it if another capital follows.
    """

    text: str
    style: Style
    run: list[re.Match[str]] = field(default_factory=list)
    waiting: list[re.Match[str]] = field(default_factory=list)

    def runs(self) -> Iterator[list[re.Match[str]]]:
        """Return the words of each name."""
        before: re.Match[str] | None = None
        for word in _NAME_WORD.finditer(self.text):
            gap = self.text[before.end() : word.start()] if before else ""
            joins = before is not None and self._joins(gap, before[0])
            if self.run and not (joins and len(self.waiting) <= _MOST_PARTICLES):
                yield self._take()
            is_first = before is None or bool(_SENTENCE_BREAK.search(gap))
            if self._belongs(word, is_first=is_first):
                self.run += [*self.waiting, word]
                self.waiting = []
            elif self.run and gap == " " and word[0] in _INSIDE[self.style]:
                self.waiting.append(word)
            elif self.run:
                yield self._take()
            if self.run and not self.waiting and self._ends_at(word):
                yield self._take()
            before = word
        if self.run:
            yield self._take()

    def _take(self) -> list[re.Match[str]]:
        taken, self.run, self.waiting = self.run, [], []
        return taken

    def _joins(self, gap: str, before: str) -> bool:
        is_initial = _INITIAL_GAP.fullmatch(gap) and _ABBREVIATION.fullmatch(before)
        return bool(is_initial or _GAPS[self.style].fullmatch(gap))

    def _belongs(self, word: re.Match[str], *, is_first: bool) -> bool:
        written, lower = word[0], folded(word[0])
        if is_first and (lower in WORDS["openers"] or self._only_opens(word)):
            return False
        if written[0].isdigit() or lower == "i":
            goes_on = self.style == "question" and not is_first and self._before_capital(word)
            inside = bool(self.run) and written[0].isdigit()
            return len(written) <= _LONGEST_NUMBER and (goes_on or inside)
        return written[0].isupper() and lower not in WORDS["speaking"] and not self._is_office(word)

    def _only_opens(self, word: re.Match[str]) -> bool:
        """Whether a capital at the beginning of a memory's sentence marks no name."""
        if self.style == "question" or self.run or _POSSESSIVE.search(word[0]):
            return False
        follows = self.text[word.end() : word.end() + _SEEN]
        if follows[:1] in "!?…" and follows:
            return True
        if follows[:1] == ",":
            return folded(word[0]) in WORDS["interjections"]
        # A verb that tells something may follow a name.
        after = _NEXT_WORD.match(follows)
        return after is not None and after[1] not in WORDS["verbs"] and not _VERB.search(after[1])

    def _ends_at(self, word: re.Match[str]) -> bool:
        """Whether a possessive ends the name; in a title as "Eddie's Father" it does not."""
        goes_on = self.style == "question" and self._before_capital(word)
        return bool(_POSSESSIVE.search(word[0])) and not goes_on

    def _before_capital(self, word: re.Match[str]) -> bool:
        follows = self.text[word.end() : word.end() + 2]
        return follows[:1] == " " and follows[1:].isupper()

    def _is_office(self, word: re.Match[str]) -> bool:
        """Whether a capital only marks an office, as in "the CEO of Acme"."""
        follows = self.text[word.end() : word.end() + 4]
        return is_relation(word[0]) and (follows == " of " or word[0].isupper())


# A question as a list of names, words and possessive endings, in order.

_PIECE = re.compile(
    r"(?P<possessive>['’]s?)(?=\W|$)|(?P<word>[^\W_]+(?:-[^\W_]+|['’](?!s\b)[^\W_]+)*)"
    r"|(?P<mark>[,;:?!])",
    re.IGNORECASE,
)


def _question_items(question: str) -> list[Item]:
    """Cut a question into pieces around the names that are found in it."""
    items: list[Item] = []
    place = 0
    for name in (*names_in(question, style="question"), None):
        for piece in _PIECE.finditer(question, place, name.start if name else len(question)):
            kind = cast("ItemKind", piece.lastgroup)
            items.append(Item(kind, folded(piece[0]), piece.start(), piece.end()))
        if name is not None:
            items.append(name)
            place = name.end
    return items


# Reads out of a question what must be found first, and what is asked of it then.
#
# "Where was the father of Rembrandt's wife born?" begins at Rembrandt, goes on to the wife and from
# her to the father, and asks "Where was … born?" of him. Rules over English words; a question that
# they do not understand is `single`.

QuestionKind = Literal["single", "parallel", "chain"]
"""One lookup; several beside each other; one after the other."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One thread of a question.

    Attributes:
        anchor: The name that it begins at.
        kind: The word before it that says of which kind it is; empty where there is none.
        steps: The relations to follow from there, the nearest first.
        opening, closing: What stands around the one that the steps lead to, in what is asked of it.
        sought: The relation that is asked for at the end; None where something else is.
    """

    anchor: str
    kind: str
    steps: tuple[str, ...]
    opening: str = ""
    closing: str = ""
    sought: str | None = None

    def asked_of(self, entity: str) -> str:
        """Word the end of the question for this entity."""
        return f"{self.opening}{entity}{self.closing}"


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """What a question needs.

    Attributes:
        kind: How it is looked up.
        branches: Its threads; empty for a single lookup.
    """

    kind: QuestionKind
    branches: tuple[Branch, ...] = ()


_LONE_APOSTROPHE = re.compile(r"^['’](?!s\b)")
_MOST_BETWEEN = 3
_THINGS = WORDS["place_words"] | WORDS["things"]
_KINDS = _THINGS | WORDS["people"]
_ASKING, _RANKING = WORDS["asking"], WORDS["ranking"]


_BOTH = WORDS["both"]
_COMPARING = _BOTH | _RANKING | WORDS["comparing"]


@dataclass(frozen=True, slots=True)
class _Path:
    """The relations outward from one name: items `first` to `last` are the whole expression."""

    anchor: str
    kind: str
    steps: tuple[str, ...]
    first: int
    last: int


def read_question(question: str) -> QuestionReading:
    """Read which lookups a question needs."""
    items = _question_items(question)
    names = [place for place, item in enumerate(items) if item.kind == "name"]
    paths = [_path(items, start) for start in names or _owners(items)]
    together = _coordinated(items, paths)
    if len(together) > 1:
        return _side_by_side(items, together)
    longest = max(paths, key=lambda path: len(path.steps), default=None)
    branch = _branch(question, items, longest) if longest is not None and longest.steps else None
    if branch is None or not (branch.steps or relation(branch.sought or "").through):
        return QuestionReading("single")
    return QuestionReading("chain", (branch,))


def _owners(items: Sequence[Item]) -> list[int]:
    """Where there is no name: who has something, as in "my sister's boss"."""
    return [
        place
        for place, (item, following) in enumerate(pairwise(items))
        if item.kind == "word" and item.text not in _ASKING and following.kind == "possessive"
    ]


def _path(items: Sequence[Item], start: int) -> _Path:
    steps, last = _possessives(items, start)
    place, kind = _before_kind(items, start)
    outward, first = _of_chain(items, place)
    if not outward:
        outward, first = _clause(items, place)
    anchor = items[start].text
    if outward and not steps:
        anchor, last = _owned_thing(items, start)
    return _Path(anchor, kind, (*steps, *outward), min(first, place), last)


def _owned_thing(items: Sequence[Item], start: int) -> tuple[str, int]:
    """Read "the author of Pia's favourite book", which begins at the book."""
    if items[start + 1 : start + 2] and items[start + 1].kind == "possessive":
        for place in range(start + 2, min(start + 2 + _MOST_BETWEEN, len(items))):
            if items[place].text in _THINGS:
                words = " ".join(item.text for item in items[start + 2 : place + 1])
                return f"{items[start].text} {words}", place
    return items[start].text, start


def _possessives(items: Sequence[Item], start: int) -> tuple[list[str], int]:
    """Follow 's: the relations after a name, and the last item that belongs to them."""
    steps: list[str] = []
    last = start
    while last + 1 < len(items) and items[last + 1].kind == "possessive":
        found = _relation_after(items, last + 2)
        if found is None:
            break
        steps.append(_with_side(items, found))
        last = found
    return steps, last


def _relation_after(items: Sequence[Item], start: int) -> int | None:
    """Find the relation among the next words, as in "'s new boss"."""
    for place in range(start, min(start + _MOST_BETWEEN, len(items))):
        if items[place].kind != "word":
            return None
        if is_relation(items[place].text):
            return place
    return None


def _with_side(items: Sequence[Item], place: int) -> str:
    side = items[place - 1].text if place and items[place - 1].text in WORDS["sides"] else ""
    return f"{side} {items[place].text}".strip().lower()


def _before_kind(items: Sequence[Item], start: int) -> tuple[int, str]:
    """Step over what says of which kind a name is; return the first place and the kind."""
    place, kind = start, ""
    while place and items[place - 1].kind in ("word", "mark"):
        text = items[place - 1].text
        if text in _KINDS and not kind and items[max(place - 2, 0)].text not in ("which", "what"):
            kind = text
        elif text not in WORDS["determiners"] and not (text == ":" and kind):
            break
        place -= 1
    return place, kind


def _of_chain(items: Sequence[Item], place: int) -> tuple[list[str], int]:
    """Follow "the X of the Y of" to the left; return the relations and the first place."""
    steps: list[str] = []
    while (
        place > 1 and items[place - 1].text in WORDS["links"] and is_relation(items[place - 2].text)
    ):
        steps.append(_with_side(items, place - 2))
        place -= 2 + (" " in steps[-1])
        while place and items[place - 1].text in WORDS["determiners"]:
            place -= 1
    return steps, place


def _clause(items: Sequence[Item], place: int) -> tuple[list[str], int]:
    """Read "the company that published X": the verb is the relation."""
    if (
        place < 3
        or items[place - 2].text not in WORDS["relatives"]
        or items[place - 3].kind != "word"
    ):
        return [], place
    determiner = place - 4
    if determiner < 0 or items[determiner].text not in WORDS["determiners"]:
        return [], place
    return [items[place - 1].text], determiner


def _coordinated(items: Sequence[Item], paths: Sequence[_Path]) -> list[_Path]:
    """Return the things that the question sets beside each other; fewer than two where none are."""
    words = {item.text for item in items if item.kind == "word"}
    row = _longest_row(items, paths)
    if len(row) > 1:
        first, between = row[0].first, items[row[0].last + 1 : row[-1].first]
        is_choice = [item.text for item in items[max(first - 2, 0) : first]] == ["out", "of"]
        says_or = any(item.text == "or" for item in between)
        if says_or or words & _BOTH or is_choice or any(path.steps for path in row):
            return row
    if len(paths) == 2 and words & (_BOTH | _RANKING):
        between = items[paths[0].last + 1 : paths[1].first]
        if any(item.text in WORDS["against"] for item in between):
            return list(paths)
    return []


def _longest_row(items: Sequence[Item], paths: Sequence[_Path]) -> list[_Path]:
    """Return the longest row of paths that are joined by "and", "or" and commas."""
    best: list[_Path] = []
    row: list[_Path] = []
    for path in paths:
        between = items[row[-1].last + 1 : path.first] if row else ()
        is_joint = all(item.text in WORDS["joints"] or item.text in ",?!" for item in between)
        row = [*row, path] if between and is_joint else [path]
        joins = any(item.text in WORDS["joints"] for item in items[row[0].last + 1 : path.first])
        if joins and len(row) > len(best):
            best = row
    return best


def _side_by_side(items: Sequence[Item], paths: Sequence[_Path]) -> QuestionReading:
    """Return a branch to each of the things beside each other; they share their steps."""
    covered = {place for path in paths for place in range(path.first, path.last + 1)}
    rest = [item for place, item in enumerate(items) if place not in covered]
    steps = max((path.steps for path in paths), key=len) or _shared_step(rest)
    asked = [word for word in _asked(rest) if word not in {*steps, *_COMPARING, *WORDS["things"]}]
    closing = "".join(f" {word}" for word in asked)
    return QuestionReading(
        "parallel", tuple(Branch(path.anchor, path.kind, steps, closing=closing) for path in paths)
    )


def _shared_step(rest: Sequence[Item]) -> tuple[str, ...]:
    """Find the relation that is asked of all, as in "which film has the director …, A or B"."""
    for item in rest:
        if item.kind == "word" and is_relation(item.text) and item.text not in _THINGS | _RANKING:
            return (item.text,)
    return ()


def _branch(question: str, items: Sequence[Item], path: _Path) -> Branch:
    rest = [item for place, item in enumerate(items) if not path.first <= place <= path.last]
    if not _asked(rest):
        sought = path.steps[-1]
        return Branch(path.anchor, path.kind, path.steps[:-1], f"{sought} of ", "", sought)
    start, end = items[path.first].start, items[path.last].end
    # Of "Maria's dogs' names" the apostrophe would stay behind.
    closing = _LONE_APOSTROPHE.sub("", question[end:])
    return Branch(path.anchor, path.kind, path.steps, question[:start], closing)


def _asked(rest: Sequence[Item]) -> list[str]:
    """Return the words of what is asked."""
    return [
        item.text for item in rest if item.kind in ("word", "name") and item.text not in _ASKING
    ]
