"""The commands that ekphory-lab adds to `ekphory`."""

from __future__ import annotations

from ekphory.cli.command import AddedCommands, CommandGroup, Entry
from ekphory_lab.cli.bench_commands import bench, bench_server
from ekphory_lab.cli.eval_commands import (
    ablation,
    beir,
    conversation,
    cues,
    injection,
    locomo,
    multihop,
    probabilities,
)
from ekphory_lab.cli.fit_commands import (
    calibration,
    export,
    gate,
    generate,
    reranker_calibration,
    unpack,
)
from ekphory_lab.cli.model_commands import (
    average,
    components,
    embedder,
    export_reranker,
    recipe,
    reranker,
)
from ekphory_lab.cli.rerank_commands import agentmem, rerank

_PANEL = "Measure and train"

EVALUATIONS = (
    Entry("locomo", locomo, "", "ekphory eval locomo --data locomo10.json --system ekphory"),
    Entry(
        "conversation",
        conversation,
        "",
        "ekphory eval conversation --data realtalk --show-misses --limit 5",
    ),
    Entry("beir", beir, "", "ekphory eval beir --data scifact --configs A,C,GATE-A"),
    Entry("ablation", ablation, "", "ekphory eval ablation --data locomo10.json --data scifact"),
    Entry(
        "injection",
        injection,
        "",
        "ekphory eval injection --data tests/prompting/injection_lines.jsonl --part held_out",
    ),
    Entry("agentmem", agentmem, "", "ekphory eval agentmem --data realtalk --model my-embedder"),
    Entry("cues", cues, "", "ekphory eval cues --json cues.json"),
    Entry("rerank", rerank, "", "ekphory eval rerank --data locomo10.json --rerankers none,bm25"),
    Entry("multihop", multihop, "", "ekphory eval multihop --data 2wiki_dev --agent local"),
    Entry(
        "probabilities",
        probabilities,
        "",
        "ekphory eval probabilities --only statements --preset balanced",
    ),
)

TRAINING = (
    Entry(
        "embedder",
        embedder,
        "",
        "ekphory train embedder --data train --base all-MiniLM-L6-v2 --target run",
    ),
    Entry(
        "average",
        average,
        "",
        "ekphory train average --base BASE --trained run/model --share 0.8 --target m",
    ),
    Entry(
        "recipe",
        recipe,
        "",
        "ekphory train recipe ekphory-small --data train --output DIR --dry-run",
    ),
    Entry("components", components, "", "ekphory train components --model run/model --target m"),
    Entry("export", export, "", "ekphory train export --source all-MiniLM-L6-v2 --target model"),
    Entry("unpack", unpack, "", "ekphory train unpack --target base"),
    Entry(
        "reranker",
        reranker,
        "",
        "ekphory train reranker --data train --base run/model --target rerank-run",
    ),
    Entry(
        "export-reranker",
        export_reranker,
        "",
        "ekphory train export-reranker --source run/model --target m --calibration held.jsonl.gz",
    ),
    Entry("generate", generate, "", "ekphory train generate --count 1000 --out samples.jsonl"),
    Entry("calibration", calibration, "", "ekphory train calibration --data training-data"),
    Entry("gate", gate, "", "ekphory train gate --data training-data --reranker model"),
    Entry(
        "reranker-calibration",
        reranker_calibration,
        "",
        "ekphory train reranker-calibration --data train --reranker model --target card.json",
    ),
)

COMMANDS = AddedCommands(
    entries=(
        Entry("bench", bench, _PANEL, "ekphory bench --n 10000 --scopes 50 --json bench.json"),
        Entry("bench-server", bench_server, _PANEL, "ekphory bench-server --n 10000 --seconds 20"),
    ),
    groups=(
        CommandGroup("eval", "Measure retrieval on a benchmark.", _PANEL, EVALUATIONS),
        CommandGroup("train", "Make the models.", _PANEL, TRAINING),
    ),
)
