"""Measure what `ekphory cluster import` takes, by one processor and by two.

`python -m scripts.measure_bulk` imports generated memories of many projects into stores of shards
on an object storage of this machine that answers 30 ms late, once with `--cpus 1` and once with
`--cpus 2`, each in a store of its own. Processor time is that of the command and all of Ray's
processes, without the object storage; that of the embedder is measured on the same texts by
itself. Starting Ray and loading the models is left out: the same is imported twice, and the second
time, which finds everything, is what that takes. Needs Linux and the extras cluster, cluster-test.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ekphory_lab.bench.cluster import object_storage
from ekphory_lab.bench.generate import Corpus

_SHARDS = 8
_DELAY = 0.03
_LOOK_SECONDS = 0.25
_TICKS = os.sysconf("SC_CLK_TCK")
_EMBED = """
import json, sys, time
from ekphory.cluster.bulk import CHUNK
from ekphory.models.onnx_models import load_bundled
from ekphory_lab.bench.generate import Corpus, passage
corpus = Corpus(scopes=int(sys.argv[2]))
texts = [passage(record) for record in corpus.records(0, int(sys.argv[1]))]
model = load_bundled()
model.encode(texts[:CHUNK])
began = time.process_time()
for start in range(0, len(texts), CHUNK):
    model.encode(texts[start : start + CHUNK])
print(time.process_time() - began)
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """What an import took, beyond starting.

    Attributes:
        seconds: By the clock.
        per_second: Memories.
        processor: Seconds of all processes.
        beside_embedder: Share of the embedder's seconds that the rest took.
    """

    seconds: float
    per_second: float
    processor: float
    beside_embedder: float


def measure_bulk(folder: Path, *, memories: int, projects: int) -> dict[str, object]:
    """Import so many memories by one processor and by two."""
    file = folder / "memories.jsonl"
    _write(file, memories=memories, projects=projects)
    embedder = _embed_alone(memories, projects)
    taken: dict[int, Taken] = {}
    for cpus in (1, 2):
        with object_storage(delay=_DELAY):
            whole, start = (_import(file, cpus) for _ in range(2))
        seconds, processor = whole[0] - start[0], whole[1] - start[1]
        rest = (processor - embedder) / embedder
        taken[cpus] = Taken(
            round(seconds, 1), round(memories / seconds, 1), round(processor, 1), round(rest, 3)
        )
    return {
        "memories": memories,
        "projects": projects,
        "embedder_processor": round(embedder, 1),
        "workers": {str(cpus): asdict(each) for cpus, each in taken.items()},
        "gain": round(taken[1].seconds / taken[2].seconds, 2),
    }


def _write(file: Path, *, memories: int, projects: int) -> None:
    with file.open("w", encoding="utf-8") as lines:
        for record in Corpus(scopes=projects).records(0, memories):
            lines.write(json.dumps({**record, "org": "bench"}, default=str) + "\n")


def _embed_alone(memories: int, projects: int) -> float:
    words = [sys.executable, "-c", _EMBED, str(memories), str(projects)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def _import(file: Path, cpus: int) -> tuple[float, float]:
    """Run the command; return seconds by the clock, and of a processor."""
    words = [
        *(sys.executable, "-m", "ekphory", "cluster", "import", str(file), "--json"),
        *("--store", f"s3://bench/by-{cpus}", "--shards", str(_SHARDS), "--cpus", str(cpus)),
    ]
    # Ray's workers run at the lowest priority otherwise.
    environment = os.environ | {"EKPHORY_DAEMON": "0", "RAY_worker_niceness": "0"}
    used: dict[int, float] = {}
    began = time.monotonic()
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as command:
        reader = threading.Thread(target=command.communicate, daemon=True)
        reader.start()
        while command.poll() is None:
            used |= dict(_processor_of_children(os.getpid()))
            time.sleep(_LOOK_SECONDS)
        reader.join()
    if command.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {command.returncode}")
    return time.monotonic() - began, sum(used.values())


def _processor_of_children(process: int) -> Iterator[tuple[int, float]]:
    """Tell of all descendants of a process, and the seconds of a processor that each used."""
    children: dict[int, list[tuple[int, float]]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                told = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended since
            seconds = (int(told[11]) + int(told[12])) / _TICKS
            children.setdefault(int(told[1]), []).append((int(folder.name), seconds))
    waiting = [process]
    while waiting:
        found = children.get(waiting.pop(), [])
        waiting += [child for child, _ in found]
        yield from found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was measured as JSON."""
    parser = argparse.ArgumentParser(prog="python -m scripts.measure_bulk", description=__doc__)
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--projects", type=int, default=40)
    asked = parser.parse_args(arguments)
    if min(asked.memories, asked.projects) < 1:
        parser.error("--memories and --projects must be 1 or more")
    with tempfile.TemporaryDirectory(prefix="ekphory-bulk-") as folder:
        found = measure_bulk(Path(folder), memories=asked.memories, projects=asked.projects)
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
