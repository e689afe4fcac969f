"""The rules of `steering_rules.toml`, compiled to expressions over the codes of words."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain

from ekphory.prompting.disguises import folded
from ekphory.prompting.steering_words import LONGEST_GAP, OTHER, Vocabulary

_MARKS = ".,:\n"
_PAUSE = "[,\n]{0,2}"
_JOINT = "[,:\n]{0,2}"
"""What may stand between two items that follow each other; a colon not between other words."""
_GAP = re.compile(r"~([1-9])")
_CLAUSE = "^"
_LINE = "LINE"
_LEAD_IN = "lead_in"

Words = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to say what a rule looks for.

    Attributes:
        expression: Matches the codes of a text.
        needs: For every item that may not be missing, the codes of which a text must hold one.
    """

    expression: re.Pattern[str]
    needs: tuple[frozenset[str], ...]

    def may_match(self, present: frozenset[str]) -> bool:
        """Say whether a text with these codes can match at all."""
        return not any(codes.isdisjoint(present) for codes in self.needs)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a text says, in all the ways that are known."""

    name: str
    patterns: tuple[Pattern, ...]
    unless: re.Pattern[str] | None

    def matches(self, codes: str, patterns: Collection[Pattern]) -> bool:
        """Say whether one of these patterns is found outside of what `unless` finds."""
        if not any(pattern.expression.search(codes) for pattern in patterns):
            return False
        if self.unless is None:
            return True
        rest = self.unless.sub(OTHER, codes)
        return any(pattern.expression.search(rest) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class RuleBook:
    """All rules, and the words that they know.

    Attributes:
        vocabulary: The words.
        rules: In the order in which they are tried.
        by_code: Patterns with the places of their rules, by the codes of the rarest item of each,
            so that only few patterns are looked at for a text.
    """

    vocabulary: Vocabulary
    rules: tuple[Rule, ...]
    by_code: Mapping[str, tuple[tuple[int, Pattern], ...]]

    def first_match(self, text: str) -> str | None:
        """Give the name of the first rule that a plain text matches."""
        codes = self.vocabulary.encode(text)
        able = self._able_to_match(frozenset(codes))
        rules = ((self.rules[place], able[place]) for place in sorted(able))
        return next((rule.name for rule, patterns in rules if rule.matches(codes, patterns)), None)

    def _able_to_match(self, present: frozenset[str]) -> dict[int, list[Pattern]]:
        able: dict[int, list[Pattern]] = {}
        for code in present:
            for place, pattern in self.by_code.get(code, ()):
                if pattern.may_match(present):
                    able.setdefault(place, []).append(pattern)
        return able


@cache
def rule_book() -> RuleBook:
    """Read and compile the rules; once in a process."""
    source = files("ekphory.prompting").joinpath("steering_rules.toml")
    return compile_rules(source.read_text(encoding="utf-8"))


def compile_rules(toml: str) -> RuleBook:
    """Compile rules in the form that `steering_rules.toml` describes.

    Raises:
        ValueError: A pattern names a list that is not there, has a gap that is too wide, or may be
            empty.
    """
    read = tomllib.loads(toml)
    lists: Words = {name: folded(words).split() for name, words in read["words"].items()}
    patterns = [
        pattern for rule in read["rule"] for pattern in (*rule["patterns"], *rule.get("unless", ()))
    ]
    choices = [_choices(item, lists) for pattern in patterns for item in pattern.split()]
    phrases = chain.from_iterable([*choices, *lists.values()])
    compiler = _Compiler(lists, Vocabulary(chain.from_iterable(map(_words, phrases))))
    rules = tuple(
        Rule(
            rule["name"],
            tuple(map(compiler.pattern, rule["patterns"])),
            compiler.any_of(rule.get("unless", ())),
        )
        for rule in read["rule"]
    )
    return RuleBook(compiler.vocabulary, rules, _by_code(rules))


def _by_code(rules: Iterable[Rule]) -> dict[str, tuple[tuple[int, Pattern], ...]]:
    placed = [(place, pattern) for place, rule in enumerate(rules) for pattern in rule.patterns]
    # Words that many patterns know, such as "you", are also those that most texts hold.
    uses = Counter(code for _, pattern in placed for codes in pattern.needs for code in codes)
    found: dict[str, list[tuple[int, Pattern]]] = {}
    for place, pattern in placed:
        for code in min(pattern.needs, key=lambda codes: max(map(uses.__getitem__, codes))):
            found.setdefault(code, []).append((place, pattern))
    return {code: tuple(patterns) for code, patterns in found.items()}


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Turns patterns into expressions over codes."""

    lists: Words
    vocabulary: Vocabulary

    def pattern(self, source: str) -> Pattern:
        needs = tuple(self._needs(source))
        if not needs:
            raise ValueError(f"{source}: at least one item must not be missing")
        return Pattern(re.compile(self._expression(source)), needs)

    def any_of(self, sources: Iterable[str]) -> re.Pattern[str] | None:
        expressions = [self._expression(source) for source in sources]
        return re.compile("|".join(expressions)) if expressions else None

    def _expression(self, source: str) -> str:
        parts: list[str] = []
        for item in source.split():
            joint = _JOINT if parts and parts[-1] not in self._places() else ""
            parts.append(self._part(item, joint))
        return "".join(parts)

    def _part(self, item: str, joint: str) -> str:
        gap = _GAP.fullmatch(item)
        if gap:
            if int(gap[1]) > LONGEST_GAP:
                raise ValueError(f"{item}: at most {LONGEST_GAP} other words may stand in a gap")
            return f"(?:{_PAUSE}[^{_MARKS}]){{0,{gap[1]}}}?"
        if item == _CLAUSE:
            return self._places()[0]
        if item == _LINE:
            return self._places()[1]
        choice = "|".join(
            "".join(self.vocabulary.code(word) for word in _words(phrase))
            for phrase in _choices(item, self.lists)
        )
        return f"(?:{joint}(?:{choice}))" + ("?" if item.endswith("?") else "")

    def _places(self) -> tuple[str, str]:
        lead_in = "".join(map(self.vocabulary.code, self.lists[_LEAD_IN]))
        return f"(?<![^{_MARKS}{lead_in}])", r"(?<![^.\n])"

    def _needs(self, source: str) -> Iterable[frozenset[str]]:
        for item in source.split():
            choices = _choices(item, self.lists)
            if choices and not item.endswith("?"):
                yield frozenset(self.vocabulary.code(_words(phrase)[0]) for phrase in choices)


def _choices(item: str, lists: Words) -> list[str]:
    """Give the words and phrases that an item stands for; none for places and gaps."""
    if item in (_CLAUSE, _LINE) or _GAP.fullmatch(item):
        return []
    choices: list[str] = []
    for choice in item.removesuffix("?").split("|"):
        if choice.startswith("{"):
            name = choice[1:-1]
            if name not in lists:
                raise ValueError(f"{item}: there is no list {name!r} under [words]")
            choices.extend(lists[name])
        else:
            choices.append(folded(choice))
    return choices


def _words(phrase: str) -> list[str]:
    return phrase.split("+")
