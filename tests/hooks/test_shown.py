"""What a dialogue already shows is not put before the model again."""

import json
import time

import pytest

from ekphory.hooks.hosts import HOSTS
from ekphory.hooks.running import HookRun, find_shown
from ekphory.hooks.state import HookState
from ekphory.hooks.transcripts import read_end

from .payloads import CLAUDE_LINES, TRANSCRIPTS, prompt_payload, write_lines

KNOWN = "The deploy script is bin/ship"


def said(text):
    return {**CLAUDE_LINES[0], "message": {"role": "user", "content": text}}


@pytest.fixture
def ask(open_memory, tmp_path):
    """Asks about the deploy script behind a transcript; returns what the host is told."""
    folder = tmp_path / "app"
    folder.mkdir()
    open_memory(project=str(folder)).add(KNOWN)

    def ask(transcript, *, host="claude-code"):
        hook = HookRun(
            HOSTS[host], "prompt", HookState(tmp_path / "state"), open_memory,
            least_probability=0.01,
        )  # fmt: skip
        asked = prompt_payload(
            host, folder=folder, prompt="the deploy script", transcript=transcript
        )
        return hook.reply(json.dumps(asked))

    return ask


def test_what_stands_in_the_transcript_is_not_told(ask, tmp_path):
    shown = [said('so:\n\n"the deploy  script\nis BIN/ship", I think')]
    assert ask(write_lines(tmp_path / "t.jsonl", [*CLAUDE_LINES, *shown])) == ""


def test_what_the_transcript_says_otherwise_is_told(ask, tmp_path):
    other = [said("The deploy script is bin/shipyard"), said("The deploy script"), said("bin/ship")]
    assert KNOWN in ask(write_lines(tmp_path / "t.jsonl", [*CLAUDE_LINES, *other]))


def test_what_a_tool_printed_is_shown_too(ask, tmp_path):
    printed = {"tool_use_id": "t1", "type": "tool_result", "content": f"# {KNOWN}\n"}
    line = {"type": "user", "message": {"role": "user", "content": [printed]}}
    assert ask(write_lines(tmp_path / "t.jsonl", [line])) == ""


def test_only_the_end_of_a_long_transcript_is_read(ask, tmp_path):
    long_ago = [said(KNOWN), *(said(f"{number} " * 500) for number in range(100))]
    assert KNOWN in ask(write_lines(tmp_path / "t.jsonl", long_ago))
    assert ask(write_lines(tmp_path / "t.jsonl", [*long_ago, said(KNOWN)])) == ""


@pytest.mark.parametrize("make", ["nothing", "folder", "broken", "empty"])
def test_a_transcript_that_cannot_be_read_shows_nothing(ask, tmp_path, make):
    path = tmp_path / "t.jsonl"
    if make == "folder":
        path.mkdir()
    elif make != "nothing":
        path.write_bytes(b"\xff{" if make == "broken" else b"")
    assert KNOWN in ask(path)


@pytest.mark.parametrize("host", TRANSCRIPTS)
def test_the_end_of_a_transcript_of_any_tool_is_read(tmp_path, host):
    path = write_lines(tmp_path / "t.jsonl", [{"cut": "x" * 1_000}, *TRANSCRIPTS[host]])
    whole = read_end(path, 10_000)
    assert whole
    assert read_end(path, path.stat().st_size - 500) == whole


def test_a_text_is_shown_as_whole_words():
    dialogue = ["Use Tabs,\nplease", "the tablecloth"]
    assert find_shown(["use tabs", "table", "tabs, please the"], dialogue) == {"use tabs"}


def test_a_dialogue_of_one_long_line_is_compared_in_no_time():
    started = time.perf_counter()
    find_shown(["a a a a b"] * 12, ["a " * 32_000])
    assert time.perf_counter() - started < 1.0
