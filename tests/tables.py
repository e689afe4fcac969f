"""Tables of cases that stand as data beside the tests."""

import tomllib
from pathlib import Path


def read_tables(test):
    """Return the tables of the TOML file that has a test's name."""
    return tomllib.loads(Path(test).with_suffix(".toml").read_text("utf-8"))


def spell(given):
    """Return a text; of parts that are repeated, a list says which, and how often."""
    if isinstance(given, str):
        return given
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in given)
