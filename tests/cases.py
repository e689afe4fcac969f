"""Cases of a test that are data: they lie in the TOML file beside it that has its name."""

import tomllib
from pathlib import Path


def read_tables(test_file):
    """Return the tables of the file."""
    return tomllib.loads(Path(test_file).with_suffix(".toml").read_text(encoding="utf-8"))


def read_cases(test_file):
    """Return the rows of each table: of one that has keys, they are its keys with their values."""
    return {
        name: list(table.items()) if isinstance(table, dict) else table
        for name, table in read_tables(test_file).items()
    }


def spell(given):
    """Return a text; of parts that are repeated, a list says which, and how often."""
    if isinstance(given, str):
        return given
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in given)
