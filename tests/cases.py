"""Cases of a test that are data: they lie in a TOML file beside it."""

import tomllib
from pathlib import Path
from typing import Any


def read_cases(test_file: str) -> dict[str, list[Any]]:
    """Return the rows of each table: of one that has keys, they are its keys with their values."""
    content = Path(test_file).with_suffix(".toml").read_text(encoding="utf-8")
    tables = tomllib.loads(content).items()
    return {
        name: list(table.items()) if isinstance(table, dict) else table for name, table in tables
    }
