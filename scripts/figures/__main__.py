"""Measure the figures of the documentation, and write them into its pages.

A figure whose models, data and command are unchanged is not measured again, and one that was
interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scripts.figures.definitions import Figure, FigureError, read_definitions
from scripts.figures.measuring import (
    ROOT,
    code_changed_since,
    hash_data,
    measure,
    present_models,
    write_measurement,
)
from scripts.figures.pages import Shown, read_shown, rendered_files, write_pages

_KEPT = ROOT / "build" / "figures"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; the exit status is 1 where something could not be done."""
    asked = _parser().parse_args(arguments)
    try:
        return _do(asked)
    except FigureError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.figures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures; else all")
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="holds the benchmarks"
    )
    parser.add_argument("--again", action="store_true", help="measure what is up to date too")
    alone = parser.add_mutually_exclusive_group()
    alone.add_argument("--check", action="store_true", help="say how old each is; measure nothing")
    alone.add_argument("--pages", action="store_true", help="write the pages; measure nothing")
    return parser


def _do(asked: argparse.Namespace) -> int:
    defined = read_definitions()
    unknown = [name for name in asked.names if name not in defined]
    if unknown:
        raise FigureError(f"there is no figure {unknown[0]!r}; choose from {', '.join(defined)}")
    chosen = [defined[name] for name in asked.names or defined]
    if asked.check:
        return _check(chosen, asked.data)
    failed = 0 if asked.pages else _measure(chosen, asked.data.resolve(), again=asked.again)
    for file in write_pages(read_shown(defined)):
        print(f"Written: {file.relative_to(ROOT)}")
    return 1 if failed else 0


def _measure(figures: Sequence[Figure], data: Path, *, again: bool) -> int:
    """Measure figures, and return how many failed."""
    failed = 0
    shown = read_shown({figure.name: figure for figure in figures})
    for figure in figures:
        if not again and not differences(shown[figure.name], data):
            print(f"{figure.name}: is up to date")
            continue
        print(f"{figure.name}: some {figure.minutes:g} minutes on two idle cores", flush=True)
        try:
            write_measurement(measure(figure, data, _KEPT, again=again))
        except FigureError as error:
            print(error, file=sys.stderr)
            failed += 1
    return failed


def differences(shown: Shown, data: Path) -> list[str]:
    """Return what a figure was measured with that is another one now; missing data are not."""
    figure, measured = shown.figure, shown.measured
    if measured is None:
        return ["never measured"]
    present = present_models(figure)
    others = set(measured.models.items()) ^ set(present.items())
    found = [f"of other models ({', '.join(sorted(each for _, each in others))})"] if others else []
    if measured.command != figure.command:
        found.append("of another command")
    there = replace(figure, data=tuple(path for path in figure.data if (data / path).is_file()))
    if hash_data(there, data).items() - measured.data.items():
        found.append("of other data")
    return found


def _check(figures: Sequence[Figure], data: Path) -> int:
    """Say how old each figure is; return 1 where a page does not show what it should, else 0."""
    shown: Mapping[str, Shown] = read_shown(read_definitions())
    for figure in figures:
        measured = shown[figure.name].measured
        found = differences(shown[figure.name], data)
        if measured is not None and code_changed_since(measured.commit):
            found.append(f"of other code (commit {measured.commit[:12]})")
        print(f"{figure.name}: {'; '.join(found) or 'up to date'}")
    read = dict.fromkeys(path for figure in figures for path in figure.data)
    if missing := [path for path in read if not (data / path).is_file()]:
        print(f"not compared, for they are missing in {data}: {', '.join(missing)}")
    wrong = [file for file, text in rendered_files(shown) if _read(file) != text]
    for file in wrong:
        print(
            f"{file.relative_to(ROOT)}: is not what was measured; python -m scripts.figures --pages"
        )
    return 1 if wrong else 0


def _read(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


if __name__ == "__main__":
    sys.exit(main())
