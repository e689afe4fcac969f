"""The example of LangChain runs, with the bundled models."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "langchain_retriever.py"


@pytest.mark.slow
def test_the_memory_that_answers_comes_first(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    first, _second = capsys.readouterr().out.splitlines()
    assert first.endswith("Mara: For the commute I bought a blue bicycle")
