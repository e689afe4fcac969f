"""The commands that ekphory-lab adds to `ekphory`."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from types import ModuleType

from ekphory.cli.command import AddedCommands, CommandGroup, Entry
from ekphory_lab.cli import eval_commands, reader_commands, reranker_commands, train_commands
from ekphory_lab.cli.bench_commands import bench, bench_cluster, bench_server

_PANEL = "Measure and train"
_EXAMPLES: dict[str, dict[str, str]] = tomllib.loads(
    files("ekphory_lab.cli").joinpath("commands.toml").read_text(encoding="utf-8")
)
"""By group and command: the options of an example."""


def _group(name: str, summary: str, *modules: ModuleType) -> CommandGroup:
    functions = {key: value for module in modules for key, value in vars(module).items()}
    entries = tuple(
        Entry(each, functions[each.replace("-", "_")], "", f"ekphory {name} {each} {options}")
        for each, options in _EXAMPLES[name].items()
    )
    return CommandGroup(name, summary, _PANEL, entries)


COMMANDS = AddedCommands(
    entries=(
        Entry("bench", bench, _PANEL, "ekphory bench --n 10000 --scopes 50 --json bench.json"),
        Entry("bench-server", bench_server, _PANEL, "ekphory bench-server --n 10000 --seconds 20"),
        Entry("bench-cluster", bench_cluster, _PANEL, "ekphory bench-cluster --n 10000 --json -"),
    ),
    groups=(
        _group("eval", "Measure retrieval on a benchmark.", eval_commands),
        _group("train", "Make the models.", reader_commands, reranker_commands, train_commands),
    ),
)
