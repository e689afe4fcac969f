"""The page of what the four systems can do names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!capability|---)", line)]


def test_every_test_that_the_page_names_is_there():
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 60
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"def {name}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"))
    ]
    assert missing == []


def test_every_capability_has_a_state_and_what_shows_it():
    assert len(ROWS) >= 60
    states = ("runs", "needs")
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in ROWS]
    assert [row for row in cells if len(row) != 3 or not row[1].startswith(states)] == []
    assert [row for row in cells if not row[2]] == []
