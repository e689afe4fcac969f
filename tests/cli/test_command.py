import errno
import inspect
import json
from dataclasses import dataclass
from typing import Annotated, get_args

import pytest
import typer
from typer.testing import CliRunner

from ekphory.cli.command import command, gather, spread
from ekphory.cli.options import OutputOptions
from ekphory.errors import InvalidInput
from ekphory.importers.report import ImportInterrupted, ImportReport


@dataclass
class Failing:
    """A command line with one command, which raises."""

    error: BaseException

    def run(self, *arguments):
        @command
        def fail(output: OutputOptions) -> None:
            raise self.error

        application = typer.Typer()
        application.command()(fail)
        return CliRunner().invoke(application, list(arguments))


BAD_VALUE = InvalidInput("k", 0, "is out of range", "Give 1 to 1,000")
FULL = OSError(errno.ENOSPC, "No space left on device", "/data/x")
LOCKED = PermissionError(errno.EACCES, "Permission denied", "/data/x")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (BAD_VALUE, 1, "k=0: is out of range. Give 1 to 1,000"),
        (
            KeyboardInterrupt(),
            130,
            "Interrupted. What was acknowledged is stored and complete; "
            "nothing is half written, and the command can be run again.",
        ),
        (FULL, 1, "/data/x: No space left on device. Free some space."),
        (LOCKED, 1, "/data/x: Permission denied. Check the path and its rights."),
        (
            ZeroDivisionError("division by zero"),
            1,
            "Unexpected ZeroDivisionError: division by zero. This is a defect of ekphory; "
            "run the command again with --debug and report what it shows.",
        ),
    ],
)
def test_an_error_is_one_sentence_with_a_remedy_and_an_exit_code(error, code, sentence):
    result = Failing(error).run()
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", f"{sentence}\n")


def test_with_json_the_error_is_an_object_on_standard_output():
    result = Failing(BAD_VALUE).run("--json")
    assert json.loads(result.stdout) == {
        "error": {
            "type": "InvalidInput",
            "message": "k=0: is out of range. Give 1 to 1,000",
            "field": "k",
            "value": "0",
            "remedy": "Give 1 to 1,000",
        }
    }


def test_the_traceback_is_shown_with_debug_only():
    result = Failing(BAD_VALUE).run("--debug")
    assert result.exit_code == 1
    assert result.stderr.startswith("Traceback (most recent call last):")
    assert result.stderr.endswith("\nk=0: is out of range. Give 1 to 1,000\n")


def test_an_interrupted_import_says_what_was_done():
    result = Failing(ImportInterrupted(ImportReport(added=256, failed=1))).run("--json")
    assert result.exit_code == 130
    assert result.stderr.startswith("Import interrupted: 256 added, 0 already there, 1 failed.")
    assert json.loads(result.stdout)["error"]["report"]["added"] == 256


@dataclass(frozen=True)
class Size:
    width: Annotated[int, "in pixels"]
    height: Annotated[int, "in pixels"] = 10


def draw(name: Annotated[str, "a title"], size: Size, colour: str = "red") -> None: ...


def test_a_group_is_spread_into_its_fields():
    spread_out = spread(draw).parameters.values()
    assert [(each.name, each.annotation, each.default) for each in spread_out] == [
        ("name", Annotated[str, "a title"], inspect.Parameter.empty),
        ("width", Annotated[int, "in pixels"], inspect.Parameter.empty),
        ("height", Annotated[int, "in pixels"], 10),
        ("colour", str, "red"),
    ]


def test_flat_values_are_gathered_into_the_group():
    given = {"name": "box", "width": 3, "height": 4, "colour": "blue"}
    assert gather(draw, given) == {"name": "box", "size": Size(3, 4), "colour": "blue"}


@dataclass(frozen=True)
class Paper:
    """What is drawn on.

    Attributes:
        folded: Fold it afterwards.
        weight (G): Grams a square metre,
            of new paper.
    """

    PANEL = "Paper"

    folded: bool = False
    weight: int = 80


def paint(title: str, paper: Paper, output: OutputOptions) -> None:
    """Paint a picture.

    It is not signed.

    Args:
        title (WORDS): What it is called.
    """


def test_docstrings_are_the_help_of_arguments_and_options():
    shown = [get_args(each.annotation)[1] for each in spread(paint).parameters.values()][:3]
    assert [(each.help, each.metavar, each.rich_help_panel) for each in shown] == [
        ("What it is called.", "WORDS", None),
        ("Fold it afterwards.", None, "Paper"),
        ("Grams a square metre, of new paper.", "G", "Paper"),
    ]
    assert command(paint).__doc__ == "Paint a picture.\n\nIt is not signed."
