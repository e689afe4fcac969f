"""All that the exports of ChatGPT and Claude hold, imported as their users get them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ekphory.importers.run import count_records, import_path

WHOLE = Path(__file__).parent / "whole"


def test_a_claude_export_is_read_whole_and_the_rest_is_named(memory, tmp_path):
    folder = shutil.copytree(WHOLE / "claude", tmp_path / "claude")
    report = import_path(memory, folder)
    found = {record.text: (record.path, record.pool) for record in memory.list()}
    assert found == {
        "The rent is 850 euros.": ("lease.pdf", "reference_library"),
        "It allows pets.": (None, "agent_memory"),
        "All about the house": ("description", "reference_library"),
        "It is a Viessmann.": ("boiler.txt", "reference_library"),
        "Mara runs a bakery.": ("memories", "agent_memory"),
        "The house was built in 1931.": ("memories", "agent_memory"),
    }
    assert report.left_out == {
        "message without text": 1,
        "attached file without text": 1,
        "thinking block": 1,
        "document without text": 1,
        "account without a bio": 1,
    }


@pytest.mark.parametrize("form", ["folder", "archive"])
@pytest.mark.parametrize("conversations", ["[]", None])
def test_projects_and_memories_of_claude_are_read_without_conversations(
    memory, tmp_path, form, conversations
):
    path = shutil.copytree(WHOLE / "claude", tmp_path / "claude")
    (path / "conversations.json").unlink()
    if conversations is not None:
        (path / "conversations.json").write_text(conversations)
    if form == "archive":
        path = Path(shutil.make_archive(str(tmp_path / "export"), "zip", path))
    assert import_path(memory, path).added == 4
    assert "The house was built in 1931." in {record.text for record in memory.list()}


@pytest.fixture
def chatgpt(tmp_path):
    """The archive of a ChatGPT export."""
    return Path(shutil.make_archive(str(tmp_path / "export"), "zip", WHOLE / "chatgpt"))


def test_a_chatgpt_export_is_read_whole(memory, chatgpt):
    import_path(memory, chatgpt)
    found = {record.text: (record.path, record.at.year) for record in memory.list()}
    assert found.pop("Baker, mother of two.")[0] == "bio"
    assert found == {
        "I bake.": ("user_profile", 2026),
        "User keeps a rye starter.": ("memories", 2025),
        "User is allergic to sesame.": ("memories", 2025),
        "Here is my recipe.": (None, 2026),
        "Feed it on Friday. Bake on Saturday.": ("Plan", 2026),
        "User prefers a dark crust.": ("memories", 2026),
        "500 g of rye, 12 g of salt.": ("recipe.md", 2026),
    }


def test_what_is_not_read_of_a_chatgpt_export_is_named(memory, chatgpt):
    assert import_path(memory, chatgpt).left_out == {
        "change of a canvas that cannot be followed": 2,
        "tool message": 2,
        "chat.html": 1,
        "file of another kind (.webp)": 1,
        "attached file of another kind (.png)": 1,
        "attached file that is not in the export": 1,
    }


def test_an_export_is_counted_before_and_a_second_import_adds_nothing(memory, chatgpt):
    first, again = import_path(memory, chatgpt), import_path(memory, chatgpt)
    assert count_records(chatgpt, "chatgpt", None, None) == first.added + first.skipped
    assert (again.added, again.skipped) == (0, first.added + first.skipped)


def test_refused_records_are_listed_once_and_no_more_when_they_were_mended(memory, file):
    path = file("notes.jsonl", '{"text": "one"}\n{"text": ""}\n')
    listed = import_path(memory, path).failures_path
    import_path(memory, path)
    assert listed == path.parent / "ekphory-failed" / "notes.jsonl"
    assert len(listed.read_text().splitlines()) == 1
    path.write_text('{"text": "one"}\n{"text": "two"}\n')
    assert import_path(memory, path).failures_path is None
    assert not listed.exists()
