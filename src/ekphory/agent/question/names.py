"""Names in a text: runs of words that are written as names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ekphory.agent.question.relations import is_relation
from ekphory.agent.question.words import PARTICLES, folded, meaning_words

Style = Literal["question", "memory"]
"""In a question a title keeps its commas, colons and brackets; in a memory a name ends there."""

_WORD = re.compile(r"[^\W_]+(?:[-’'][^\W_]+)*")
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
    "question": PARTICLES | {"on", "in"},
    "memory": PARTICLES,
}
# Words that begin a sentence or a question and name nothing.
_OPENERS = frozenset(
    "a an the this that these those who whom whose what which when where why how is are was "
    "were be been am do does did has have had can could will would shall should may might must "
    "and or but if so because while although though then there here it its he him his she her "
    "hers they them their we us our you your i my me in on at by for from of to with about "
    "after before since until during between among into over under as than not no yes please "
    "name tell give list find show say describe explain both either neither each every all any "
    "some many much most more few one two three several other another also just only even still "
    "now today yesterday tomorrow once later however instead meanwhile next last first well oh "
    "hi hello hey ok okay thanks thank sorry sure let lets let's don't didn't i'm i've i'll i'd "
    "it's that's he's she's we're they're you're what's who's where's".split()
)
_INTERJECTIONS = frozenset(
    "yeah wow cool yup yep nope haha aww oops hmm absolutely totally definitely exactly congrats "
    "congratulations right true good glad thankfully agreed noted fine great nice awesome sounds "
    "sadly luckily honestly actually maybe perhaps anyway also still".split()
)
_VERBS = frozenset(
    "is was are were has had have will would can could may might and or of who which that brought "
    "wrote took gave went came said told met made bought sold knew kept left lost ran sang sat saw "
    "sent spoke taught thought won began built found got grew heard held led read drew ate chose "
    "fell felt flew hid paid put rode rose set shot slept stood swam wore van von de der del di da "
    "du bin ibn al".split()
)
_LONGEST_NUMBER = 4
_SEEN = 24
_NEXT_WORD = re.compile(r" ([a-zà-ÿ]+)")
_SPEAKING = frozenset(("i", "i'm", "i've", "i'll", "i'd"))
_NEVER_ALONE = frozenset(
    "i i'm i've i'll i'd monday tuesday wednesday thursday friday saturday sunday january february "
    "march april may june july august september october november december mr mrs ms dr ok".split()
)


@dataclass(frozen=True, slots=True)
class Name:
    """A name and where it stands.

    Attributes:
        text: As written, without a possessive ending.
        start, end: Its place in the text.
    """

    text: str
    start: int
    end: int

    @property
    def words(self) -> frozenset[str]:
        """Its words for comparing, without articles and the like."""
        return meaning_words(self.text)


def names_in(text: str, *, style: Style) -> tuple[Name, ...]:
    """Find names: capitalised words with what may stand between them.

    A capital at the beginning of a sentence counts where what follows goes with a name. Days and
    months alone are no names.
    """
    found: list[Name] = []
    for run in _Scan(text, style).runs():
        start, end = run[0].start(), run[-1].end()
        if found and start < found[-1].end:
            continue  # within the bracket of the name before it
        end = start + len(_POSSESSIVE.sub("", text[start:end]))
        if style == "question" and (bracket := _BRACKET.match(text, end)):
            end = bracket.end()
        name = Name(text[start:end], start, end)
        if len(name.text) > 1 and not _is_date(name):
            found.append(name)
    return tuple(found)


def _is_date(name: Name) -> bool:
    """Whether all of it is days, months, numbers and small words."""
    return all(word in _NEVER_ALONE or word[0].isdigit() for word in name.words - {"on", "in"})


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
        """Give the words of each name."""
        before: re.Match[str] | None = None
        for word in _WORD.finditer(self.text):
            gap = self.text[before.end() : word.start()] if before else ""
            joins = before is not None and self._joins(gap, before[0])
            if self.run and not (joins and len(self.waiting) <= _MOST_PARTICLES):
                yield self._taken()
            is_first = before is None or bool(_SENTENCE_BREAK.search(gap))
            if self._belongs(word, is_first=is_first):
                self.run += [*self.waiting, word]
                self.waiting = []
            elif self.run and gap == " " and word[0] in _INSIDE[self.style]:
                self.waiting.append(word)
            elif self.run:
                yield self._taken()
            if self.run and not self.waiting and self._ends_at(word):
                yield self._taken()
            before = word
        if self.run:
            yield self._taken()

    def _taken(self) -> list[re.Match[str]]:
        taken, self.run, self.waiting = self.run, [], []
        return taken

    def _joins(self, gap: str, before: str) -> bool:
        if _GAPS[self.style].fullmatch(gap):
            return True
        return bool(_INITIAL_GAP.fullmatch(gap) and _ABBREVIATION.fullmatch(before))

    def _belongs(self, word: re.Match[str], *, is_first: bool) -> bool:
        written, lower = word[0], folded(word[0])
        if is_first and (lower in _OPENERS or self._only_opens(word)):
            return False
        if written[0].isdigit() or lower == "i":
            goes_on = self.style == "question" and not is_first and self._before_capital(word)
            return len(written) <= _LONGEST_NUMBER and (goes_on or self._inside(written))
        return written[0].isupper() and lower not in _SPEAKING and not self._is_office(word)

    def _inside(self, written: str) -> bool:
        return bool(self.run) and written[0].isdigit()

    def _only_opens(self, word: re.Match[str]) -> bool:
        """Whether a capital at the beginning of a memory's sentence marks no name."""
        if self.style == "question" or self.run or _POSSESSIVE.search(word[0]):
            return False
        follows = self.text[word.end() : word.end() + _SEEN]
        if follows[:1] in "!?…" and follows:
            return True
        if follows[:1] == ",":
            return folded(word[0]) in _INTERJECTIONS
        after = _NEXT_WORD.match(follows)
        return after is not None and not _goes_with_a_name(after[1])

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


def _goes_with_a_name(word: str) -> bool:
    """Whether a word in lower case may follow a name: a verb that tells something."""
    return word in _VERBS or word.endswith("ed") or (len(word) > 3 and word.endswith("s"))
