"""Measure calls beside those of an earlier state of this repository, in turns.

`python -m scripts.measure_against CHECKOUT --data shared/data` prints one JSON document. CHECKOUT
is a clone at the earlier commit; its code runs in this environment, with its own bundled models.
Each state has a process and a store of its own; rounds of calls alternate, so that both meet the
same machine. A ratio is the median of this state over the median of the earlier one.

- put, get: LangGraph's store, an item at a time.
- plain, agent: a search of `everyday_dev`, without and with `agent_mode`; chains: the same of every
  fourth question of `2wiki_dev` with `agent_mode`.
- balanced, accurate: a search of every eighth question of `locomo_dev`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles
from typing import Any

_ROUNDS = 6
_ITEMS = 40
_SEARCHES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "plain": ("everyday_dev", 1, {}),
    "agent": ("everyday_dev", 1, {"agent_mode": True}),
    "chains": ("2wiki_dev", 4, {"agent_mode": True}),
    "balanced": ("locomo_dev", 8, {"preset": "balanced"}),
    "accurate": ("locomo_dev", 8, {"preset": "accurate"}),
}


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read the objects of a file of JSON Lines, gzipped or not."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        yield from map(json.loads, lines)


class State:
    """The calls of the code that is on this process's path: a store for items, and one a set."""

    def __init__(self, checkout: Path, root: str, data: Path) -> None:
        name, store, module = "ekphory", "EkphoryStore", "langgraph"
        if not (checkout / "src" / name).exists():  # before the package got its name
            name, store, module = "recollect", "RecollectStore", "langgraph_store"
        package = import_module(name)
        assert str(package.__file__).startswith(str(checkout)), package.__file__
        self._root, self._data, self._open = root, data, package.Memory
        stores = import_module(f"{name}.frameworks.{module}")
        self._items = getattr(stores, store)(package.Memory(f"{root}/items", user="mara"))
        self._number = 0
        self._sets: dict[str, list[tuple[Any, dict[str, Any]]]] = {}

    def put(self) -> list[float]:
        """Store items of some twenty words each."""
        return [
            self._time(lambda: self._items.put(("notes",), *self._item())) for _ in range(_ITEMS)
        ]

    def get(self) -> list[float]:
        """Read the newest item again and again."""
        key = f"note-{self._number}"
        return [self._time(lambda: self._items.get(("notes",), key)) for _ in range(_ITEMS)]

    def search(self, kind: str, share: slice) -> list[float]:
        """Ask a share of a set's questions."""
        name, step, options = _SEARCHES[kind]
        if name not in self._sets:
            self._sets[name] = self._fill(name, step)
        times = []
        for memory, question in self._sets[name][share]:
            asked = dict(options, k=10, **({"now": question["at"]} if question.get("at") else {}))
            times.append(self._time(lambda m=memory, q=question, a=asked: m.search(q["text"], **a)))
        return times

    def _item(self) -> tuple[str, dict[str, str]]:
        self._number += 1
        text = (
            f"In week {self._number} the office in Ghent moved to room {self._number * 7}"
            " because the projector of the old one had been lent to the school."
        )
        return f"note-{self._number}", {"text": text}

    def _fill(self, name: str, step: int) -> list[tuple[Any, dict[str, Any]]]:
        folder = self._data / name
        pools: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in read_lines(folder / "corpus.jsonl.gz"):
            record = {"id": f"{line['pool']}/{line['id']}", "text": line["text"]}
            for field, key in (("at", "at"), ("speaker", "producer"), ("sequence", "sequence")):
                if line.get(field) is not None:
                    record[key] = line[field]
            if line.get("session") is not None:
                record["session"] = str(line["session"])
            pools[line["pool"]].append(record)
        memories = {}
        for pool, records in pools.items():
            project = "p" + "".join(filter(str.isalnum, pool))
            memories[pool] = self._open(f"{self._root}/{name}", project=project)
            memories[pool].add_many(records)
            getattr(memories[pool], "settle", lambda **_: None)(timeout=600)
        questions = list(read_lines(folder / "queries.jsonl"))[::step]
        asked = [(memories[question["pool"]], question) for question in questions]
        for memory, question in asked[:8]:
            memory.search(question["text"])
        return asked

    @staticmethod
    def _time(call: Callable[[], object]) -> float:
        start = time.perf_counter()
        call()
        return (time.perf_counter() - start) * 1_000


def answer(checkout: Path, data: Path) -> None:
    """Do what each line of standard input asks for, and print the milliseconds it took."""
    with tempfile.TemporaryDirectory() as root:
        state = State(checkout, root, data)
        for line in sys.stdin:
            kind, number = line.split()
            searched = kind in _SEARCHES
            share = slice(int(number), None, _ROUNDS)
            times = state.search(kind, share) if searched else getattr(state, kind)()
            print(json.dumps(times), flush=True)


def start(source: Path, data: Path) -> subprocess.Popen[str]:
    """Start a process that has one state's code on its path."""
    kept = {name: value for name, value in os.environ.items() if name[:8] != "EKPHORY_"}
    environment = {**kept, "PYTHONPATH": str(source / "src"), "EKPHORY_DAEMON": "0"}
    words = [sys.executable, __file__, str(source), "--data", str(data), "--answer"]
    return subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def ask(process: subprocess.Popen[str], kind: str, number: int) -> list[float]:
    """Have a process do one round, and return its times."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{kind} {number}\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"the process of {process.args!r} ended")
    return list(json.loads(line))


def describe(times: list[float]) -> dict[str, float]:
    """Return the median and the 95th percentile, in milliseconds."""
    return {"p50": round(median(times), 2), "p95": round(quantiles(times, n=20)[-1], 2)}


def main() -> None:
    """Read the command line, measure both states in turns, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a clone at the earlier commit")
    parser.add_argument("--data", type=Path, required=True, help="the folder of benchmark sets")
    calls = ("put", "get", *_SEARCHES)
    parser.add_argument(
        "--only", nargs="+", choices=calls, default=calls, help="calls to measure; all without it"
    )
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not (arguments.checkout / "src").is_dir():
        parser.error(f"{arguments.checkout} must be a clone of this repository: it has no src")
    sets = {_SEARCHES[kind][0] for kind in arguments.only if kind in _SEARCHES}
    for missing in (name for name in sorted(sets) if not (arguments.data / name).is_dir()):
        parser.error(f"{arguments.data} must hold the folder {missing}")
    if arguments.answer:
        answer(arguments.checkout, arguments.data)
        return
    here = Path(__file__).resolve().parent.parent
    processes = {
        name: start(source.resolve(), arguments.data.resolve())
        for name, source in (("earlier", arguments.checkout), ("now", here))
    }
    found: dict[str, Any] = {}
    for kind in arguments.only:
        times: dict[str, list[float]] = {name: [] for name in processes}
        for number in range(_ROUNDS):
            for name, process in processes.items():
                seen = ask(process, kind, number)
                if number or kind not in ("put", "get"):
                    times[name] += seen
        row: dict[str, Any] = {name: describe(each) for name, each in times.items()}
        row["ratio"] = round(row["now"]["p50"] / row["earlier"]["p50"], 3)
        found[kind] = row
        print(f"{kind}: {row}", file=sys.stderr, flush=True)
    for process in processes.values():
        process.communicate()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
