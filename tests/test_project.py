"""What the project says of itself: its dependencies, its errors, its documents."""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from scripts.make_reference import PAGES, REFERENCE, variables_in_code, variables_on_the_page

import ekphory
from ekphory.documents.source_code import CODE_MODULES
from ekphory.errors import EkphoryError

# What the source imports and what pyproject.toml declares are the same.

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Import name: distribution, of what is called otherwise and may not be installed.
BY_NAME = "importlib.import_module('"
NOT_INSTALLED = {"sentence_transformers": "sentence-transformers", "lance": "pylance"}


def normalised(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name.group()).lower()


def declared(requirements: list[str]) -> set[str]:
    return {normalised(requirement) for requirement in requirements}


def extras_for_users() -> set[str]:
    extras = PROJECT["optional-dependencies"]
    for_users = set(extras) - {"dev", "mutants", "parity", "site", "cluster-test", "figures"}
    return {name for extra in for_users for name in declared(extras[extra])} - {"ekphory"}


def imported() -> set[str]:
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").partition(".")[0])
            # What may not be installed is imported by its name.
            elif isinstance(node, ast.Call) and ast.unparse(node).startswith(BY_NAME):
                names.add(ast.literal_eval(node.args[0]).partition(".")[0])
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


@pytest.mark.slow
def test_every_declared_package_is_imported():
    named_in_a_table = {module.replace("_", "-") for module in CODE_MODULES}
    imported = named_in_a_table.union(*distributions_of_imports().values())
    assert declared_for_users() - imported == set()


# Every exception of the package is one of its tree.

NEEDS_AN_EXTRA = ("torch", "sentence_transformers", "ray")


def exceptions():
    for found in pkgutil.walk_packages(ekphory.__path__, "ekphory."):
        try:
            module = importlib.import_module(found.name)
        except ImportError as error:
            assert error.name is None or error.name.startswith(NEEDS_AN_EXTRA), found.name
            continue
        for each in vars(module).values():
            if inspect.isclass(each) and issubclass(each, BaseException):
                yield each


def test_every_exception_of_the_package_is_of_its_tree():
    own = {each for each in exceptions() if each.__module__.startswith("ekphory.")}
    assert len(own) > 25
    assert [each for each in own if not issubclass(each, EkphoryError)] == []


# What the documents for contributors point at is there.

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECORDS = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
TABLE = CONTRIBUTING.partition("## To change X, edit Y")[2].partition("\n## ")[0]
QUOTED_PATHS = sorted(
    set(re.findall(r"`([\w/][\w./-]*(?:\.(?:py|md|toml|jsonl)|/))`", CONTRIBUTING))
)
MAKE_TARGETS = re.findall(r"(?:^|`)make ([a-z-]+)", CONTRIBUTING, re.MULTILINE)


def lies_somewhere(quoted: str) -> bool:
    """A path is given from the root, or, later in a row, from the package or a folder in it."""
    starts = [ROOT, ROOT / "src" / "ekphory", ROOT / "lab" / "src"]
    return any((start / quoted).exists() for start in starts) or (
        "/" not in quoted and any((ROOT / "src" / "ekphory").rglob(quoted))
    )


@pytest.mark.parametrize("quoted", QUOTED_PATHS)
def test_a_path_in_contributing_exists(quoted):
    assert lies_somewhere(quoted)


def test_every_package_has_a_row_in_the_table_of_changes():
    packages = [path.parent.name for path in (ROOT / "src" / "ekphory").glob("*/__init__.py")]
    assert [name for name in packages if f"{name}/" not in TABLE] == []


@pytest.mark.parametrize("target", sorted(set(MAKE_TARGETS)))
def test_a_make_target_in_contributing_exists(target):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("record", RECORDS)
def test_a_decision_record_is_listed_and_starts_with_its_number(record):
    folder = ROOT / "docs" / "decisions"
    assert f"]({record})" in (folder / "README.md").read_text(encoding="utf-8")
    assert (folder / record).read_text(encoding="utf-8").startswith(f"# {record[:4]} · ")


def test_every_page_of_the_documentation_is_in_its_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = (ROOT / "docs").rglob("*.md")
    names = [page.relative_to(ROOT / "docs").as_posix() for page in pages]
    assert [name for name in names if name not in navigation] == []


# The pages in docs/reference are what the code says.


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name):
    written = (REFERENCE / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run python -m scripts.make_reference"


def test_every_variable_in_the_code_is_on_the_page():
    assert variables_in_code() - variables_on_the_page() == set()
