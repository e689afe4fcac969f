"""A working day with an agent, and what is known of it in a new session a day later."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scripts.hook_sessions import PROJECT, HookHome, find_turns, read_session, transcript_lines
from tests.resident.home import temporary_home
from tests.stored import stored_rows

from ekphory.hooks.transcripts import read_lines

WRITTEN = read_session()
SECRET = b"7Qd2-vXk9-Lm40-ZtRe"
A_DAY_AGO = datetime.now(UTC) - timedelta(days=1)


def made_lines():
    return transcript_lines(WRITTEN.lines, session="s1", folder=Path("/src"), began=A_DAY_AGO)


def test_the_written_day_has_four_hundred_messages_and_twenty_questions_about_it():
    assert sum(not line["isSidechain"] for line in made_lines()) - 1 == 400
    assert len(WRITTEN.questions) == len(WRITTEN.unrelated) == 20
    marked = {line.key for line in WRITTEN.lines if line.key}
    assert {key for key, _ in WRITTEN.questions} < marked
    assert len(marked) == 30
    assert any(SECRET.decode() in line.text for line in WRITTEN.lines)
    assert len(list(find_turns(WRITTEN.lines))) == 105


def test_its_transcript_is_read_as_what_was_said_and_what_tools_printed():
    told = list(read_lines(made_lines()))
    assert told[0]["content"].startswith("hoi, morning")
    assert {each["role"] for each in told} == {"user", "assistant", "tool"}
    assert not any("list them with file and line" in each["content"] for each in told)
    assert not any("This session is being continued" in each["content"] for each in told)


@pytest.fixture
def home():
    with temporary_home(HookHome) as made:
        yield made


def found_in_three(home, question):
    done = subprocess.run(
        home.command("search", question, "--project", PROJECT, "-k", "3", "--json"),
        env=home.environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return [hit["memory"]["text"] for hit in json.loads(done.stdout)["hits"]]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_of_twenty_questions_a_day_later_sixteen_have_the_answer_among_three(home):
    home.play(WRITTEN, session="s1", began=A_DAY_AGO)
    missed = [
        question
        for key, question in WRITTEN.questions
        if not any(WRITTEN.answers(key, text) for text in found_in_three(home, question))
    ]
    assert len(missed) <= 4, missed
    files = [each.read_bytes() for each in home.store.rglob("*") if each.is_file()]
    assert any(b"new api key for knmi is [redacted]" in content for content in files)
    assert not any(SECRET in content for content in files)
    assert SECRET.decode() not in stored_rows(home.store)
