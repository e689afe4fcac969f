"""What only a process of its own can show: exit codes, pipes, signals, a terminal."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

RECOLLECT = [sys.executable, "-m", "recollect"]
COLOUR = re.compile(rb"\x1b\[(\d+;)*3\dm")
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and terminals")


def test_results_go_to_standard_output_and_nothing_else(recollect):
    done = subprocess.run(
        [*RECOLLECT, "add", "The oven is broken", "--id", "oven", "--json"],
        env=recollect.process_environment(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["ids"] == ["oven"]
    assert done.stderr == b""


def test_an_error_exits_with_1_and_says_one_sentence(recollect):
    done = subprocess.run(
        [*RECOLLECT, "list"], env=recollect.process_environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1


def test_the_version_needs_none_of_the_heavy_modules():
    heavy = "{'numpy', 'lancedb', 'pyarrow', 'onnxruntime', 'torch'}"
    program = (
        "import sys; from recollect.cli.app import app\n"
        "try: app(['--version'])\n"
        f"except SystemExit: print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["[]"]


@posix_only
def test_a_reader_that_leaves_early_ends_it_quietly(kitchen):
    # More than a pipe holds, in a field that is not embedded.
    rows = [json.dumps({"text": str(n), "source": "x" * 60_000}) + "\n" for n in range(5)]
    (kitchen.store.parent / "many.jsonl").write_text("".join(rows))
    kitchen.run("import", str(kitchen.store.parent / "many.jsonl"))
    listing = subprocess.Popen(
        [*RECOLLECT, "list", "--json"],
        env=kitchen.process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert listing.stdout.readline() == b"{\n"
    listing.stdout.close()
    assert listing.stderr.read() == b""
    listing.stderr.close()
    assert listing.wait() == 0


@posix_only
def test_an_interrupted_import_keeps_what_was_acknowledged(recollect, tmp_path):
    with (tmp_path / "many.jsonl").open("w") as stream:
        for number in range(60_000):
            stream.write(json.dumps({"id": str(number), "text": f"note {number}"}) + "\n")
    importing = subprocess.Popen(
        [*RECOLLECT, "import", str(tmp_path / "many.jsonl")],
        env=recollect.process_environment(),
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background of a shell ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    data = recollect.store / "memories.lance" / "data"
    while importing.poll() is None and not (data.is_dir() and any(data.iterdir())):
        time.sleep(0.01)
    importing.send_signal(signal.SIGINT)
    _, said = importing.communicate()
    assert importing.returncode == 130, said
    assert said.startswith("Import interrupted: ")
    assert said.endswith("what is already there is skipped.\n")
    assert 0 < recollect.json("list", "--limit", "1")["total"] < 60_000


def on_a_terminal(recollect, program, *, typed=b""):
    """Run a program whose input and output are a terminal; give what it shows there."""
    import pty

    master, terminal = pty.openpty()
    os.write(master, typed)
    subprocess.run(
        [sys.executable, "-c", program],
        env=recollect.process_environment() | {"TERM": "xterm-256color"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        check=True,
    )
    os.close(terminal)
    shown = os.read(master, 100_000)
    os.close(master)
    return shown


@posix_only
def test_on_a_terminal_forgetting_several_asks_first(kitchen):
    program = """
from recollect.cli.app import app
for _ in range(2):
    try: app(["forget", "--filter", "TRUE"])
    except SystemExit as end: print("exit code", end.code)
"""
    said = on_a_terminal(kitchen, program, typed=b"\ny\n")
    assert said.count(b"Forget 3 memories? [y/N]") == 2
    refused, _, agreed = said.partition(b"exit code 0")
    assert b"Nothing was forgotten." in refused
    assert b"3 memories forgotten." in agreed
    assert agreed.endswith(b"exit code 0\r\n")
    assert kitchen.json("list")["total"] == 0


@posix_only
def test_colours_are_used_on_a_terminal_unless_unwanted(kitchen):
    program = """
import os
from recollect.cli.app import app
for os.environ["NO_COLOR"] in ("1", ""):
    try: app(["search", "oven"])
    except SystemExit as end: print("exit code", end.code)
"""
    plain, _, coloured = on_a_terminal(kitchen, program).partition(b"exit code 0")
    assert b"oven" in plain
    assert not COLOUR.search(plain)
    assert COLOUR.search(coloured)
