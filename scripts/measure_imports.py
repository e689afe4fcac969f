"""Measure how fast `ekphory import` takes a JSONL, and what an item of LangGraph's store costs.

`python -m scripts.measure_imports` writes generated memories into files, adds them by `add_many` in
batches of 256, which is what `ekphory bench` times, and imports them by the command; each file is
taken both ways, one after the other, by a program of its own. What a program takes for one memory,
its start before all, is left out of its rate. Memories are not compared with earlier ones, which
goes on beside a write. Then items are put and got, beside a plain LanceDB `add` and the embedding.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import lancedb

from ekphory.frameworks.langgraph import EkphoryStore
from ekphory.memory import Memory
from ekphory.models.onnx_models import load_bundled
from ekphory_lab.bench.generate import BATCH, Corpus

_FILES = 4
_STARTS = 3
_ADD = "import sys; from scripts.measure_imports import add_file; add_file(*sys.argv[1:])"
_SETTINGS = {"EKPHORY_DETECT_CHANGES": "0", "EKPHORY_DAEMON": "0"}


# Imports.


@dataclass(frozen=True, slots=True)
class Taken:
    """What a program took, in seconds: of a clock, and of a processor."""

    wall: float
    processor: float

    def minus(self, other: Taken) -> Taken:
        """Return what it took beyond another one."""
        return Taken(self.wall - other.wall, self.processor - other.processor)


def measure_imports(folder: Path, *, megabytes: float) -> dict[str, Any]:
    """Take files of so many megabytes in all both ways, and compare the rates."""
    programs: dict[str, Callable[[Path], list[str]]] = {
        "add": lambda file: ["-c", _ADD, str(file), str(folder / "added")],
        "import": lambda file: [
            *("-m", "ekphory", "import", str(file), "--format", "jsonl"),
            *("--store", str(folder / "imported")),
        ],
    }
    lines = _lines(Corpus())
    start = {name: _time_starts(folder, lines, words) for name, words in programs.items()}
    taken: dict[str, list[Taken]] = {name: [] for name in programs}
    records = size = 0
    for place in range(_FILES):
        file = folder / f"memories-{place}.jsonl"
        records += _write(file, lines, size=int(megabytes * 1e6 / _FILES))
        size += file.stat().st_size
        for name in sorted(programs, reverse=place % 2 == 1):
            taken[name].append(_run(programs[name](file)).minus(start[name]))
    wall = {name: sum(each.wall for each in parts) for name, parts in taken.items()}
    processor = {name: sum(each.processor for each in parts) for name, parts in taken.items()}
    return {
        "records": records,
        "megabytes": round(size / 1e6, 1),
        "rates": {
            name: {
                "per_second": round(records / wall[name]),
                "per_processor_second": round(records / processor[name]),
                "start": asdict(start[name]),
            }
            for name in programs
        },
        "import_of_add": {
            "wall": round(wall["add"] / wall["import"], 3),
            "processor": round(processor["add"] / processor["import"], 3),
        },
    }


def add_file(file: str, store: str) -> None:
    """Add the memories of a file."""
    with Path(file).open(encoding="utf-8") as stream, Memory(store) as memory:
        records = [json.loads(line) for line in stream]
        for first in range(0, len(records), BATCH):
            memory.add_many(records[first : first + BATCH])


def _lines(corpus: Corpus) -> Iterator[str]:
    for first in count(step=BATCH):
        for record in corpus.records(first, first + BATCH):
            yield json.dumps(record, default=str, ensure_ascii=False) + "\n"


def _write(file: Path, lines: Iterator[str], *, size: int) -> int:
    """Write lines until the file has that size in bytes, and return how many."""
    written = records = 0
    with file.open("w", encoding="utf-8") as stream:
        while written < size:
            line = next(lines)
            stream.write(line)
            written += len(line.encode())
            records += 1
    return records


def _time_starts(folder: Path, lines: Iterator[str], words: Callable[[Path], list[str]]) -> Taken:
    """Return the median of what a program takes for a file with one memory."""
    taken = []
    for _ in range(_STARTS + 1):
        file = folder / "one.jsonl"
        _write(file, lines, size=1)
        taken.append(_run(words(file)))
    # The first one makes the store.
    wall, processor = zip(*((each.wall, each.processor) for each in taken[1:]), strict=True)
    return Taken(median(wall), median(processor))


def _run(words: Sequence[str]) -> Taken:
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(words))
    return Taken(wall, used.ru_utime + used.ru_stime)


# LangGraph.


def measure_items(folder: Path, *, items: int) -> dict[str, dict[str, float]]:
    """Put and get items, each beside a plain LanceDB `add` and the embedding of its text."""
    embedder = load_bundled()
    texts = [str(record["text"]) for record in Corpus().records(0, items + 1)]
    table: Any = None
    taken: dict[str, list[Taken]] = {}

    def take(name: str, call: Callable[[], object]) -> None:
        started = Taken(time.perf_counter(), time.process_time())
        call()
        ended = Taken(time.perf_counter(), time.process_time())
        taken.setdefault(name, []).append(ended.minus(started))

    with Memory(str(folder / "items"), user="mara") as memory:
        store = EkphoryStore(memory)
        for place, text in enumerate(texts):
            vector = embedder.encode([text])[0]
            row = {"id": str(place), "text": text, "vector": vector}
            if table is None:  # the first of each makes what it writes to, and is not counted
                table = lancedb.connect(folder / "plain").create_table("items", [row])
                store.put(("notes",), str(place), {"text": text})
                continue
            take("put", partial(store.put, ("notes",), str(place), {"text": text}))
            take("get", partial(store.get, ("notes",), str(place)))
            take("LanceDB `add`", partial(table.add, [row]))
            take("embedding", partial(embedder.encode, [text]))
    with Memory(str(folder / "items"), user="mara") as memory:
        store = EkphoryStore(memory)
        for place in range(len(texts)):
            # The first one opens the table, and is not counted.
            get = partial(store.get, ("notes",), str(place))
            take("get of an item that this process has not seen", get) if place else get()
    return {name: _summarise(each) for name, each in taken.items()}


def _summarise(taken: Sequence[Taken]) -> dict[str, float]:
    wall = [1000 * each.wall for each in taken]
    return {
        "p50_ms": round(median(wall), 2),
        "p95_ms": round(quantiles(wall, n=20)[-1], 2),
        "processor_ms": round(median(1000 * each.processor for each in taken), 2),
    }


# The command.


def _number(given: str) -> float:
    if not (value := float(given)) > 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, not {given}")
    return value


def _count(given: str) -> int:
    return int(_number(str(int(given))))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m scripts.measure_imports", description=__doc__)
    parser.add_argument("--megabytes", type=_number, default=50, help="of JSONL that are imported")
    parser.add_argument("--items", type=_count, default=200, help="of LangGraph's store")
    parser.add_argument("--json", action="store_true", help="one JSON document, and no table")
    asked = parser.parse_args(arguments)
    os.environ.update(_SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "imports": measure_imports(Path(folder), megabytes=asked.megabytes),
            "langgraph": measure_items(Path(folder), items=asked.items),
        }
    print(json.dumps(found, indent=2) if asked.json else _format(found))


def _format(found: dict[str, Any]) -> str:
    imports, share = found["imports"], found["imports"]["import_of_add"]
    rows = [f"{imports['records']:,} memories, {imports['megabytes']} MB"]
    rows += [
        f"{name}: {rate['per_second']} a second, {rate['per_processor_second']} a processor second"
        for name, rate in imports["rates"].items()
    ]
    rows.append(f"import of add: {share['processor']} by processor time, {share['wall']} by clock")
    rows += [
        f"{name}: p50 {each['p50_ms']} ms, p95 {each['p95_ms']} ms, "
        f"{each['processor_ms']} ms of a processor"
        for name, each in found["langgraph"].items()
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    main()
