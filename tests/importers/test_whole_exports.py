"""All that the exports of ChatGPT and Claude hold, imported as their users get them."""

from __future__ import annotations

import json
import zipfile

import pytest

from ekphory.importers.run import count_records, import_path


def pack(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            data = content if isinstance(content, str | bytes) else json.dumps(content)
            archive.writestr(name, data)
    return path


CLAUDE = {
    "conversations.json": [
        {
            "uuid": "k1",
            "name": "Lease",
            "created_at": "2026-03-05T19:00:00Z",
            "chat_messages": [
                {
                    "uuid": "m1",
                    "sender": "human",
                    "text": "",
                    "content": [],
                    "created_at": "2026-03-05T19:01:00Z",
                    "attachments": [
                        {"file_name": "lease.pdf", "extracted_content": "The rent is 850 euros."}
                    ],
                    "files": [{"file_name": "photo.jpg"}],
                },
                {
                    "uuid": "m2",
                    "sender": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Let me see."},
                        {"type": "text", "text": "It allows pets."},
                    ],
                    "created_at": "2026-03-05T19:02:00Z",
                },
            ],
        }
    ],
    "projects.json": [
        {
            "uuid": "p1",
            "name": "House",
            "description": "All about the house",
            "created_at": "2026-01-01T00:00:00Z",
            "docs": [
                {"uuid": "d1", "filename": "boiler.txt", "content": "It is a Viessmann."},
                {"uuid": "d2", "filename": "empty.txt", "content": ""},
            ],
        }
    ],
    "memories.json": [
        {
            "conversations_memory": "Mara runs a bakery.",
            "project_memories": {"p1": "The house was built in 1931."},
        }
    ],
    "users.json": [{"uuid": "u", "full_name": "Mara", "email_address": "mara@example.org"}],
}


def test_a_claude_export_is_read_whole_and_the_rest_is_named(memory, tmp_path):
    report = import_path(memory, pack(tmp_path / "claude.zip", CLAUDE))
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


def say(role, text="", **fields):
    content = fields.pop("content", {"content_type": "text", "parts": [text]})
    return {"author": {"role": role}, "create_time": 1_767_225_700, "content": content} | fields


def canvas(action, **said):
    content = {"content_type": "code", "text": json.dumps(said)}
    return say("assistant", recipient=f"canmore.{action}_textdoc", content=content)


MEMORIES = (
    "1. [2025-05-02]. User keeps a rye starter.\n2. [2025-06-01]. User is allergic to sesame."
)
SAID = [
    say("user", content={"content_type": "user_editable_context", "user_profile": "I bake."}),
    say("system", content={"content_type": "model_context", "model_set_context": MEMORIES}),
    say(
        "user",
        "Here is my recipe.",
        metadata={
            "attachments": [
                {"id": "file-AAA", "name": "recipe.md"},
                {"id": "file-BBB", "name": "loaf.png"},
                {"id": "file-CCC", "name": "gone.txt"},
            ]
        },
    ),
    canvas("create", name="Plan", type="document", content="Feed it on Friday. Bake on Sunday."),
    canvas("update", updates=[{"pattern": "on Sunday\\.", "replacement": "on Saturday."}]),
    canvas("update", updates=[{"pattern": "(a+)+$", "replacement": ""}]),
    say("assistant", "User prefers a dark crust.", recipient="bio"),
    say("tool", "Model set context updated."),
]
MAPPING = {
    f"n{number}": {"parent": f"n{number - 1}", "children": [], "message": message}
    for number, message in enumerate(SAID)
}
CONVERSATION = {"id": "c1", "title": "Bread", "current_node": f"n{len(SAID) - 1}"}
CHATGPT = {
    "conversations.json": [CONVERSATION | {"mapping": MAPPING}] * 2,
    "chat.html": "<html></html>",
    "user.json": {"email": "mara@example.org", "bio": "Baker, mother of two."},
    "file-AAA-recipe.md": "500 g of rye, 12 g of salt.",
    "file-BBB-loaf.png": b"\x89PNG\0",
    "dalle-generations/x.webp": b"RIFF",
}


@pytest.fixture
def chatgpt(tmp_path):
    """The archive of a ChatGPT export."""
    return pack(tmp_path / "chatgpt.zip", CHATGPT)


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


def test_an_export_is_counted_before_it_is_imported_and_a_second_import_adds_nothing(
    memory, chatgpt
):
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
