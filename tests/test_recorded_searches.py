"""Searches that are recorded beside the store."""

import json
import stat

import pytest
from tests.cli.command_line import CommandLine

from ekphory.config import Settings
from ekphory.errors import InvalidInput
from ekphory.mcp_server.tool import Memories
from ekphory.memory import Memory
from ekphory.recorded_searches import RECORDS_FILE, RecordedIn, RecordedSearches
from ekphory.scope import Scope
from ekphory.testing import HashEmbedder

HOME = RecordedIn(org="home", project="chat")


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("EKPHORY_RECORD_SEARCHES", "3")
    with Memory(tmp_path, org="home", project="chat", embedder=HashEmbedder()) as opened:
        opened.add("The oven is broken", id="oven")
        opened.add("The sink leaks", id="sink")
        yield opened


def kept(path, which=HOME):
    _, found = RecordedSearches(str(path)).page(which, limit=50, offset=0)
    return [each.query for each in found]


def test_nothing_is_recorded_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("EKPHORY_RECORD_SEARCHES", raising=False)
    with Memory(tmp_path, org="home", project="chat", embedder=HashEmbedder()) as memory:
        memory.add("The oven is broken")
        memory.search("oven?")
    assert not (tmp_path / RECORDS_FILE).exists()


def test_the_newest_are_kept_and_the_oldest_dropped(memory, tmp_path):
    for number in range(5):
        memory.search(f"oven {number}?")
    assert kept(tmp_path) == ["oven 4?", "oven 3?", "oven 2?"]


def test_a_question_that_utf_8_cannot_carry_is_answered_and_recorded_as_far_as_it_can(
    memory, tmp_path
):
    assert [hit.id for hit in memory.search("the oven \ud83d", k=1)] == ["oven"]
    assert kept(tmp_path) == ["the oven ?"]


def test_what_is_like_a_memory_is_no_question_and_leaves_no_record(memory, tmp_path):
    assert [each.id for each in memory.related("oven")] == ["sink"]
    assert kept(tmp_path) == []


def test_a_record_holds_no_text_of_a_memory_and_is_its_owners_alone(memory, tmp_path):
    memory.search("what does not work?")
    content = RecordedSearches(str(tmp_path)).page(HOME, limit=1, offset=0)[1][0].content
    assert "broken" not in json.dumps(dict(content))
    assert {hit["id"] for hit in content["hits"]} == {"oven", "sink"}
    assert stat.S_IMODE((tmp_path / RECORDS_FILE).stat().st_mode) == 0o600


def test_a_purge_takes_each_record_that_shows_what_is_gone_and_no_other(memory, tmp_path):
    memory.search("the plumber's secret", k=2)
    memory.search("oven", k=1, filter="id = 'oven'")
    memory.forget("sink")
    assert len(kept(tmp_path)) == 2
    memory.forget(filter="id = 'nothing'", purge=True)
    assert kept(tmp_path) == ["oven"]
    assert b"plumber" not in (tmp_path / RECORDS_FILE).read_bytes()


def test_a_purge_tells_memories_of_one_id_apart_by_their_owner(memory, tmp_path):
    memory.search("oven", k=1, filter="id = 'oven'")
    with Memory(tmp_path, org="work", project="chat", embedder=HashEmbedder()) as other:
        other.add("Another oven", id="oven")
        memory.forget("oven", purge=True)
        assert other.get("oven").text == "Another oven"
    assert kept(tmp_path) == []


def test_records_are_found_by_what_they_ask_whether_in_small_or_capital_letters(memory, tmp_path):
    memory.search("Die ÖFEN?")
    memory.search("the sink?")
    asked = RecordedIn(org="home", project="chat", text="öfen")
    assert kept(tmp_path, asked) == ["Die ÖFEN?"]


def test_a_file_that_cannot_be_written_fails_no_search(memory, tmp_path):
    (tmp_path / RECORDS_FILE).mkdir()
    assert len(memory.search("oven?")) == 2


@pytest.mark.parametrize("given", ["many", "-1", "10001"])
def test_a_number_that_cannot_be_kept_is_refused(tmp_path, monkeypatch, given):
    monkeypatch.setenv("EKPHORY_RECORD_SEARCHES", given)
    with pytest.raises(InvalidInput, match="a number from 0 to 10,000"):
        Memory(tmp_path, embedder=HashEmbedder())


def test_a_record_says_through_what_was_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("EKPHORY_RECORD_SEARCHES", "3")
    memories = Memories(Settings(store=str(tmp_path / "store")))
    with memories.use(Scope(org="home", project="chat")) as memory:
        memory.add("The oven is broken")
        memory.search("oven?")
    memories.close()
    command_line = CommandLine(tmp_path / "store")
    command_line.run("search", "oven?", "--org", "home", "--project", "chat")
    _, found = RecordedSearches(str(tmp_path / "store")).page(HOME, limit=9, offset=0)
    assert [each.surface for each in found] == ["command line", "mcp"]
