"""The commands that ekphory-lab adds to `ekphory`."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from types import ModuleType

from ekphory.cli.command import AddedCommands, CommandGroup, Entry
from ekphory_lab.cli import eval_commands, reader_commands, reranker_commands, train_commands
from ekphory_lab.cli.bench_commands import bench, bench_cluster, bench_server

_PANEL = "Measure and train"


def _read_table(package: str, name: str) -> dict[str, dict[str, str]]:
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))


_EXAMPLES = _read_table("ekphory_lab.cli", "commands.toml")
"""By group and command: the options of an example."""
_SOURCES = "\n".join(
    f"- {source['title']}: {source['obtain']}"
    for source in _read_table("ekphory_lab.evaluation", "sources.toml").values()
)
_EVAL = f"Measure retrieval on a benchmark.\n\nWhere the data come from:\n\n{_SOURCES}"


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
        _group("eval", _EVAL, eval_commands),
        _group("train", "Make the models.", reader_commands, reranker_commands, train_commands),
    ),
)
