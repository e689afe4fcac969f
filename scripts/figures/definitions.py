"""What figures there are: commands, what is kept of their reports, tables and pictures.

`figures.toml` holds them as data.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

DEFINITIONS = Path(__file__).with_name("figures.toml")


class FigureError(Exception):
    """A definition, a measurement or a page is not as it must be; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A command that prints one JSON document, and which of its numbers are kept.

    Attributes:
        command: As a user types it in the data folder; in the checkout where the figure reads no
            data.
        keep: Paths into the document, see `select_values`.
        prefix: What their keys begin with; may be empty.
    """

    command: str
    keep: tuple[str, ...]
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, or a text, that is made of a figure's values.

    Attributes:
        name: What a page calls it behind the figure's name; empty for the only one.
        header: Cells, separated by ` | `; empty for a text.
        rows: Templates of the rows, or of the paragraphs of a text; see `pages.fill_in`.
        for_each: A key with one `*`: the rows are repeated for each match, which `{0}` names.
        labels: What `{label}` says of a match; by default the match itself.
        facts: A TOML file and a list in it, `path#list`, by id: `{fact:field}` is what it says.
        unmeasured: Template of the row of a fact that nothing was measured of; without one such
            facts have no row. With one the rows come in the order of the facts.
        figures_from: The column from which on the cells hold figures, and stand to the right.
    """

    name: str = ""
    header: str = ""
    rows: tuple[str, ...]
    for_each: str = ""
    labels: Mapping[str, str] | None = None
    facts: str = ""
    unmeasured: str = ""
    figures_from: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture of points, drawn from a figure's values.

    Attributes:
        name: What a page calls it behind the figure's name.
        title: What it shows.
        x, y: Keys of the two values of a point; `*` stands for its series and its name.
        size: The key of a point's weight, which its area shows; may be empty.
        x_label, y_label: What the axes say.
        scale: Of the axis x: linear from 0, or by powers of ten. `probability` draws both axes
            from 0 to 1 with the diagonal; `bars` a bar for each point, as long as x, and a thin
            line from its end to y.
        series: Names of lines, each a first match of `x`; empty for single points.
        labels: What stands beside a point, by its match; by default the match itself.
    """

    name: str
    title: str
    x: str
    y: str
    size: str = ""
    x_label: str
    y_label: str
    scale: Literal["linear", "powers", "probability", "bars"] = "linear"
    series: tuple[str, ...] = ()
    labels: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Something that is measured, and how pages show it.

    Attributes:
        name: Of the file in `docs/figures`.
        models: Which bundled models decide it; see `measuring.MODEL_FOLDERS`.
        data: Files below the data folder that it reads.
        minutes: About how long it takes on two idle cores.
        runs: Its commands.
        tables, pictures: What pages show of it.
    """

    name: str
    models: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    minutes: float
    runs: tuple[Run, ...]
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def command(self) -> str:
        """All commands as one line of a shell."""
        return " && ".join(run.command for run in self.runs)

    def table(self, name: str) -> Table:
        """Return the table of that name.

        Raises:
            FigureError: There is none.
        """
        for table in self.tables:
            if table.name == name:
                return table
        named = ", ".join(repr(table.name) for table in self.tables) or "none"
        raise FigureError(f"figure {self.name}: has no table {name!r}; it has {named}")


def read_definitions(file: Path = DEFINITIONS) -> dict[str, Figure]:
    """Return the figures by name, in the order of the file."""
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["figures"]
    figures = TypeAdapter(tuple[Figure, ...]).validate_python(rows)
    named = {figure.name: figure for figure in figures}
    if len(named) < len(figures):
        raise FigureError(f"{file.name}: two figures have one name; rename one")
    return named


# Which numbers of a report are kept.


def select_values(document: object, run: Run) -> dict[str, float]:
    """Return the numbers of a report that a run keeps.

    A path leads into the document, its steps separated by `/`: a key; `*` for every key; `a|b` for
    those of these keys that are there; `[system]` for every entry of a list, which its field of
    that name names (`[first,second]`: both fields); `#` for every entry by its place. The key of
    a value is the prefix and the steps that were chosen among several, and steps in parentheses.

    Raises:
        FigureError: A path leads nowhere, or two lead to the same key.
    """
    values: dict[str, float] = {}
    for path in run.keep:
        found = dict(_walk(document, path.split("/"), path))
        keys = ["/".join([*filter(None, [run.prefix]), *steps]) for steps in found]
        if not found or values.keys() & set(keys):
            problem = "has no number at" if not found else "has two values under one key at"
            raise FigureError(f"the report of `{run.command}` {problem} {path}")
        values |= dict(zip(keys, found.values(), strict=True))
    return values


def _walk(
    node: Any,  # noqa: ANN401  JSON
    steps: list[str],
    path: str,
) -> Iterator[tuple[tuple[str, ...], float]]:
    if not steps:
        # Null says that something was not measured, and is not a value.
        if isinstance(node, int | float) and not isinstance(node, bool):
            yield (), float(f"{node:.6g}")
        return
    step, *rest = steps
    for name, inner in _entries(node, step, path):
        for found, value in _walk(inner, rest, path):
            yield (found if name is None else (name, *found)), value


def _entries(node: Any, step: str, path: str) -> Iterator[tuple[str | None, Any]]:  # noqa: ANN401
    if node is None:
        return
    if step == "#":
        yield from ((str(place), each) for place, each in enumerate(node))
    elif step.startswith("["):
        fields = step[1:-1].split(",")
        yield from (("/".join(str(each[field]) for field in fields), each) for each in node)
    elif step == "*" or "|" in step:
        names = node if step == "*" else [name for name in step.split("|") if name in node]
        yield from ((name, node[name]) for name in names)
    elif step.strip("()") in node:
        yield (step[1:-1] if step.startswith("(") else None), node[step.strip("()")]
    else:
        raise FigureError(f"the path {path} leads nowhere: there is no {step!r}")
