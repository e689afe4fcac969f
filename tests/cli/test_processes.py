"""What only a process of its own can show: exit codes, pipes, signals, a terminal."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from .command_line import CommandLine

EKPHORY = [sys.executable, "-m", "ekphory"]
COLOUR = re.compile(rb"\x1b\[(\d+;)*3\dm")
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and terminals")


def many(tmp_path, count, **fields):
    """Write a file of memories."""
    rows = ({"id": str(n), "text": f"note {n}", **fields} for n in range(count))
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "many.jsonl")


@pytest.mark.slow
def test_results_go_to_standard_output_and_nothing_else(ekphory):
    done = subprocess.run(
        [*EKPHORY, "add", "The oven is broken", "--id", "oven", "--json"],
        env=ekphory.process_environment(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["ids"] == ["oven"]
    assert done.stderr == b""


def test_the_version_needs_none_of_the_heavy_modules():
    heavy = "{'numpy', 'lancedb', 'pyarrow', 'onnxruntime', 'torch'}"
    program = (
        "import sys; from ekphory.cli.app import app\n"
        "try: app(['--version'])\n"
        f"except SystemExit: print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["[]"]


@pytest.mark.slow
@posix_only
def test_a_reader_that_leaves_early_ends_it_quietly(ekphory, tmp_path):
    # More than a pipe holds, in a field that is not embedded.
    ekphory.run("import", many(tmp_path, 5, source="x" * 60_000))
    with subprocess.Popen(
        [*EKPHORY, "list", "--json"],
        env=ekphory.process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as listing:
        assert listing.stdout.readline() == b"{\n"
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == 0


def interrupted(ekphory, *arguments, once):
    """Run a command, interrupt it once something holds, and return what it said, with code 130."""
    running = subprocess.Popen(
        [*EKPHORY, *arguments],
        env=ekphory.process_environment(),
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background of a shell ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while running.poll() is None and not once():
        time.sleep(0.001)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 130, said
    return said


@pytest.mark.slow
@posix_only
def test_an_interrupted_import_keeps_what_was_acknowledged(ekphory, tmp_path):
    data = ekphory.store / "memories.lance" / "data"
    file = many(tmp_path, 60_000)
    said = interrupted(ekphory, "import", file, once=lambda: data.is_dir() and any(data.iterdir()))
    assert said.startswith("Import interrupted: ")
    assert said.endswith("what is already there is skipped.\n")
    assert 0 < ekphory.json("list", "--limit", "1")["total"] < 60_000


@pytest.mark.long
@posix_only
def test_an_interrupted_export_leaves_no_half_file(ekphory, tmp_path):
    # Long fields that nobody embeds: the export takes long enough to be interrupted.
    ekphory.run("import", many(tmp_path, 1_000, metadata={"page": "x" * 20_000}))
    folder = tmp_path / "exports"
    folder.mkdir()
    target = ("--target", str(folder / "e.jsonl"))
    said = interrupted(ekphory, "export", *target, once=lambda: any(folder.iterdir()))
    assert said.startswith("Interrupted.")
    assert list(folder.iterdir()) == []


SESSION = """
import os
from ekphory.cli.app import app

def run(*arguments):
    try: app(list(arguments))
    except SystemExit as end: print("exit code", end.code)

for os.environ["NO_COLOR"] in ("1", ""):
    run("search", "oven")
for _ in range(2):
    run("forget", "--filter", "TRUE")
"""


@dataclass(frozen=True, slots=True)
class TerminalSession:
    """What a process shows on a terminal, command by command, and the store that it leaves."""

    plain_search: bytes
    coloured_search: bytes
    refused: bytes
    agreed: bytes
    store: CommandLine


@pytest.fixture(scope="module")
def session(furnished, tmp_path_factory):
    """Two searches, without colours and with them; forgetting everything, refused and agreed to."""
    command_line = CommandLine(tmp_path_factory.mktemp("terminal") / "store")
    shutil.copytree(furnished, command_line.store)
    shown = on_a_terminal(command_line, SESSION, typed=b"\ny\n")
    *commands, rest = shown.split(b"exit code 0\r\n")
    assert rest == b""
    return TerminalSession(*commands, command_line)


def on_a_terminal(command_line, program, *, typed):
    """Run a program whose input and output are a terminal; give what it shows there."""
    import pty

    master, terminal = pty.openpty()
    os.write(master, typed)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=command_line.process_environment() | {"TERM": "xterm-256color"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b"".join(iter(lambda: read_from(master), b""))
    os.close(master)
    assert process.wait() == 0
    return shown


def read_from(master):
    try:
        return os.read(master, 100_000)
    except OSError:
        return b""  # so Linux says that nobody holds the terminal any more


@pytest.mark.slow
@posix_only
def test_an_import_shows_how_many_of_how_many_and_how_many_a_second(ekphory, tmp_path):
    words = ["import", many(tmp_path, 600)]
    shown = on_a_terminal(ekphory, f"from ekphory.cli.app import app; app({words!r})", typed=b"")
    plain = re.sub(rb"\x1b\[[\d;?]*[a-zA-Z]", b"", shown)
    assert re.search(rb"records .* 600/600 [\d,]+/s \d:\d\d:\d\d left", plain)


@pytest.mark.long
@posix_only
def test_on_a_terminal_forgetting_several_asks_first(session):
    assert b"Forget 3 memories? [y/N]" in session.refused
    assert b"Nothing was forgotten." in session.refused
    assert b"Forget 3 memories? [y/N]" in session.agreed
    assert b"3 memories forgotten." in session.agreed
    assert session.store.json("list")["total"] == 0


@pytest.mark.slow
@posix_only
def test_colours_are_used_on_a_terminal_unless_unwanted(session):
    assert b"oven" in session.plain_search
    assert not COLOUR.search(session.plain_search)
    assert COLOUR.search(session.coloured_search)


@pytest.mark.parametrize("arguments", [["prompt", "--of-another-version"], []])
def test_a_hook_with_a_wrong_command_line_forbids_its_host_nothing(arguments):
    # A host takes 2 from a hook as a refusal of what it was about to do.
    words = [*EKPHORY, "hook", "run", "claude-code", *arguments]
    done = subprocess.run(words, capture_output=True, text=True, input="{}")
    assert done.returncode == 1
    assert "Usage: ekphory hook run" in done.stderr
