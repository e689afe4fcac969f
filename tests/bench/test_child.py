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
serve(lambda: SimpleNamespace(double=double, fail=fail, die=die))
"""


def test_a_child_answers_until_it_dies(tmp_path):
    child = ChildWorker([sys.executable, "-c", PROGRAM], log=tmp_path / "log")
    try:
        # It answers with its result and its peak memory.
        answer = child.call("double", {"value": 21})
        assert answer["value"] == 42
        assert answer["peak_bytes"] is None or answer["peak_bytes"] > 2**20
        # What a library prints does not break the answers.
        assert "a library talks" in (tmp_path / "log").read_text()
        # An error names the operation, and the child lives on.
        with pytest.raises(BenchError, match="fail: ValueError: no such thing"):
            child.call("fail", {})
        assert child.call("double", {"value": 1})["value"] == 2
        # Its death is reported with its last words.
        with pytest.raises(BenchError, match=r"die: the measuring process ended.*last words"):
            child.call("die", {})
    finally:
        child.end()


REFUSED = """
from ekphory.errors import ModelError
from ekphory_lab.bench.worker import serve
def make():
    raise ModelError("nosuch: no such model. Name another one.")
serve(make)
"""


def test_a_child_that_cannot_be_made_says_why(tmp_path):
    child = ChildWorker([sys.executable, "-c", REFUSED], log=tmp_path / "log")
    try:
        with pytest.raises(BenchError, match=r"^measure: nosuch: no such model\. Name another"):
            child.call("measure", {})
    finally:
        child.end()
