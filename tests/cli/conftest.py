"""Runs the command line on a store of its own."""

import shutil

import pytest
from tests.training.test_gates import write_training_files

from .command_line import CommandLine


@pytest.fixture
def ekphory(tmp_path):
    return CommandLine(tmp_path / "store")


@pytest.fixture(scope="session")
def furnished(tmp_path_factory):
    """The path of a store with three memories, written a day apart; to be copied."""
    command_line = CommandLine(tmp_path_factory.mktemp("kitchen") / "store")
    command_line.run("add", "The oven is broken", "--id", "oven", "--at", "2026-03-01")
    command_line.run(
        "add", "Anna repaired the sink", "--id", "sink", "--at", "2026-03-02",
        "--producer", "Ben", "--type", "episodic", "--importance", "0.9",
    )  # fmt: skip
    command_line.run("add", "Knives are in the drawer", "--id", "knives", "--at", "2026-03-03")
    return command_line.store


@pytest.fixture
def kitchen(furnished, ekphory):
    """The command line on a store of its own with the oven, the sink and the knives."""
    shutil.copytree(furnished, ekphory.store)
    return ekphory


@pytest.fixture(scope="session")
def shown_demo(tmp_path_factory):
    """The demo's result, and the path of the user's store that it must not touch."""
    command_line = CommandLine(tmp_path_factory.mktemp("demo") / "store")
    return command_line.run("demo"), command_line.store


@pytest.fixture
def training_folder(tmp_path):
    """A folder with small training files of conversations."""
    write_training_files(tmp_path)
    return tmp_path


@pytest.fixture
def train(ekphory):
    """Runs `ekphory train`, and returns what it printed."""

    def run(*arguments):
        result = ekphory.run("train", *map(str, arguments), COLUMNS="200")
        assert result.exit_code == 0, result.output
        return result.stdout

    return run
