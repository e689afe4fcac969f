import shlex

import pytest

from ekphory import __version__
from ekphory.cli.app import COMMANDS, EVALUATIONS, PIPELINES, TRAINING

WORDS = (
    [(entry.name,) for entry in COMMANDS]
    + [("pipeline", entry.name) for entry in PIPELINES]
    + [("eval", entry.name) for entry in EVALUATIONS]
    + [("train", entry.name) for entry in TRAINING]
)
EXAMPLES = {
    words: entry.example
    for words, entry in zip(WORDS, (*COMMANDS, *PIPELINES, *EVALUATIONS, *TRAINING), strict=True)
}


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_command_has_help_with_an_example_and_json(ekphory, words):
    result = ekphory.run(*words, "--help")
    assert result.exit_code == 0
    assert f"Example: ekphory {' '.join(words)}" in result.stdout
    assert "--json" in result.stdout
    assert "--debug" in result.stdout


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_example_is_a_command_line_that_can_be_read(ekphory, words):
    arguments = shlex.split(EXAMPLES[words])[1:]
    assert tuple(arguments[: len(words)]) == words
    # With --help behind it the whole line is parsed, and nothing runs.
    assert ekphory.run(*arguments, "--help").exit_code == 0


def test_the_help_lists_every_command(ekphory):
    shown = ekphory.run("--help").stdout
    assert all(f" {entry.name} " in shown for entry in COMMANDS)
    assert " pipeline " in shown
    assert " eval " in shown
    assert " train " in shown


def test_the_version_is_shown(ekphory):
    assert ekphory.run("--version").stdout == f"ekphory {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [("search",), ("search", "x", "--nonsense"), ("remember", "x"), ("search", "x", "--k", "many")],
)
def test_a_wrong_command_line_exits_with_2(ekphory, arguments):
    assert ekphory.run(*arguments).exit_code == 2
