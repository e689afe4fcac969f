"""The examples run, with the bundled models; a hook without its framework names the extra."""

import importlib
import runpy
import sys
from pathlib import Path

import pytest

from ekphory.errors import MissingExtra

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


SHOWN = {
    "langgraph_store": (
        "How do I like to travel? I would rather take the train than fly (",
        "What is my sister's name? My sister is called Ines (",
    ),
    "langchain_retriever": (": For the commute I bought a blue bicycle", ""),
    "llama_index_retriever": (": For the commute I bought a blue bicycle", ""),
    "mem0_memory": (
        "found: I'm a vegetarian and allergic to nuts",
        "ADD: On Saturdays I play tennis with Kai",
        "UPDATE: On Sundays I play tennis with Kai",
        "left: 2",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs_and_finds_what_answers(capsys, monkeypatch, tmp_path, name):
    monkeypatch.setenv("EKPHORY_STORE", str(tmp_path / "store"))
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    shown = capsys.readouterr().out.splitlines()
    assert all(part in line for part, line in zip(SHOWN[name], shown, strict=True))


@pytest.mark.slow
def test_a_mirrored_folder_loses_what_is_gone(capsys, monkeypatch, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "fence.md").write_text("The fence is green.\n")
    (notes / "door.md").write_text("The door is red.\n")
    command = ["mirror_folder.py", str(notes), "--store", str(tmp_path / "store"), "--prune"]
    monkeypatch.setattr(sys, "argv", command)
    for gone in (None, "door.md"):
        if gone:
            (notes / gone).unlink()
        runpy.run_path(str(EXAMPLES / "mirror_folder.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "2 added, 0 forgotten, 0 already there",
        "0 added, 1 forgotten, 1 already there",
    ]


@pytest.mark.parametrize(
    ("hook", "framework", "extra"),
    [
        ("langgraph", "langgraph.store.base", "langgraph"),
        ("langchain", "langchain_core.retrievers", "langchain"),
        ("langchain", "langchain_core.documents", "langchain"),
    ],
)
def test_a_hook_without_its_framework_names_the_extra(monkeypatch, hook, framework, extra):
    monkeypatch.setitem(sys.modules, framework, None)
    monkeypatch.delitem(sys.modules, f"ekphory.frameworks.{hook}", raising=False)
    with pytest.raises(MissingExtra, match=rf"pip install 'ekphory\[{extra}\]'"):
        importlib.import_module(f"ekphory.frameworks.{hook}")
