"""The public surface: the names of the package, and the verbs of its two classes."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import ekphory
from ekphory.memory import AsyncMemory, Memory

MOST_NAMES = 20
VERBS = [
    name
    for name, member in vars(Memory).items()
    if inspect.isfunction(member) and not name.startswith("_")
]


def names_imported_by_the_package() -> set[str]:
    tree = ast.parse(Path(ekphory.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if (node.module or "").startswith("ekphory.")]
    return {alias.asname or alias.name for node in own for alias in node.names}


def test_every_public_name_is_there():
    assert [name for name in ekphory.__all__ if not hasattr(ekphory, name)] == []


def test_the_public_names_are_what_the_package_imports():
    assert set(ekphory.__all__) == names_imported_by_the_package() | {"__version__"}


def test_the_public_names_are_sorted_and_few():
    assert ekphory.__all__ == sorted(set(ekphory.__all__))
    assert len(ekphory.__all__) <= MOST_NAMES


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="no_such_name"):
        ekphory.no_such_name  # noqa: B018  reading it is the test


def test_both_classes_have_the_same_verbs():
    assert "search" in VERBS
    public = {name for name in vars(AsyncMemory) if not name.startswith("_")}
    assert public == set(VERBS)


@pytest.mark.parametrize("verb", [*VERBS, "__init__"])
def test_a_verb_has_the_same_signature_in_both_classes(verb):
    assert inspect.signature(getattr(AsyncMemory, verb)) == inspect.signature(getattr(Memory, verb))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_of_the_async_class_is_a_coroutine_function(verb):
    assert inspect.iscoroutinefunction(getattr(AsyncMemory, verb))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_at_most_two_arguments_by_position(verb):
    parameters = list(inspect.signature(getattr(Memory, verb)).parameters.values())[1:]
    assert sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in parameters) <= 2
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
