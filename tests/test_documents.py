"""What the documents for contributors point at is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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
