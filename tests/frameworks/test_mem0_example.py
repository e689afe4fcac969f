"""The example of mem0 runs, with the bundled models."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "mem0_memory.py"


@pytest.mark.slow
def test_code_that_was_written_for_mem0_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("EKPHORY_STORE", str(tmp_path / "store"))
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "found: I'm a vegetarian and allergic to nuts",
        "ADD: On Saturdays I play tennis with Kai",
        "UPDATE: On Sundays I play tennis with Kai",
        "left: 2",
    ]
