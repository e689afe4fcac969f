"""Run the attacks on what README promises, and write their figures to a file.

Each attack is a module of this folder with `run(*, rounds) -> dict[str, float]`. A figure whose
name ends in `violations` counts what must not happen; any above 0 makes the command fail.
An attack that ended is not run again while `--resume` is given and the commit is the same.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROUNDS = {
    "kills": 1_000,
    "clock": 20,
    "forks": 20,
    "damage": 1_000,
    "requests": 1,
    "soak": 10_000,
}
"""How often each attack tries; in the order in which they run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; the exit status is 1 if a promise did not hold."""
    asked = _parser().parse_args(arguments)
    commit = _commit()
    done = _earlier(asked.target, commit) if asked.resume else {}
    for name in asked.attacks or ROUNDS:
        if name not in done:
            done[name] = _attack(name, rounds=asked.rounds or ROUNDS[name])
            _write(asked.target, commit, done)
    return 1 if any(_violated(figures) for figures in done.values()) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.attack", description=__doc__)
    parser.add_argument("attacks", nargs="*", type=_known, help=f"of {', '.join(ROUNDS)}; else all")
    parser.add_argument("--rounds", type=int, help="how often each tries, in place of its number")
    parser.add_argument("--target", type=Path, default=Path("build/attack.json"))
    parser.add_argument("--resume", action="store_true", help="leave out what has ended")
    return parser


def _known(name: str) -> str:
    if name not in ROUNDS:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(ROUNDS)}, got {name!r}")
    return name


def _attack(name: str, *, rounds: int) -> dict[str, float]:
    print(f"{name}: {rounds:,} rounds", flush=True)
    started = time.monotonic()
    figures = importlib.import_module(f"scripts.attack.{name}").run(rounds=rounds)
    figures[f"{name}.seconds"] = round(time.monotonic() - started, 1)
    for figure, value in figures.items():
        print(f"  {figure}: {value:g}", flush=True)
    for figure in _violated(figures):
        print(f"  VIOLATED: {figure}", flush=True)
    return figures


def _violated(figures: dict[str, float]) -> list[str]:
    return [name for name, value in figures.items() if name.endswith("violations") and value > 0]


def _earlier(target: Path, commit: str) -> dict[str, dict[str, float]]:
    if not target.exists():
        return {}
    written = json.loads(target.read_text(encoding="utf-8"))
    if written["commit"] != commit:
        return {}
    done: dict[str, dict[str, float]] = {}
    for figure, value in written["values"].items():
        done.setdefault(figure.split(".", maxsplit=1)[0], {})[figure] = value
    return done


def _write(target: Path, commit: str, done: dict[str, dict[str, float]]) -> None:
    from ekphory.models.onnx_models import load_bundled

    values = {figure: value for figures in done.values() for figure, value in figures.items()}
    content = {
        "name": "attack",
        "command": "make attack",
        "commit": commit,
        "models": {"embedder": str(load_bundled().identity)},
        "data": {},
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "seconds": round(sum(v for name, v in values.items() if name.endswith(".seconds")), 1),
        "values": values,
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(".tmp")
    beside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    beside.replace(target)


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
