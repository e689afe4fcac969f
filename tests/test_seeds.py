"""The page of what the four systems can do names tests and commands that exist."""

import re
from pathlib import Path

from scripts.make_reference import commands

from ekphory.cli.app import app

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if re.match(r"\| (?!capability|---)", line)
]
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
COMMAND = re.compile(r"`(ekphory(?: [a-z][a-z-]*)+)")


def is_there(file, name):
    place = ROOT / "tests" / file
    return place.is_file() and re.search(rf"def {name}\(", place.read_text(encoding="utf-8"))


def test_every_test_that_the_page_names_is_there():
    named = TEST.findall(PAGE)
    assert len(named) > 60
    assert [f"{file}::{name}" for file, name in named if not is_there(file, name)] == []


def test_every_command_that_shows_a_capability_is_there():
    known = {command.name for command in commands(app, "ekphory", "")}
    named = {name for row in ROWS for name in COMMAND.findall(row[2])}
    assert len(named) >= 3
    assert named - known == set()


def test_every_capability_has_a_state_and_what_shows_it():
    assert len(ROWS) >= 60
    assert [row for row in ROWS if len(row) != 3 or not row[1].startswith(("runs", "needs"))] == []
    assert [row for row in ROWS if not TEST.search(row[2]) and not COMMAND.search(row[2])] == []
