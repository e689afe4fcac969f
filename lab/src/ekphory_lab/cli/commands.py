"""The commands that ekphory-lab adds to `ekphory`."""

from __future__ import annotations

from collections.abc import Mapping

from ekphory.cli.command import AddedCommands, CommandGroup, Entry, Function
from ekphory_lab.cli import eval_commands as evaluate
from ekphory_lab.cli import reader_commands as readers
from ekphory_lab.cli import reranker_commands as rerankers
from ekphory_lab.cli import train_commands as train
from ekphory_lab.cli.bench_commands import bench, bench_server

_PANEL = "Measure and train"
_EVALUATIONS = {
    "locomo": (evaluate.locomo, "--data locomo10.json --system ekphory"),
    "conversation": (evaluate.conversation, "--data realtalk --show-misses"),
    "beir": (evaluate.beir, "--data scifact --configs A,C,GATE-A"),
    "ablation": (evaluate.ablation, "--data locomo10.json --data scifact"),
    "injection": (
        evaluate.injection,
        "--data tests/prompting/injection_lines.jsonl --part held_out",
    ),
    "agentmem": (evaluate.agentmem, "--data realtalk --model my-embedder"),
    "cues": (evaluate.cues, "--json cues.json"),
    "changes": (evaluate.changes, "--data updates_dev/scenarios.jsonl"),
    "captures": (evaluate.captures, "--data capture_dev/transcripts.jsonl.gz"),
    "rerank": (evaluate.rerank, "--data locomo10.json --rerankers none,bm25"),
    "multihop": (evaluate.multihop, "--data 2wiki_dev --agent local"),
    "answers": (evaluate.answers, "--data 2wiki_dev --agent local --limit 50 --judge"),
    "probabilities": (evaluate.probabilities, "--only statements --preset balanced"),
}
_TRAINING = {
    "embedder": (train.embedder, "--data train --base all-MiniLM-L6-v2 --target run"),
    "average": (train.average, "--base BASE --trained run/model --share 0.8 --target m"),
    "recipe": (train.recipe, "ekphory-small --data train --output DIR --dry-run"),
    "export": (train.export, "--source all-MiniLM-L6-v2 --target model"),
    "unpack": (train.unpack, "--target base"),
    "reranker": (rerankers.reranker, "--data train --base run/model --target rerank-run"),
    "compare-stages": (
        rerankers.compare_stages,
        "--data train --base run/model --target compared --questions 200",
    ),
    "compare-teachers": (
        rerankers.compare_teachers,
        "--data train --teacher chat --answers answers.jsonl",
    ),
    "export-reranker": (
        train.export_reranker,
        "--source run/model --target m --calibration held.jsonl.gz",
    ),
    "generate": (train.generate, "--count 1000 --out samples.jsonl"),
    "calibration": (train.calibration, "--data training-data"),
    "asked-state": (readers.asked_state, "--json"),
    "hops": (readers.hops, "--json"),
    "capture-reader": (
        readers.capture_reader,
        "--base all-MiniLM-L6-v2 --target capture-run",
    ),
    "export-capture-reader": (
        readers.export_capture_reader,
        "--source capture-run/model --target capture-reader",
    ),
    "change-reader": (readers.change_reader, "--base all-MiniLM-L6-v2 --target change-run"),
    "export-change-reader": (
        readers.export_change_reader,
        "--source change-run/model --target change-reader",
    ),
    "gate": (train.gate, "--data training-data --reranker model"),
    "reranker-calibration": (
        train.reranker_calibration,
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
