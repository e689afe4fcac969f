import math
from datetime import UTC, datetime
from pathlib import PurePosixPath

from ekphory.cli.output import error_json, plain
from ekphory.errors import FilterError, StoreError
from ekphory.types import Failure, WriteReport


def test_dataclasses_moments_and_tuples_become_plain_values():
    report = WriteReport(1, 0, [Failure(3, None, "at", "bad")], ("a",))
    assert plain({"report": report, "now": datetime(2026, 3, 1, tzinfo=UTC)}) == {
        "report": {
            "added": 1,
            "skipped": 0,
            "failed": [{"index": 3, "id": None, "field": "at", "message": "bad"}],
            "ids": ["a"],
            "sampled": [],
        },
        "now": "2026-03-01T00:00:00+00:00",
    }


def test_numbers_that_json_lacks_become_null():
    assert plain([1.5, math.nan, -math.inf]) == [1.5, None, None]


def test_a_set_of_names_becomes_a_sorted_list():
    assert plain(frozenset({"type", "importance"})) == ["importance", "type"]


def test_other_values_stay():
    assert plain([True, None, "a", 3]) == [True, None, "a", 3]
    assert PurePosixPath("/a") == plain(PurePosixPath("/a"))


def test_a_bad_value_names_field_value_and_remedy():
    error = FilterError("filter", "a =", "no value", "Give one")
    assert error_json(error, str(error)) == {
        "error": {
            "type": "FilterError",
            "message": "filter='a =': no value. Give one",
            "field": "filter",
            "value": "'a ='",
            "remedy": "Give one",
        }
    }


def test_another_error_has_its_type_and_message():
    assert error_json(StoreError("disk full"), "disk full") == {
        "error": {"type": "StoreError", "message": "disk full"}
    }
