"""Measure what a prompt hook puts before the model, and how long its tool waits for it.

`python -m scripts.measure_hooks tokens` plays the written day of `tests/hooks/long_session.txt`,
asks its questions and prompts that need nothing of it, and counts the tokens that come back.
`python -m scripts.measure_hooks latency --memories 100000` fills a store with generated memories
and times the command, its start included. Without a name both are measured.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

from scripts.hook_sessions import PROJECT, HookHome, WrittenSession, read_session

from ekphory.hooks.hosts import HOSTS
from ekphory.hooks.running import LEAST_PROBABILITY, LEAST_RELEVANCE, HookRun
from ekphory.hooks.state import HookState
from ekphory.memory import Memory
from ekphory.models.onnx_models import load_bundled
from ekphory.prompting.block import estimate_tokens
from ekphory_lab.bench.generate import Corpus, PooledEmbedder, VectorPool, passage

THRESHOLDS = ((0.2, 0.0), (0.3, 0.0), (0.5, 0.0), (LEAST_PROBABILITY, LEAST_RELEVANCE))
"""By the search and by the reranker; the last ones are those of the product."""
_MEMORY = re.compile(r"<memory\b.*?</memory>", re.DOTALL)
_EMBEDDED = 2_000
"""Of so many generated memories the vectors are computed; the others take theirs with noise."""
_WRITTEN_AT_ONCE = 5_000


# Tokens.


@dataclass(frozen=True, slots=True)
class Recalled:
    """What one prompt was given.

    Attributes:
        tokens: Of the whole block, estimated as the product does.
        needed: Those of the memories that hold what the prompt asks for.
    """

    tokens: int
    needed: int


@dataclass(frozen=True, slots=True)
class TokenRow:
    """What prompts were given at one threshold.

    Attributes:
        least_probability: What the search finds less likely to answer is not recalled.
        least_relevance: Nor is what the reranker finds less relevant.
        questions: How many were asked.
        answered: How many of them were given what they need.
        tokens_a_question: The mean of what came back, in tokens.
        needed_share: Of these tokens, those of memories that the question needed.
        unrelated: Prompts that need nothing.
        disturbed: How many of them were given something.
        tokens_an_unrelated: The mean of what came back, in tokens.
    """

    least_probability: float
    least_relevance: float
    questions: int
    answered: int
    tokens_a_question: float
    needed_share: float
    unrelated: int
    disturbed: int
    tokens_an_unrelated: float


def measure_tokens(home: HookHome, written: WrittenSession) -> list[TokenRow]:
    """Play a written session a day ago, and ask at each threshold."""
    home.play(written, session="yesterday", began=datetime.now(UTC) - timedelta(days=1))
    home.stop()
    return [_ask_all(home, written, least) for least in THRESHOLDS]


def _ask_all(home: HookHome, written: WrittenSession, least: tuple[float, float]) -> TokenRow:
    asked = [_ask(home, written, least, prompt=text, key=key) for key, text in written.questions]
    others = [_ask(home, written, least, prompt=text, key="") for text in written.unrelated]
    tokens = sum(each.tokens for each in asked)
    return TokenRow(
        least_probability=least[0],
        least_relevance=least[1],
        questions=len(asked),
        answered=sum(each.needed > 0 for each in asked),
        tokens_a_question=round(mean(each.tokens for each in asked), 1),
        needed_share=round(sum(each.needed for each in asked) / tokens, 3) if tokens else 0.0,
        unrelated=len(others),
        disturbed=sum(each.tokens > 0 for each in others),
        tokens_an_unrelated=round(mean(each.tokens for each in others), 1),
    )


def _ask(
    home: HookHome, written: WrittenSession, least: tuple[float, float], *, prompt: str, key: str
) -> Recalled:
    """Run the prompt hook of a session in which nothing was asked before."""
    with tempfile.TemporaryDirectory() as folder:
        state = HookState(Path(folder))
        run = HookRun(
            HOSTS["claude-code"],
            "prompt",
            state,
            partial(Memory, home.store),
            least_probability=least[0],
            least_relevance=least[1],
        )
        reply = run.reply(
            json.dumps({"session_id": "today", "cwd": str(home.folder), "prompt": prompt})
        )
        if (failure := state.events(limit=1)[0].failure) is not None:
            raise RuntimeError(failure)
    block = json.loads(reply)["hookSpecificOutput"]["additionalContext"] if reply else ""
    shown = _MEMORY.findall(block)
    needed = [each for each in shown if key and written.answers(key, html.unescape(each))]
    return Recalled(estimate_tokens(block) if block else 0, sum(map(estimate_tokens, needed)))


# Latency.


def measure_latency(home: HookHome, *, memories: int, projects: int, runs: int) -> dict[str, Any]:
    """Fill the home's store, and time the prompt hook."""
    # What was filled in is not compared, which would take hours and is another measurement.
    os.environ["EKPHORY_DETECT_CHANGES"] = home.environment["EKPHORY_DETECT_CHANGES"] = "0"
    corpus = Corpus(scopes=projects)
    started = time.perf_counter()
    fill(home, corpus, memories=memories)
    filled = time.perf_counter() - started
    return {
        "memories": memories,
        "in_the_project": memories // projects,
        "fill_seconds": round(filled),
        **time_prompts(home, corpus, memories=memories, runs=runs),
    }


def time_prompts(home: HookHome, corpus: Corpus, *, memories: int, runs: int) -> dict[str, Any]:
    """Time the prompt hook on a store that is filled."""
    prompts = [each.text for each in corpus.queries(runs + 3, rows=memories)]
    for place, prompt in enumerate(prompts[:3]):  # starts the resident process, and warms it
        home.fire("prompt", session=f"warm-{place}", prompt=prompt)
        pid = home.wait_for_resident()
    before = _processor_ms(pid)
    calls = [_time_call(home, n, prompt) for n, prompt in enumerate(prompts[3:])]
    taken = [wall for wall, _, _ in calls]
    inside = [each.milliseconds for each in home.state.events(limit=runs)]
    return {
        "runs": runs,
        "p50_ms": round(median(taken)),
        "p95_ms": round(quantiles(taken, n=20)[-1]),
        "most_ms": round(max(taken)),
        "recalled_something": sum(answered for _, _, answered in calls),
        "inside_p50_ms": round(median(inside)),
        "command_processor_ms": round(mean(cpu for _, cpu, _ in calls)),
        "resident_processor_ms": round((_processor_ms(pid) - before) / runs),
        "load_average": round(os.getloadavg()[0], 1),
        "processors": os.cpu_count(),
    }


def fill(home: HookHome, corpus: Corpus, *, memories: int) -> None:
    """Write generated memories, whose first project is the home's; most vectors are reused."""
    embedder = load_bundled()
    pool = VectorPool.at(home.path / "pool", embedder=embedder, corpus=corpus)
    own = min(memories, _EMBEDDED)
    pool.extend([passage(record) for record in corpus.records(0, own)], embedder=embedder)
    pooled = PooledEmbedder(pool, lambda: embedder)
    with Memory(home.store, embedder=pooled) as memory:
        for start in range(0, memories, _WRITTEN_AT_ONCE):
            records = list(corpus.records(start, min(memories, start + _WRITTEN_AT_ONCE)))
            for record in records:
                if record["project"] == corpus.project(0):
                    record["project"] = PROJECT
            pooled.announce(records, start=start)
            memory.add_many(records)


def _time_call(home: HookHome, number: int, prompt: str) -> tuple[float, float, bool]:
    """Return milliseconds and processor milliseconds of one prompt hook, and whether it told."""
    payload = {"session_id": f"s{number}", "cwd": str(home.folder), "prompt": prompt}
    started = time.perf_counter()
    with subprocess.Popen(
        home.command("hook", "run", "claude-code", "prompt"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=home.environment,
        cwd=home.folder,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(payload).encode())
        process.stdin.close()
        told = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        taken = 1000 * (time.perf_counter() - started)
        process.returncode = os.waitstatus_to_exitcode(status)
    return taken, 1000 * (used.ru_utime + used.ru_stime), bool(told)


def _processor_ms(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# The command.


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m scripts.measure_hooks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("tokens", "latency"), help="else both")
    parser.add_argument("--memories", type=int, default=1_000, help="in the store that is timed")
    parser.add_argument("--projects", type=int, default=1, help="that they are dealt to")
    parser.add_argument("--runs", type=int, default=100, help="prompts that are timed")
    parser.add_argument("--json", action="store_true", help="one JSON document, and no tables")
    asked = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    if asked.what != "latency":
        rows = _in_a_home(partial(measure_tokens, written=read_session()))
        found["tokens"] = [asdict(row) for row in rows]
    if asked.what != "tokens":
        sizes = {"memories": asked.memories, "projects": asked.projects, "runs": asked.runs}
        found["latency"] = _in_a_home(partial(measure_latency, **sizes))
    print(json.dumps(found, indent=2) if asked.json else _format(found))


def _in_a_home(measure: Any) -> Any:  # noqa: ANN401  whatever is measured
    folder = Path(tempfile.mkdtemp(prefix="ek"))
    home = HookHome(folder)
    try:
        return measure(home)
    finally:
        home.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _format(found: dict[str, Any]) -> str:
    """Return what was found as tables of Markdown."""
    rows = [*found.get("tokens", ()), *([found["latency"]] if "latency" in found else ())]
    lines, head = [], None
    for row in rows:
        names = [name.replace("_", " ") for name in row]
        if names != head:
            lines += ["", f"| {' | '.join(names)} |", "|" + "---:|" * len(names)]
            head = names
        lines.append(f"| {' | '.join(map(str, row.values()))} |")
    return "\n".join(lines).strip()


if __name__ == "__main__":
    main()
