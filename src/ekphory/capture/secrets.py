"""Finding secrets in texts, before any of it is written.

The rules are data: `gitleaks.toml`, as gitleaks publishes it (MIT, see NOTICE), finds keys by their
form, and `said_secrets.toml` what people say. All patterns run in RE2, which takes time in
proportion to the length of a text, whatever the text.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import re2

from ekphory.types import is_storable

REDACTED = "[redacted]"
"""What stands where a secret stood."""
GITLEAKS_FILE, SAID_FILE = "gitleaks.toml", "said_secrets.toml"
_LONGEST_READ = 100_000
"""Characters that are read at once; a longer text is read in parts."""
_OVERLAP = 20_000
_RANDOM_BITS = 4.2
"""Of a character of a generated key of letters and digits, by Shannon's measure."""
_LONGEST_IBAN = 34
_QUIET = re2.Options()
_QUIET.log_errors = False


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text.

    Attributes:
        start, end: Its characters.
        rule: What found it.
    """

    start: int
    end: int
    rule: str


def redact(text: str, *, found: Iterable[Secret] = ()) -> tuple[str, int]:
    """Return a text without its secrets, and how many there were.

    Args:
        text: What may hold secrets.
        found: Those that something else found in it, beside those that the rules find.
    """
    secrets = merge_secrets([*find_secrets(text), *found])
    return cut_out(text, secrets), len(secrets)


def cut_out(text: str, secrets: Sequence[Secret]) -> str:
    """Return a text with a mark in the place of each of some secrets, in order."""
    parts, done = [], 0
    for secret in secrets:
        parts += [text[done : secret.start], REDACTED]
        done = secret.end
    return "".join([*parts, text[done:]])


def merge_secrets(secrets: Iterable[Secret]) -> list[Secret]:
    """Return secrets in order, those that overlap as one."""
    merged: list[Secret] = []
    for secret in sorted(secrets, key=lambda each: (each.start, -each.end)):
        if merged and secret.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Secret(last.start, max(last.end, secret.end), last.rule)
        else:
            merged.append(secret)
    return merged


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets that the rules find in a text, in order, without overlap.

    In what no store can hold, such as half of a surrogate pair, none is looked for.
    """
    if not is_storable(text):
        return []
    found: set[Secret] = set()
    for start in range(0, max(1, len(text)), _LONGEST_READ - _OVERLAP):
        part = text[start : start + _LONGEST_READ]
        found |= {
            Secret(each.start + start, each.end + start, each.rule) for each in _find_in_part(part)
        }
    return merge_secrets(found)


def _find_in_part(text: str) -> Iterator[Secret]:
    lowered = text.lower()
    for rule in _published_rules():
        if any(keyword in lowered for keyword in rule.keywords):
            yield from rule.find(text)
    for said in said_rules():
        yield from said.find(text)


# The rules of gitleaks, which are theirs: a pattern, how even its characters are, exceptions.


@dataclass(frozen=True, slots=True)
class _Exceptions:
    """What a rule finds and is none.

    Attributes:
        patterns: Any of which lets it pass.
        words: Any of which lets it pass where it is part of it.
        reads: `secret`, `match` or `line`: what the patterns read.
    """

    patterns: tuple[str, ...]
    words: tuple[str, ...]
    reads: str

    def hold(self, *, secret: str, match: str, line: str) -> bool:
        text = {"match": match, "line": line}.get(self.reads, secret)
        lowered = text.lower()
        return any(_compile(each).search(text) for each in self.patterns) or any(
            word in lowered for word in self.words
        )


@dataclass(frozen=True, slots=True)
class _PublishedRule:
    name: str
    pattern: str
    keywords: tuple[str, ...]
    entropy: float
    group: int | None
    exceptions: tuple[_Exceptions, ...]

    def find(self, text: str) -> Iterator[Secret]:
        for match in _compile(self.pattern).finditer(text):
            start, end = match.span(self._group_of(match))
            secret = text[start:end]
            if not secret or entropy(secret) <= self.entropy:
                continue
            begins = text.rfind("\n", 0, start) + 1
            line = text[begins : text.find("\n", end) % (len(text) + 1)]
            given = {"secret": secret, "match": match.group(0), "line": line}
            if not any(each.hold(**given) for each in self.exceptions):
                yield Secret(start, end, self.name)

    def _group_of(self, match: Any) -> int:  # noqa: ANN401  untyped
        if self.group is not None:
            return self.group
        groups = range(1, (match.lastindex or 0) + 1)
        return next((number for number in groups if match.group(number)), 0)


@lru_cache(1)
def _gitleaks() -> Mapping[str, Any]:
    return tomllib.loads(files("ekphory.capture").joinpath(GITLEAKS_FILE).read_text("utf-8"))


@lru_cache(1)
def _published_rules() -> tuple[_PublishedRule, ...]:
    return tuple(
        _PublishedRule(
            rule["id"],
            rule["regex"],
            tuple(rule["keywords"]),
            float(rule.get("entropy", 0.0)),
            rule.get("secretGroup"),
            # Those of all rules hold beside its own.
            tuple(map(_read_exceptions, (*rule.get("allowlists", ()), _gitleaks()["allowlist"]))),
        )
        for rule in _gitleaks()["rules"]
        # A rule without a pattern is about names of files.
        if "regex" in rule
    )


def _read_exceptions(given: Mapping[str, Any]) -> _Exceptions:
    words = tuple(word.lower() for word in given.get("stopwords", ()))
    return _Exceptions(tuple(given.get("regexes", ())), words, given.get("regexTarget", "secret"))


@cache
def _compile(pattern: str) -> Any:  # noqa: ANN401  untyped
    return re2.compile(pattern, _QUIET)


def entropy(text: str) -> float:
    """Return how evenly a text's characters are spread, in bits a character (Shannon 1948)."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())


# What people say.


@dataclass(frozen=True, slots=True)
class SaidRule:
    """A rule of `said_secrets.toml`, which tells what its parts mean."""

    id: str
    pattern: str
    shape: str
    finds: Sequence[str] = ()
    leaves: Sequence[str] = ()

    def find(self, text: str) -> Iterator[Secret]:
        """Return the secrets that it finds in a text."""
        for match in _compile(self.pattern).finditer(text):
            groups = match.re.groupindex
            if "unless" in groups and match.group(groups["unless"]):
                continue
            start, end = match.span(groups["secret"])
            while end > start and text[end - 1] in ".,;:)":
                end -= 1
            if self.shape == "iban":
                end = _end_of_iban(text, start, end)
            if end > start and _SHAPES[self.shape](text[start:end]):
                yield Secret(start, end, self.id)


def find_answers(text: str, before: Sequence[str]) -> list[Secret]:
    """Return the secrets in a text that answers one of the messages before it.

    Args:
        text: What was said.
        before: What was said before, the last one last.
    """
    if not is_storable(text):
        return []
    found: list[Secret] = []
    for asks, rule in _answer_rules():
        if any(asks.search(each) for each in before if is_storable(each)):
            found += rule.find(text)
    return merge_secrets(found)


@lru_cache(1)
def _answer_rules() -> tuple[tuple[Any, SaidRule], ...]:
    return tuple(
        (_compile(rule["asks"]), SaidRule(rule["id"], rule["pattern"], rule["shape"]))
        for rule in _said()["answers"]
    )


@lru_cache(1)
def _said() -> Mapping[str, Any]:
    return tomllib.loads(files("ekphory.capture").joinpath(SAID_FILE).read_text("utf-8"))


@lru_cache(1)
def said_rules() -> tuple[SaidRule, ...]:
    """Return the rules of `said_secrets.toml`."""
    return tuple(SaidRule(**rule) for rule in _said()["rules"])


def _is_mixed(text: str) -> bool:
    if REDACTED in text or not any(map(str.isalnum, text)) or _is_said_of_secrets(text):
        return False
    inner = text[1:-1]
    has_letter = any(map(str.isalpha, text))
    signs = any(not each.isalnum() and each not in "'’-./" for each in text)
    capital_inside = any(map(str.isupper, inner)) and any(map(str.islower, text))
    return has_letter and (any(map(str.isdigit, text)) or signs or capital_inside)


def _is_numbered(text: str) -> bool:
    counts = sum(map(str.isalpha, text)), sum(map(str.isdigit, text))
    return REDACTED not in text and min(counts) >= 1 and not _is_said_of_secrets(text)


def _is_unusual(text: str) -> bool:
    if _is_mixed(text):
        return True
    parts = (text, *re.split(r"[-_]", text))
    return REDACTED not in text and not any(map(_is_said_of_secrets, parts))


def _is_phrase(text: str) -> bool:
    return not any(_is_said_of_secrets(each) for each in re.split(r"[ -]", text))


def _is_said_of_secrets(word: str) -> bool:
    """Return whether a word is said of secrets, and is none: wrong, required, abgelaufen."""
    words, forms = _said_of_secrets()
    return word.casefold() in words or (word.isalpha() and forms.fullmatch(word) is not None)


@lru_cache(1)
def _said_of_secrets() -> tuple[frozenset[str], Any]:
    given = _said()["said_of_secrets"]
    return frozenset(map(str.casefold, given["words"])), _compile(given["forms"])


def passes_luhn(number: str) -> bool:
    """Return whether a number's last digit checks the others (ISO/IEC 7812-1, annex B)."""
    digits = [int(each) for each in number if each.isdigit()]
    doubled = [2 * each - 9 * (each > 4) for each in digits[-2::-2]]
    return (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def _is_card(text: str) -> bool:
    digits = "".join(filter(str.isdigit, text))
    return bool(_CARD.fullmatch(digits)) and len(set(digits)) > 1 and passes_luhn(digits)


_CARD = re.compile(
    r"4\d{12}(?:\d{3})?(?:\d{3})?|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|(?:62|35)\d{14,17}"
)
"""Lengths and first digits of the card networks."""


def is_iban(text: str) -> bool:
    """Return whether the check digits of an account number are right (ISO 13616, ISO 7064)."""
    plain = re.sub(r"[ -]", "", text).upper()
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", plain) or len(plain) > _LONGEST_IBAN:
        return False
    return int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


def _end_of_iban(text: str, start: int, end: int) -> int:
    """Return where an account number ends, behind which the next words look like a part of it."""
    ends = [end, *(place for place in range(end - 1, start, -1) if text[place] in " -")]
    return next((each for each in ends if is_iban(text[start:each])), end)


def _is_key(text: str) -> bool:
    counts = sum(map(str.isalpha, text)), sum(map(str.isdigit, text))
    return REDACTED not in text and min(counts) >= 4 and _changes(text) >= len(text) / 4


def _is_random(text: str) -> bool:
    classes = (str.islower, str.isupper, str.isdigit)
    counts = [sum(map(kind, text)) for kind in classes]
    # Names are words: few digits, and capitals where words begin.
    return min(counts) >= 3 and entropy(text) >= _RANDOM_BITS and _changes(text) >= len(text) / 3


def _changes(text: str) -> int:
    kinds = [
        "l" if c.islower() else "u" if c.isupper() else "d" if c.isdigit() else "s" for c in text
    ]
    return sum(a != b for a, b in pairwise(kinds))


_SHAPES: Mapping[str, Callable[[str], bool]] = {
    "mixed": _is_mixed,
    "numbered": _is_numbered,
    "unusual": _is_unusual,
    "phrase": _is_phrase,
    "digits": lambda text: sum(map(str.isdigit, text)) >= 3,
    "words": lambda _: True,
    "any": lambda text: REDACTED not in text,
    "card": _is_card,
    "iban": is_iban,
    "random": _is_random,
    "key": _is_key,
}
