"""Running the commands of a figure, and saying what decided its values."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scripts.figures.definitions import Figure, FigureError, Run, select_values

ROOT = Path(__file__).parent.parent.parent
FIGURES = ROOT / "docs" / "figures"
_BUNDLED = ROOT / "src" / "ekphory" / "models" / "bundled"
MODEL_FOLDERS = {
    "embedder": "ekphory-small",
    "reranker": "reranker",
    "reranker-tiny": "reranker-tiny",
    "change-reader": "change-reader",
    "capture-reader": "capture-reader",
}
_PROGRAMS = {"ekphory": [sys.executable, "-m", "ekphory"], "python": [sys.executable]}
_MEASURED_CODE = ("src", "lab")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A figure as its file in `docs/figures` has it; a number for every key.

    Attributes:
        name, command: Of the figure.
        commit: What was checked out; with `-dirty` where the code had been changed since.
        models: Name and revision by role.
        data: SHA-256 by path below the data folder.
        machine: Processor, cores, system and Python, and the load when the first command began.
        seconds: How long the commands took.
        values: What was found.
    """

    name: str
    command: str
    commit: str
    models: Mapping[str, str]
    data: Mapping[str, str]
    machine: str
    seconds: float
    values: Mapping[str, float]


def read_measurement(name: str, folder: Path = FIGURES) -> Measurement | None:
    """Return what was measured of a figure; None where that was never done."""
    file = folder / f"{name}.json"
    if not file.exists():
        return None
    return Measurement(**json.loads(file.read_text(encoding="utf-8")))


def write_measurement(measured: Measurement, folder: Path = FIGURES) -> None:
    """Write a figure's file, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(measured), indent=1, ensure_ascii=False) + "\n"
    _replace(folder / f"{measured.name}.json", text.encode())


def _replace(file: Path, content: bytes) -> None:
    beside = file.with_name(f"{file.name}.tmp")
    beside.write_bytes(content)
    beside.replace(file)


# What decides a figure.


def present_models(figure: Figure) -> dict[str, str]:
    """Return name and revision of the bundled models that decide a figure.

    Raises:
        FigureError: It names a model that is not bundled.
    """
    found = {}
    for role in figure.models:
        if role not in MODEL_FOLDERS:
            roles = ", ".join(MODEL_FOLDERS)
            raise FigureError(f"figure {figure.name}: no model {role!r} is bundled; name {roles}")
        card = json.loads((_BUNDLED / MODEL_FOLDERS[role] / "model.json").read_bytes())
        found[role] = f"{card['name']}@{card['revision']}"
    return found


def hash_data(figure: Figure, folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the files that a figure reads.

    Raises:
        FigureError: One is missing.
    """
    found = {}
    for path in figure.data:
        file = folder / path
        if not file.is_file():
            raise FigureError(
                f"figure {figure.name}: {path} is missing in {folder}; name the folder that holds "
                "the benchmarks with DATA=DIR (`ekphory eval --help` says where they come from)"
            )
        found[path] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def describe_machine() -> str:
    """Return processor, cores, operating system and Python."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{_processor()}, {cores} cores; {platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}"
    )


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise FigureError(f"git {arguments[0]}: {done.stderr.strip()}; measure in a git checkout")
    return done.stdout.strip()


def present_commit() -> str:
    """Return the commit, with `-dirty` where the code that is measured was changed since."""
    changed = _git("status", "--porcelain", "--", *_MEASURED_CODE)
    return _git("rev-parse", "HEAD") + ("-dirty" if changed else "")


def code_changed_since(commit: str) -> bool:
    """Say whether the product or the lab is another one than at a commit; so too if unknown."""
    against = ["diff", "--quiet", commit.removesuffix("-dirty"), "--", *_MEASURED_CODE]
    done = subprocess.run(["git", *against], cwd=ROOT, capture_output=True)
    return commit.endswith("-dirty") or done.returncode != 0


# Running.


def measure(figure: Figure, data: Path, kept: Path, *, again: bool = False) -> Measurement:
    """Run a figure's commands and return what they found.

    A command's report is kept, so a run that was interrupted goes on where it was, and a command
    that several figures share is run once.

    Args:
        figure: What to measure.
        data: The folder that the paths of its data begin at.
        kept: Where reports are kept.
        again: Run even what is kept.

    Raises:
        FigureError: A command failed, its report lacks a value, or data are missing.
    """
    hashes, models = hash_data(figure, data), present_models(figure)
    found: dict[str, float] = {}
    seconds, loads = 0.0, []
    for run in figure.runs:
        place = kept / f"{_identity(run, hashes)}.json.gz"
        if again or not place.exists():
            report = _run(run, data if figure.data else ROOT)
            kept.mkdir(parents=True, exist_ok=True)
            _replace(place, gzip.compress(json.dumps(report).encode()))
        report = json.loads(gzip.decompress(place.read_bytes()))
        seconds += report["seconds"]
        loads.append(report["load"])
        found |= select_values(report["document"], run)
    return Measurement(
        name=figure.name,
        command=figure.command,
        commit=present_commit(),
        models=models,
        data=hashes,
        machine=f"{describe_machine()}; load {loads[0]:.1f} when it began",
        seconds=round(seconds, 3),
        values=found,
    )


def _identity(run: Run, hashes: Mapping[str, str]) -> str:
    """Return the name of a report: of its command, data, code with models, and machine."""
    named = {path: sha for path, sha in hashes.items() if path.partition("/")[0] in run.command}
    trees = _git("rev-parse", *(f"HEAD:{part}" for part in _MEASURED_CODE))
    changes = _git("diff", "HEAD", "--", *_MEASURED_CODE)
    whole = json.dumps([run.command, named or hashes, trees, changes, describe_machine()])
    return hashlib.sha256(whole.encode()).hexdigest()[:24]


def _run(run: Run, folder: Path) -> dict[str, Any]:
    words = shlex.split(run.command)
    # What the user's environment says must not decide a figure.
    environment = {name: text for name, text in os.environ.items() if name[:8] != "EKPHORY_"}
    while "=" in words[0]:
        name, _, text = words.pop(0).partition("=")
        environment[name] = text
    if words[0] not in _PROGRAMS:
        programs = ", ".join(_PROGRAMS)
        raise FigureError(f"`{run.command}` begins with none of {programs}; correct figures.toml")
    print(f"  {run.command}", flush=True)
    started, load = time.monotonic(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    done = subprocess.run(
        [*_PROGRAMS[words[0]], *words[1:]],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise FigureError(f"`{run.command}` ended with status {done.returncode}; see above")
    seconds = time.monotonic() - started
    return {"seconds": seconds, "load": load, "document": json.loads(done.stdout)}
