"""English words of time, as pieces of patterns and as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ekphory.temporal.almanac import Unit

_MONTHS = (
    "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,"
    "september sept sep,october oct,november nov,december dec"
)
_WEEKDAYS = (
    "monday mon,tuesday tues tue,wednesday weds wed,thursday thurs thur thu,friday fri,"
    "saturday sat,sunday sun"
)
_ONES = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
_ONES += "sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINAL_ONES = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
_ORDINAL_ONES += "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
_ORDINAL_TENS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"
_UNITS: dict[Unit, str] = {
    "second": "seconds second secs sec",
    "minute": "minutes minute mins min",
    "hour": "hours hour hrs hr",
    "day": "days day nights night",
    "week": "weeks week",
    "fortnight": "fortnights fortnight",
    "month": "months month",
    "quarter": "quarters quarter",
    "year": "years year yrs yr",
    "decade": "decades decade",
}


def _numbered(names: str) -> dict[str, int]:
    return {
        name: place for place, group in enumerate(names.split(","), 1) for name in group.split()
    }


def _compounds(tens: str, ones: str) -> dict[str, int]:
    return {
        f"{ten} {one}": 10 * place + number
        for place, ten in enumerate(tens.split(), 2)
        for number, one in enumerate(ones.split()[:9], 1)
    }


def any_of(words: Iterable[str]) -> str:
    """Give a pattern for one of some words, longest first, with any space or hyphen inside."""
    longest_first = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(word.replace(" ", r"[\s-]+") for word in longest_first) + ")"


def folded(text: str) -> str:
    """Give words as the tables below have them."""
    return " ".join(text.lower().replace("-", " ").replace(".", "").split())


MONTHS = _numbered(_MONTHS)
"""1 to 12 by name and abbreviation."""
WEEKDAYS = {name: number - 1 for name, number in _numbered(_WEEKDAYS).items()}
"""0 to 6 from Monday, by name and abbreviation."""
UNITS: Mapping[str, Unit] = {name: unit for unit, names in _UNITS.items() for name in names.split()}

_NUMBERS = (
    {word: number for number, word in enumerate(_ONES.split(), 1)}
    | {word: 10 * place for place, word in enumerate(_TENS.split(), 2)}
    | _compounds(_TENS, _ONES)
)
_VAGUE = {"a couple": 2, "a couple of": 2, "couple": 2, "couple of": 2, "a few": 3, "few": 3}
_VAGUE |= {"several": 4}
_ORDINALS = (
    {word: number for number, word in enumerate(_ORDINAL_ONES.split(), 1)}
    | {word: 10 * place for place, word in enumerate(_ORDINAL_TENS.split(), 2)}
    | _compounds(_TENS, _ORDINAL_ONES)
    | {"hundredth": 100}
)

MONTH = any_of(MONTHS) + r"\b\.?"
WEEKDAY_NAME = any_of(WEEKDAYS)
WEEKDAY = WEEKDAY_NAME + r"\b\.?"
UNIT = any_of(UNITS) + r"\b"
YEAR = r"(?:19|20)\d\d(?!\d)"
NUMBER = rf"(?:\d{{1,4}}(?!\d)|{any_of(_NUMBERS)}\b)"
COUNT = rf"(?:\d{{1,4}}(?!\d)|{any_of({*_NUMBERS, *_VAGUE, 'a', 'an'})}\b)"
ORDINAL = rf"(?:\d{{1,4}}(?:st|nd|rd|th)|{any_of(_ORDINALS)})\b"
_DAY_WORDS = [word for word, number in _ORDINALS.items() if number <= 31]
_LAST_OF = "weekend morning afternoon evening spring summer autumn fall winter christmas xmas "
_LAST_OF += "thanksgiving halloween easter"
_NO_LAST_DAY = rf"(?!\s+(?:{UNIT}|{MONTH}|{WEEKDAY}|{any_of(_LAST_OF.split())}\b))"
BEFORE_LAST = rf"before\s+(?:the\s+)?last\b{_NO_LAST_DAY}"
"""Not the beginning of "before last Tuesday"."""
SIDE = r"(?:before|prior\s+to|preceding|after|following)"
DAY_OF_MONTH = rf"(?:(?:[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?|{any_of(_DAY_WORDS)})\b"


def month_number(text: str) -> int:
    """Give 1 to 12 for a match of `MONTH`."""
    return MONTHS[folded(text)]


def weekday_number(text: str) -> int:
    """Give 0 to 6 for a match of `WEEKDAY`."""
    return WEEKDAYS[folded(text)]


def unit_of(text: str) -> Unit:
    """Give the unit for a match of `UNIT`."""
    return UNITS[folded(text)]


def count_of(text: str) -> int:
    """Give the number for a match of `COUNT` or `NUMBER`."""
    word = folded(text)
    if word in ("a", "an"):
        return 1
    return int(word) if word.isdecimal() else (_NUMBERS | _VAGUE)[word]


def step_of(text: str) -> int:
    """Give 1 for words that say "after", -1 for any other match of `SIDE` and for "previous"."""
    return 1 if folded(text) in ("after", "following") else -1


def is_exact(text: str) -> bool:
    """Whether a match of `COUNT` says a number and not some number."""
    return folded(text) not in _VAGUE


def ordinal_of(text: str) -> int:
    """Give the number for a match of `ORDINAL` or `DAY_OF_MONTH`."""
    word = folded(text)
    return _ORDINALS[word] if word in _ORDINALS else int(word.rstrip("stndrh"))
