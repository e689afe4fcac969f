"""Writing figures into pages, between `<!-- figure: NAME -->` and `<!-- /figure -->`."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.figures.definitions import Figure, FigureError, Table
from scripts.figures.measuring import (
    FIGURES,
    ROOT,
    Measurement,
    present_models,
    read_measurement,
)
from scripts.figures.pictures import draw

COMMAND = "command"
"""What a page calls the commands of a figure, behind its name."""
_PLACE = re.compile(
    r"(?P<open><!-- figure: (?P<figure>[\w-]+)(?:/(?P<part>[\w-]+))? -->)"
    r"(?P<body>.*?)(?P<close><!-- /figure -->)",
    re.DOTALL,
)
_CELL = re.compile(r"\{([^{}!]+)(?:!([^{}]*))?\}")
_BETWEEN = ("/", "to", "( to )")
"""What is left of a cell whose values are missing."""
_MARK = re.compile(r"\*Not measured with the present models[^\n]*\*\n*")


def pages() -> list[Path]:
    """Return the pages that may show figures; the one that explains them shows none."""
    explains = ROOT / "docs" / "figures.md"
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in found if page != explains)]


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure, and what was measured of it; None where that was never done."""

    figure: Figure
    measured: Measurement | None

    @property
    def is_present(self) -> bool:
        """Whether it was measured with the present models, by the command that it has now."""
        return (
            self.measured is not None
            and self.measured.models == present_models(self.figure)
            and self.measured.command == self.figure.command
        )


def read_shown(figures: Mapping[str, Figure], folder: Path = FIGURES) -> dict[str, Shown]:
    """Return what was measured of each figure."""
    return {name: Shown(each, read_measurement(name, folder)) for name, each in figures.items()}


def render_page(text: str, page: Path, shown: Mapping[str, Shown]) -> str:
    """Return a page with its figures as they were measured.

    What was never measured keeps what stands there; whatever was not measured with the present
    models is marked.

    Raises:
        FigureError: The page asks for what is not defined, or a table for a value that is missing.
    """

    def rendered(place: re.Match[str]) -> str:
        name, part = place["figure"], place["part"] or ""
        if name not in shown:
            raise FigureError(f"{page.name}: there is no figure {name!r}; see figures.toml")
        body = _MARK.sub("", place["body"]).strip("\n")
        inner = _body(shown[name], part, page, body)
        return f"{place['open']}\n\n{inner}\n\n{place['close']}"

    return _PLACE.sub(rendered, text)


def write_pages(shown: Mapping[str, Shown]) -> list[Path]:
    """Write pages and pictures anew, and return those that changed."""
    changed = []
    for file, text in rendered_files(shown):
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            changed.append(file)
    return changed


def rendered_files(shown: Mapping[str, Shown]) -> Iterator[tuple[Path, str]]:
    """Yield every page with figures and every picture, as it should be."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if _PLACE.search(text):
            yield page, render_page(text, page, shown)
    for each in shown.values():
        if each.measured is not None:
            for picture in each.figure.pictures:
                yield picture_file(each.figure, picture.name), draw(picture, each.measured.values)


def picture_file(figure: Figure, name: str) -> Path:
    """Return where a picture is written."""
    return FIGURES / f"{figure.name}-{name}.svg"


def _body(shown: Shown, part: str, page: Path, held: str) -> str:
    figure, measured = shown.figure, shown.measured
    if part == COMMAND:
        return "\n".join(["```", *(run.command for run in figure.runs), "```"])
    mark = _mark(shown)
    picture = next((each for each in figure.pictures if each.name == part), None)
    if picture is None:
        table = figure.table(part)
    if measured is None:
        return f"{mark}\n\n{held}".strip("\n")
    if picture is not None:
        inner = f"![{picture.title}]({_link(picture_file(figure, part), page)})"
    else:
        inner = fill_in(table, measured.values)
        if table.header:
            inner = f"{inner}\n\n{_origin(measured, page)}"
    return inner if shown.is_present else f"{mark}\n\n{inner}"


def _mark(shown: Shown) -> str:
    known = ", as far as is recorded" if shown.measured is None else ""
    command = f"`make figures NAME={shown.figure.name}`"
    return f"*Not measured with the present models{known}: {command} does that.*"


def _origin(measured: Measurement, page: Path) -> str:
    models = ", ".join(f"`{each}`" for each in measured.models.values())
    given = f" with {models}," if models else ""
    link = _link(FIGURES / f"{measured.name}.json", page)
    return f"[Measured]({link}){given} on {measured.machine}."


def _link(file: Path, page: Path) -> str:
    return Path(os.path.relpath(file, page.parent)).as_posix()


# Tables.


def fill_in(table: Table, values: Mapping[str, float]) -> str:
    """Return a table or a text with its values.

    In a template `{key}` is a value with three digits, `{key!form}` one in another form of
    `FORMS`; a form that ends in `?` says nothing where the value is missing. `{0}` is the match of
    `for_each`, `{label}` its label, `{fact:field}` what its facts say. Of the cells of a row that
    begin with `^`, the highest is bold.

    Raises:
        FigureError: A value is missing.
    """
    templates = dict.fromkeys(_matches(table, values), table.rows)
    if table.unmeasured:
        templates = {name: templates.get(name, (table.unmeasured,)) for name in _facts(table.facts)}
    rows = [_row(row, name, table, values) for name in templates for row in templates[name]]
    if not table.header:
        return "\n\n".join(rows)
    header = table.header.split(" | ")
    rule = ["---" if place < table.figures_from else "---:" for place in range(len(header))]
    lines = [" | ".join(cells) for cells in (header, rule)]
    return "\n".join(f"| {line} |" for line in [*lines, *rows])


def _matches(table: Table, values: Mapping[str, float]) -> list[str]:
    if not table.for_each:
        return [""]
    before, after = map(re.escape, table.for_each.split("*"))
    found = (re.fullmatch(f"{before}(.+){after}", key) for key in values)
    return [match[1] for match in found if match is not None]


def _row(template: str, name: str, table: Table, values: Mapping[str, float]) -> str:
    facts = _facts(table.facts).get(name, {}) if table.facts else {}

    def said(match: re.Match[str]) -> str:
        key, form = match[1], match[2] or ".3"
        if key == "label":
            return (table.labels or {}).get(name, name)
        if key.startswith("fact:"):
            fact = facts.get(key.removeprefix("fact:"), "")
            return fact if isinstance(fact, str) else FORMS[form](fact)
        if key in values:
            return FORMS[form.removesuffix("?")](values[key])
        if form.endswith("?"):
            return ""
        raise FigureError(f"there is no value {key!r}; correct the table in figures.toml")

    cells = [_CELL.sub(said, cell) for cell in template.replace("{0}", name).split(" | ")]
    # What stands between two values that are missing says nothing.
    cells = ["" if cell.strip() in _BETWEEN else cell for cell in cells]
    best = max((cell for cell in cells if cell.startswith("^")), default="")
    return " | ".join(
        f"**{cell[1:]}**" if cell == best and best else cell.removeprefix("^") for cell in cells
    )


def _facts(place: str) -> dict[str, dict[str, Any]]:
    path, _, name = place.partition("#")
    rows = tomllib.loads((ROOT / path).read_text(encoding="utf-8"))[name]
    return {row["id"]: row for row in rows}


def _share(digits: int, *, sign: str = "") -> Callable[[float], str]:
    def written(value: float) -> str:
        text = f"{value:{sign}.{digits}f}"
        text = text.replace("-", "+", 1) if sign and float(text) == 0 else text
        return text.replace("0.", ".", 1) if abs(value) < 1 and "1." not in text else text

    return written


def _p_value(value: float) -> str:
    return "<.001" if value < 0.001 else _share(3)(value)


FORMS: dict[str, Callable[[float], str]] = {
    **{f".{digits}": _share(digits) for digits in (2, 3, 4)},
    **{f"+.{digits}": _share(digits, sign="+") for digits in (2, 3, 4)},
    "p": _p_value,
    "n": lambda value: f"{value:,.0f}",
    "1": lambda value: f"{value:,.1f}",
    "2": lambda value: f"{value:.2f}",
    "%": lambda value: f"{100 * value:.1f}",
    "MiB": lambda value: f"{value / 2**20:,.0f}",
}
"""How a value is written: without the zero before the point, with a sign, as a p-value, as a number
of things, with one digit or two, in per cent, bytes in MiB."""
