"""The scenarios of facts that change: their form, and that they are nobody's evaluation set."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from ekphory.errors import DatasetError
from ekphory.models.changes import CHANGE_KINDS
from ekphory_lab.training.changes import of_part, read_scenarios

SCENARIO = """== update: where the choir rehearses
a 2024-02-11 Oda: Choir is in the gym: bring shoes.
b 2025-01-20 the log: Since New Year it is the depot.
c 2025-02-01 Oda: I bought shoes.
a>b other-subject
? Where does Oda's choir rehearse? = b,c
?past Where did we sing before? = a
"""


@pytest.fixture
def folder(tmp_path):
    def write(text):
        (tmp_path / "one.txt").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_a_scenario_is_read_as_it_stands(folder):
    (scenario,) = read_scenarios(folder(SCENARIO))
    assert (scenario.name, scenario.shape) == ("one.txt:1", "update")
    first = scenario.statements["a"]
    assert (first.text, first.producer) == ("Choir is in the gym: bring shoes.", "Oda")
    assert first.at == datetime(2024, 2, 11, 12, tzinfo=UTC)
    now, before = scenario.questions
    assert (now.answers, now.is_past) == (("b", "c"), False)
    assert (before.text, before.is_past) == ("Where did we sing before?", True)


def test_pairs_that_are_not_listed_are_unrelated(folder):
    (scenario,) = read_scenarios(folder(SCENARIO))
    told = [(pair.older.id, pair.newer.id, kind) for pair, kind in scenario.pairs()]
    assert told == [
        ("a", "b", "other subject"), ("a", "c", "unrelated"), ("b", "c", "unrelated"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line", ["a>z replaces", "a>b improves", "what is this", "? Where? = z", "d yesterday Oda: x"]
)
def test_a_line_that_cannot_be_read_is_named(folder, line):
    with pytest.raises(DatasetError, match=r"one\.txt:8: is not a line of a scenario"):
        read_scenarios(folder(SCENARIO + line))


def test_every_part_has_every_kind():
    scenarios = read_scenarios()
    assert len(scenarios) > 2_000
    for part in ("training", "fitting", "held back"):
        kinds = Counter(kind for each in of_part(part, scenarios) for _, kind in each.pairs())
        assert set(kinds) == set(CHANGE_KINDS)
