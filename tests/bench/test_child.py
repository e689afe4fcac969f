import sys

import pytest

from ekphory_lab.bench.measure import BenchError, ChildWorker

PROGRAM = """
import os, sys
from types import SimpleNamespace
from ekphory_lab.bench.worker import serve
def double(payload):
    print("a library talks")
    return {"value": payload["value"] * 2}
def fail(payload):
    raise ValueError("no such thing")
def die(payload):
    sys.stderr.write("last words")
    sys.stderr.flush()
    os._exit(3)
serve(SimpleNamespace(double=double, fail=fail, die=die))
"""


@pytest.fixture
def child(tmp_path):
    worker = ChildWorker([sys.executable, "-c", PROGRAM], log=tmp_path / "log")
    yield worker
    worker.end()


def test_a_child_answers_with_its_result_and_its_peak_memory(child):
    answer = child.call("double", {"value": 21})
    assert answer["value"] == 42
    assert answer["peak_bytes"] is None or answer["peak_bytes"] > 2**20


def test_what_a_library_prints_does_not_break_the_answers(child, tmp_path):
    assert [child.call("double", {"value": value})["value"] for value in (1, 2)] == [2, 4]
    assert "a library talks" in (tmp_path / "log").read_text()


def test_an_error_in_a_child_names_the_operation_and_the_child_lives_on(child):
    with pytest.raises(BenchError, match="fail: ValueError: no such thing"):
        child.call("fail", {})
    assert child.call("double", {"value": 1})["value"] == 2


def test_a_child_that_dies_is_reported_with_its_last_words(child):
    with pytest.raises(BenchError, match=r"die: the measuring process ended.*last words"):
        child.call("die", {})
