"""The transcripts of each tool are read as messages, and what nobody said is passed over."""

import json

import pytest

from ekphory.hooks.transcripts import read_lines, read_transcript

from .payloads import CLAUDE_LINES, OPENCODE_LINES, TRANSCRIPTS, write_lines


def told(messages):
    return [(each["role"], each["content"]) for each in messages]


DONE = [("user", "Use tabs"), ("assistant", "Done."), ("tool", "ok")]
READING = [("user", "Use tabs here"), ("assistant", "Reading it now."), ("tool", "ok\n")]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("claude-code", READING),
        ("codex", [("user", "Use tabs here"), ("tool", "ok"), ("assistant", "Done.")]),
        ("gemini-cli", DONE),
        ("cursor", DONE[:2]),
        ("opencode", DONE),
        ("openclaw", DONE),
    ],
)
def test_a_transcript_is_read_as_messages(host, expected):
    assert told(read_lines(TRANSCRIPTS[host])) == expected


def test_messages_of_chat_services_are_read():
    assert told(read_lines([{"role": "user", "content": "plain"}])) == [("user", "plain")]


def test_a_message_has_the_moment_at_which_it_was_said():
    assert next(read_lines(CLAUDE_LINES))["at"] == "2026-11-25T12:00:00.123000+00:00"
    assert next(read_lines(OPENCODE_LINES))["at"] == "2025-11-25T12:00:00+00:00"


def test_a_line_that_is_just_being_written_is_passed_over(tmp_path):
    path = write_lines(tmp_path / "t.jsonl", CLAUDE_LINES[:2])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"type": "user", "message": {"ro')
    assert len(read_transcript(path)) == 2


def test_a_damaged_line_is_passed_over(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("not json\n" + json.dumps({"role": "user", "content": "here"}) + "\n")
    assert told(read_transcript(path)) == [("user", "here")]


def test_a_line_that_is_nested_too_deep_is_passed_over(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("[" * 200_000 + "\n" + json.dumps({"role": "user", "content": "here"}) + "\n")
    assert told(read_transcript(path)) == [("user", "here")]


def test_a_mark_of_the_byte_order_hides_no_message(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "here"}), encoding="utf-8-sig")
    assert told(read_transcript(path)) == [("user", "here")]


def test_what_a_tool_printed_is_cut():
    (message,) = read_lines([{"role": "tool", "content": "x" * 10_000}])
    assert len(message["content"]) == 4_000


@pytest.mark.parametrize("line", [{}, {"type": "user"}, {"message": 7}, {"info": {}, "parts": []}])
def test_an_unknown_line_is_no_message(line):
    assert list(read_lines([line])) == []
