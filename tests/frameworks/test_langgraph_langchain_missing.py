"""Without its framework, a hook says how to install it."""

import importlib
import sys

import pytest

from recollect.errors import MissingExtra


@pytest.mark.parametrize(
    ("hook", "framework", "extra"),
    [
        ("langgraph_store", "langgraph.store.base", "langgraph"),
        ("langchain_retriever", "langchain_core.retrievers", "langchain"),
        ("langchain_compressor", "langchain_core.documents", "langchain"),
    ],
)
def test_a_hook_without_its_framework_names_the_extra(monkeypatch, hook, framework, extra):
    monkeypatch.setitem(sys.modules, framework, None)
    monkeypatch.delitem(sys.modules, f"recollect.frameworks.{hook}", raising=False)
    with pytest.raises(MissingExtra, match=rf"pip install 'recollect\[{extra}\]'"):
        importlib.import_module(f"recollect.frameworks.{hook}")
