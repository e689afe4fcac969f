"""What the source imports and what pyproject.toml declares are the same."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Import name: distribution. Only for packages that a run without torch does not install.
NOT_INSTALLED = {
    "torch": "torch",
    "sentence_transformers": "sentence-transformers",
    "transformers": "transformers",
    "vllm": "vllm",
    "peft": "peft",
}


def normalised(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name.group()).lower()


def declared(requirements: list[str]) -> set[str]:
    return {normalised(requirement) for requirement in requirements}


def extras_for_users() -> set[str]:
    extras = PROJECT["optional-dependencies"]
    for_users = set(extras) - {"dev", "site"}
    return {name for extra in for_users for name in declared(extras[extra])}


def imported() -> set[str]:
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"ekphory", "_typeshed"}


@cache
def distributions_of_imports() -> dict[str, set[str]]:
    """Several distributions may share an import name, as those of langgraph do."""
    installed = packages_distributions()
    return {
        name: set(map(normalised, installed.get(name) or [NOT_INSTALLED.get(name, name)]))
        for name in imported()
    }


def declared_for_users() -> set[str]:
    return declared(PROJECT["dependencies"]) | extras_for_users()


@pytest.mark.slow
def test_every_imported_package_is_declared():
    found = distributions_of_imports()
    assert {name for name, names in found.items() if not names & declared_for_users()} == set()


def test_every_declared_package_is_imported():
    assert declared_for_users() - set().union(*distributions_of_imports().values()) == set()
