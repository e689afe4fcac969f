"""Every rule does what its example says; it is Wednesday, 18 November 2026, 15:30."""

import tomllib
from datetime import datetime
from itertools import chain
from pathlib import Path

import pytest

from ekphory.time_words import parse
from ekphory.time_words.reference import find_easter
from ekphory.time_words.rules import DATA, ELSEWHERE_RULES, EVENT_RULES, RULES
from time_words.readings import read, write

PHRASES = tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))


TABLES = {"RULES": RULES, "EVENT_RULES": EVENT_RULES, "ELSEWHERE_RULES": ELSEWHERE_RULES}


@pytest.mark.parametrize("rule", [*chain(*TABLES.values())], ids=lambda rule: rule.example)
def test_a_rule_is_what_reads_its_example(rule, monkeypatch):
    assert write(rule.example) == rule.gives
    reading = read(rule.example)
    for name, rules in TABLES.items():
        monkeypatch.setattr(parse, name, [each for each in rules if each is not rule])
    assert read(rule.example) != reading


@pytest.mark.parametrize("name", DATA["patterns"])
def test_a_pattern_makes_a_difference_to_its_example(name, monkeypatch):
    row = DATA["patterns"][name]
    assert write(row["example"]) == row["gives"]
    reading = read(row["example"])
    monkeypatch.setitem(DATA["patterns"], name, {"pattern": "(?!)"})
    assert read(row["example"]) != reading


@pytest.mark.parametrize(
    ("text", "given"),
    [
        pytest.param(text, given, id=f"{shown}: {text}")
        for shown, phrases in PHRASES.items()
        for text, given in phrases.items()
    ],
)
def test_a_phrase_is_read_as_its_list_says(text, given):
    assert write(text) == given


@pytest.mark.parametrize("code", DATA["languages"])
def test_a_language_is_known_by_its_words_of_time(code):
    assert parse.detect_language(DATA["languages"][code]["example"]) == code


@pytest.mark.parametrize("text", ["Wo wohnt Anna?", "What is on Mars?"])
def test_other_words_are_of_no_language(text):
    assert parse.detect_language(text) is None


@pytest.mark.parametrize(
    ("year", "day"), [(1818, (3, 22)), (1943, (4, 25)), (2000, (4, 23)), (2024, (3, 31))]
)
def test_easter_is_where_the_calendar_has_it(year, day):
    assert find_easter(year) == datetime(year, *day)
