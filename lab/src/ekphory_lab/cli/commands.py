"""The commands that ekphory-lab adds to `ekphory`."""

from __future__ import annotations

from collections.abc import Mapping

from ekphory.cli.command import AddedCommands, CommandGroup, Entry, Function
from ekphory_lab.cli.bench_commands import bench, bench_server
from ekphory_lab.cli.eval_commands import (
    ablation,
    agentmem,
    beir,
    conversation,
    cues,
    injection,
    locomo,
    multihop,
    probabilities,
    rerank,
)
from ekphory_lab.cli.train_commands import (
    average,
    calibration,
    embedder,
    export,
    export_reranker,
    gate,
    generate,
    recipe,
    reranker,
    reranker_calibration,
    unpack,
)

_PANEL = "Measure and train"
_EVALUATIONS = {
    "locomo": (locomo, "--data locomo10.json --system ekphory"),
    "conversation": (conversation, "--data realtalk --show-misses"),
    "beir": (beir, "--data scifact --configs A,C,GATE-A"),
    "ablation": (ablation, "--data locomo10.json --data scifact"),
    "injection": (injection, "--data tests/prompting/injection_lines.jsonl --part held_out"),
    "agentmem": (agentmem, "--data realtalk --model my-embedder"),
    "cues": (cues, "--json cues.json"),
    "rerank": (rerank, "--data locomo10.json --rerankers none,bm25"),
    "multihop": (multihop, "--data 2wiki_dev --agent local"),
    "probabilities": (probabilities, "--only statements --preset balanced"),
}
_TRAINING = {
    "embedder": (embedder, "--data train --base all-MiniLM-L6-v2 --target run"),
    "average": (average, "--base BASE --trained run/model --share 0.8 --target m"),
    "recipe": (recipe, "ekphory-small --data train --output DIR --dry-run"),
    "export": (export, "--source all-MiniLM-L6-v2 --target model"),
    "unpack": (unpack, "--target base"),
    "reranker": (reranker, "--data train --base run/model --target rerank-run"),
    "export-reranker": (
        export_reranker,
        "--source run/model --target m --calibration held.jsonl.gz",
    ),
    "generate": (generate, "--count 1000 --out samples.jsonl"),
    "calibration": (calibration, "--data training-data"),
    "gate": (gate, "--data training-data --reranker model"),
    "reranker-calibration": (
        reranker_calibration,
        "--data train --reranker model --target card.json",
    ),
}
"""By name: what runs, and the options of an example."""


def _group(name: str, summary: str, commands: Mapping[str, tuple[Function, str]]) -> CommandGroup:
    entries = tuple(
        Entry(each, function, "", f"ekphory {name} {each} {options}")
        for each, (function, options) in commands.items()
    )
    return CommandGroup(name, summary, _PANEL, entries)


COMMANDS = AddedCommands(
    entries=(
        Entry("bench", bench, _PANEL, "ekphory bench --n 10000 --scopes 50 --json bench.json"),
        Entry("bench-server", bench_server, _PANEL, "ekphory bench-server --n 10000 --seconds 20"),
    ),
    groups=(
        _group("eval", "Measure retrieval on a benchmark.", _EVALUATIONS),
        _group("train", "Make the models.", _TRAINING),
    ),
)
