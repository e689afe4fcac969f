import shlex
from importlib.metadata import EntryPoint

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from ekphory import __version__
from ekphory.cli import app
from ekphory.cli.app import COMMANDS, GROUPS
from ekphory.cli.command import spread
from ekphory_lab.cli.commands import COMMANDS as LAB_COMMANDS

EXAMPLES = {
    **{(entry.name,): entry.example for entry in (*COMMANDS, *LAB_COMMANDS.entries)},
    **{
        (group.name, entry.name): entry.example
        for group in (*GROUPS, *LAB_COMMANDS.groups)
        for entry in group.entries
    },
}
WORDS = list(EXAMPLES)


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_command_has_an_example_that_can_be_read_and_help_that_shows_it(ekphory, words):
    arguments = shlex.split(EXAMPLES[words])[1:]
    assert tuple(arguments[: len(words)]) == words
    # With --help behind it the whole line is parsed, and nothing runs.
    result = ekphory.run(*arguments, "--help")
    assert result.exit_code == 0
    assert f"Example: ekphory {' '.join(words)}" in result.stdout
    assert "--json" in result.stdout
    assert "--debug" in result.stdout


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_argument_and_option_says_what_it_is_for(words):
    command = get_command(app.app)
    for word in words:
        command = command.commands[word]
    assert [each.name for each in command.params if not each.help] == []


def test_help_for_what_is_no_parameter_is_a_mistake_of_the_program():
    def paint(*, colour: str = "red") -> None:
        """Paint.

        Args:
            color: Of the paint.
        """

    with pytest.raises(TypeError, match="color must be a parameter"):
        spread(paint)


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


@pytest.mark.parametrize("name", ["bench", "bench-cluster", "bench-server", "eval", "train"])
def test_without_the_lab_a_command_of_it_says_what_to_install(monkeypatch, name):
    monkeypatch.setattr(app, "entry_points", lambda **_: ())
    result = CliRunner().invoke(app._make_application(), [name, "locomo", "--data", "x"])
    assert result.exit_code == 2
    assert "is not installed. Install it with: pip install ekphory ekphory-lab" in result.output


def test_a_lab_that_cannot_be_loaded_leaves_the_other_commands_as_they_are(monkeypatch):
    broken = EntryPoint("lab", "ekphory.no_such_module:COMMANDS", "ekphory.commands")
    monkeypatch.setattr(app, "entry_points", lambda **_: (broken,))
    application = app._make_application()
    assert CliRunner().invoke(application, ["--version"]).exit_code == 0
    assert "cannot be loaded (No module named" in CliRunner().invoke(application, ["eval"]).output


def test_the_help_of_eval_says_where_the_data_come_from(ekphory):
    shown = ekphory.run("eval", "--help").stdout
    assert "https://github.com/snap-research/locomo" in shown
    assert "https://github.com/beir-cellar/beir" in shown
