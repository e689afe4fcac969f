"""Without its framework, a hook says how to install it."""

import importlib
import sys

import pytest

from ekphory.errors import MissingExtra


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
