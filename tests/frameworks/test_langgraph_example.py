"""The example of LangGraph runs, with the bundled models."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "langgraph_store.py"


@pytest.mark.slow
def test_a_graph_recalls_in_another_run_what_it_was_told(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    travel, sister = capsys.readouterr().out.splitlines()
    assert travel.startswith("How do I like to travel? I would rather take the train than fly (0.")
    assert sister.startswith("What is my sister's name? My sister is called Ines (")
