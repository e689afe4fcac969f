"""How often the rules are right, on queries that were labelled before the rules were written.

`labelled_queries.jsonl` was split at random by intent; the rules were fitted to the half `tuning`
and never to mistakes on the half `held_out`. One hand wrote both, so other people's queries will be
classified less well than either. Bounds lie a little under what was measured, which stands beside.
"""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ekphory.retrieval.query import INTENTS, classify_query

LABELLED = [
    json.loads(line)
    for line in (Path(__file__).parent / "labelled_queries.jsonl").read_text("utf-8").splitlines()
]
GIVEN_FROM = 0.5
"""The strength from which a hint counts as given."""


def half(name: str) -> list[dict]:
    return [row for row in LABELLED if row["half"] == name]


def share(rows: list[dict], is_right: Callable[[dict], bool]) -> float:
    return statistics.mean(is_right(row) for row in rows)


def hints_of(row: dict) -> set[str]:
    found = classify_query(row["query"]).hints.given
    return {name for name, strength in found.items() if strength >= GIVEN_FROM}


def test_both_halves_hold_every_intent():
    assert len(LABELLED) == 343
    assert {row["intent"] for row in half("tuning")} == set(INTENTS)
    assert {row["intent"] for row in half("held_out")} == set(INTENTS)


def test_no_query_is_in_both_halves():
    assert len({row["query"].casefold() for row in LABELLED}) == len(LABELLED)


@pytest.mark.parametrize(
    ("name", "at_least"),
    [("tuning", 0.80), ("held_out", 0.76)],  # measured: .826 and .789
)
def test_the_intent_is_right(name, at_least):
    rows = half(name)
    assert share(rows, lambda row: classify_query(row["query"]).intent == row["intent"]) >= at_least


@pytest.mark.parametrize(
    ("intent", "at_least"),
    [
        ("lookup", 0.97),  # 1.0
        ("temporal", 0.93),  # .968
        ("preference", 0.82),  # .846
        ("procedural", 0.90),  # .923
        ("comparison", 0.72),  # .760
        # A chain is told by the shape of a question, which the agent alone reads: 0.
    ],
)
def test_every_intent_is_found_in_the_held_out_half(intent, at_least):
    rows = [row for row in half("held_out") if row["intent"] == intent]
    assert share(rows, lambda row: classify_query(row["query"]).intent == intent) >= at_least


@pytest.mark.parametrize(
    ("name", "at_least"),
    [("tuning", 0.89), ("held_out", 0.86)],  # measured: .913 and .883
)
def test_all_hints_of_a_query_are_right(name, at_least):
    assert share(half(name), lambda row: hints_of(row) == set(row["hints"])) >= at_least


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        ("importance", 0.95),  # 1.0
        ("episodic", 0.60),  # .636: a past tense alone is not seen
        ("semantic", 0.72),  # .750
        ("procedural", 0.90),  # .923
    ],
)
def test_a_hint_is_seldom_given_in_vain_and_found_as_often_as_measured(hint, found):
    rows = half("held_out")
    wanted = [row for row in rows if hint in row["hints"]]
    given = [row for row in rows if hint in hints_of(row)]
    right = [row for row in wanted if row in given]
    assert len(right) >= 0.85 * len(given)
    assert len(right) >= found * len(wanted)


def test_a_query_is_classified_in_a_fifth_of_a_millisecond():
    times = []
    for row in LABELLED:
        started = time.perf_counter()
        classify_query(row["query"])
        times.append(time.perf_counter() - started)
    assert statistics.median(times) < 0.0002  # measured: 0.00003
