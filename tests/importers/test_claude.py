import json
import zipfile
from datetime import UTC, datetime

from ekphory.documents.blocks import SkippedPart
from ekphory.importers.chats import read_claude


def message(identity, sender, text, **more):
    return {
        "uuid": identity,
        "sender": sender,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "created_at": "2026-03-05T19:12:00.250000Z",
        **more,
    }


def conversation(*messages, **more):
    named = {"uuid": "c1", "name": "Trip to Porto", "created_at": "2026-03-05T19:00:00Z"}
    return {**named, "chat_messages": list(messages), **more}


def kept(found):
    return [each for each in found if not isinstance(each, SkippedPart)]


def read(file, *conversations):
    return kept(read_claude(file("conversations.json", json.dumps(conversations))))


def test_a_message_becomes_a_record_with_stable_id_session_and_moment(file):
    (record,) = read(file, conversation(message("m1", "human", "Where to eat?")))
    assert record.fields == {
        "id": "c1/m1",
        "text": "Where to eat?",
        "at": datetime(2026, 3, 5, 19, 12, 0, 250_000, tzinfo=UTC),
        "producer": "user",
        "produced_for": "assistant",
        "role": "user",
        "session": "c1",
        "sequence": 0,
        "source": "claude",
        "metadata": {"title": "Trip to Porto"},
    }


def test_an_artifact_is_a_text_of_its_own_as_it_was_last(file):
    def change(**said):
        return {"type": "tool_use", "name": "artifacts", "input": {"id": "plan", **said}}

    blocks = [
        {"type": "text", "text": "Here it is."},
        change(command="create", title="Plan", content="Monday: Porto\nTuesday: Braga"),
        change(command="update", old_str="Braga", new_str="Lisbon"),
        change(command="update", old_str="Faro", new_str="Sintra"),
    ]
    said = conversation(message("m", "assistant", "", content=blocks))
    found = list(read_claude(file("conversations.json", json.dumps([said]))))
    assert SkippedPart("change of an artifact that cannot be followed") in found
    answer, artifact = kept(found)
    assert answer.fields["text"] == "Here it is."
    assert artifact.fields["text"] == "Monday: Porto\nTuesday: Lisbon"
    assert (artifact.fields["session"], artifact.fields["path"]) == ("c1/artifacts/plan", "Plan")
    assert (artifact.fields["pool"], artifact.fields["metadata"]) == (
        "reference_library",
        {"title": "Trip to Porto"},
    )


def test_only_text_blocks_are_read_and_without_blocks_the_flat_text(file):
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "name": "search", "input": {}},
        {"type": "text", "text": "Found it."},
    ]
    flat = "Let me look.\n```\nThis block is not supported\n```\nFound it."
    found = message("m", "assistant", flat, content=blocks)
    new, old = read(file, conversation(found, message("o", "human", " flat ", content=[])))
    assert (new.fields["text"], old.fields["text"]) == ("Let me look.\n\nFound it.", "flat")
    assert new.fields["producer"] == "assistant"
    # Messages without text are left out.
    empty, tool = message("e", "human", ""), message("t", "human", "x", content=blocks[2:3])
    (record,) = read(file, conversation(empty, tool, message("m", "human", "words")))
    assert (record.fields["id"], record.fields["sequence"]) == ("c1/m", 0)


def test_attached_files_are_named_and_an_impossible_moment_is_that_of_the_conversation(file):
    attachments = {"attachments": [{"file_name": "a.csv"}], "files": [{"file_name": "b.png"}]}
    said = message("m", "human", "look", created_at="soon", **attachments)
    (record,) = read(file, conversation(said))
    assert record.fields["metadata"] == {"title": "Trip to Porto", "attachments": "a.csv, b.png"}
    assert record.fields["at"] == datetime(2026, 3, 5, 19, 0, tzinfo=UTC)


def test_broken_messages_are_reported_with_their_place_and_the_others_are_read(file):
    odd = message("o", "robot", "beep")
    read_whole = read(file, conversation("text", odd, message("m", "human", "ok")), {"uuid": "c"})
    wrong, unknown, kept, empty = read_whole
    assert wrong.place == "conversations.json: conversation 0 (c1), message 0"
    assert unknown.message == "unknown sender 'robot'; expected human or assistant."
    assert (kept.fields["text"], empty.field) == ("ok", "chat_messages")
    assert [each.field for each in read(file, conversation(uuid=None))] == ["uuid"]


def test_the_zip_archive_and_the_unpacked_folder_give_the_same(file, tmp_path):
    content = json.dumps([conversation(message("m", "human", "same"))])
    folder = file("unpacked/conversations.json", content).parent
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("conversations.json", content)
    from_zip = [record.fields for record in read_claude(tmp_path / "data.zip")]
    assert from_zip == [record.fields for record in read_claude(folder)]


def test_a_sender_that_is_no_text_is_reported_and_the_other_messages_are_read(file):
    said = message("m1", ["human"], "Where?"), message("m2", "human", "Where to eat?")
    broken, record = read(file, conversation(*said))
    assert (broken.field, broken.content) == ("sender", "Where?")
    assert record.fields["text"] == "Where to eat?"
