import json
import zipfile
from datetime import UTC, datetime

import pytest

from ekphory.documents.blocks import SkippedPart
from ekphory.errors import InvalidInput
from ekphory.importers.chats import read_chatgpt
from ekphory.importers.source import Unreadable


def node(identity, parent, role="user", text="", **message):
    content = {"content_type": "text", "parts": [text]}
    base = {"id": identity, "author": {"role": role}, "create_time": None, "content": content}
    return {"id": identity, "parent": parent, "children": [], "message": {**base, **message}}


def conversation(nodes, current, **more):
    mapping = {"root": {"id": "root", "parent": None, "children": [], "message": None}}
    mapping |= {entry["id"]: entry for entry in nodes}
    named = {"title": "Sourdough", "create_time": 1_767_225_600.0, "conversation_id": "c1"}
    return {**named, "mapping": mapping, "current_node": current, **more}


def kept(found):
    return [each for each in found if not isinstance(each, SkippedPart)]


def read(file, *conversations):
    return kept(read_chatgpt(file("conversations.json", json.dumps(conversations))))


def texts(records):
    return [record.fields["text"] for record in records]


def archived(path, **parts):
    """Write a zip archive of these files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.json", json.dumps(content))
    return path


def test_a_message_becomes_a_record_with_stable_id_session_and_moment(file):
    said = node("m1", "root", text="Hi", create_time=1_767_225_661.5)
    (record,) = read(file, conversation([said], "m1"))
    assert record.fields == {
        "id": "c1/m1",
        "text": "Hi",
        "at": datetime(2026, 1, 1, 0, 1, 1, 500_000, tzinfo=UTC),
        "producer": "user",
        "produced_for": "assistant",
        "role": "user",
        "session": "c1",
        "sequence": 0,
        "source": "chatgpt",
        "metadata": {"title": "Sourdough"},
    }
    assert record.place == "conversations.json: conversation 0 (c1), message m1"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("Feed it daily \ue200cite\ue202turn0search0\ue202turn0news1\ue201.", "Feed it daily."),
        ('Visit \ue200entity\ue202["city","Oslo","Norway"]\ue201 in May.', "Visit Oslo in May."),
        ("Visit \ue200entity\ue202Oslo\ue201 in May.", "Visit Oslo in May."),
        ("See \ue200url\ue202the guide\ue202turn0search2\ue201.", "See the guide."),
        ('\ue200image_group\ue202{"query":["rye"]}\ue201\nA rye loaf.', "A rye loaf."),
        ("It costs \ue200 as it is.", "It costs \ue200 as it is."),
    ],
)
def test_citations_of_an_answer_are_left_out_and_names_and_links_keep_their_words(
    file, told, shown
):
    said = node("m1", "root", role="assistant", text=told)
    assert texts(read(file, conversation([said], "m1"))) == [shown]


def test_only_the_branch_that_is_shown_is_read_from_the_root_on(file):
    def shown(nodes, current):
        return texts(read(file, conversation(nodes, current)))

    nodes = [
        node("q", "root", text="question", create_time=1_767_225_600),
        node("old", "q", role="assistant", text="first answer", create_time=1_767_225_700),
        node("new", "q", role="assistant", text="second answer", create_time=1_767_225_800),
    ]
    assert shown(nodes, "old") == ["question", "first answer"]
    # Without a current node the latest leaf is followed.
    for current in (None, "gone", "new"):
        assert shown(nodes, current) == ["question", "second answer"]
    assert shown(nodes[::-1], None) == ["question", "second answer"]
    # What stands on another branch is counted.
    found = read_chatgpt(file("a.json", json.dumps([conversation(nodes, "new")])))
    told = [each.reason for each in found if isinstance(each, SkippedPart)]
    assert told == ["message of a branch that is not shown"]
    # Parents in a circle end.
    assert shown([node("a", "b", text="x"), node("b", "a", text="y")], "b") == ["x", "y"]


def test_system_tool_reasoning_hidden_and_empty_messages_are_left_out(file):
    said = (
        {"role": "system", "text": "be kind"},
        {"text": "secret", "metadata": {"is_visually_hidden_from_conversation": True}},
        {"text": "visible"},
        {"role": "assistant", "content": {"content_type": "thoughts", "thoughts": []}},
        {"role": "assistant", "text": "search()", "recipient": "browser"},
        {"role": "tool", "text": "result"},
        {"role": "assistant", "text": "weightless", "weight": 0.0},
        {"role": "assistant", "text": "  "},
        {"role": "assistant", "text": "answer", "recipient": "all"},
    )
    nodes = [node(f"m{n}", f"m{n - 1}" if n else "root", **each) for n, each in enumerate(said)]
    records = read(file, conversation(nodes, "m8"))
    found = [(record.fields["text"], record.fields["sequence"]) for record in records]
    assert found == [("visible", 0), ("answer", 1)]


def test_pictures_are_counted_files_are_named_and_spoken_words_are_read(file):
    parts = [
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
        {"content_type": "audio_transcription", "text": "spoken words"},
        "What is this?",
    ]
    content = {"content_type": "multimodal_text", "parts": parts}
    files = {"attachments": [{"name": "plan.pdf"}, {"name": "list.txt"}]}
    (record,) = read(file, conversation([node("m", "root", content=content, metadata=files)], "m"))
    assert record.fields["text"] == "spoken words\nWhat is this?"
    told = {"title": "Sourdough", "images": 1, "attachments": "plan.pdf, list.txt"}
    assert record.fields["metadata"] == told


def test_a_message_without_moment_takes_that_of_the_message_before_it_or_is_reported(file):
    nodes = [node("a", "root", text="x"), node("b", "a", text="y", create_time=1_767_225_700)]
    nodes.append(node("c", "b", text="z"))
    moments = [r.fields["at"].timestamp() for r in read(file, conversation(nodes, "c"))]
    assert moments == [1_767_225_600, 1_767_225_700, 1_767_225_700]
    (broken,) = read(file, conversation(nodes[:1], "a", create_time=None))
    assert (type(broken), broken.field) == (Unreadable, "at")


def test_a_conversation_in_another_shape_is_reported_and_the_next_one_is_read(file):
    good = conversation([node("a", "root", text="fine")], "a")
    broken, record = read(file, {"title": "no mapping"}, good)
    assert (broken.place, broken.field) == ("conversations.json: conversation 0", "mapping")
    assert record.fields["text"] == "fine"
    # A file that is cut off gives what was complete and reports the rest.
    whole = json.dumps([good] * 2)
    record, broken = read_chatgpt(file("conversations.json", whole[: len(whole) * 3 // 4]))
    assert record.fields["text"] == "fine"
    assert broken.place == "conversations.json: element 1"
    assert "broken or cut off after 1 readable elements" in broken.message


def test_a_file_that_cannot_be_read_is_an_error_that_says_why(file, tmp_path):
    for path, said in (
        (file("a.json", b'[\n{"title": "caf\xe9"}\n]'), r"a.json:2'?: line 2 is not UTF-8"),
        (file("b.zip", b"PK\x03\x04 garbage"), "not a readable zip archive"),
        (archived(tmp_path / "c.zip", user={}), r"no conversations.json \(it holds user.json\)"),
    ):
        with pytest.raises(InvalidInput, match=said):
            list(read_chatgpt(path))


def test_the_zip_archive_of_an_export_is_read_with_all_its_parts(tmp_path):
    talks = {part: conversation([node("a", "root", text=part)], "a") for part in ("001", "000")}
    parts = {f"data/conversations-{part}": [talk] for part, talk in talks.items()}
    path = archived(tmp_path / "export.zip", **parts, user={})
    assert texts(kept(read_chatgpt(path))) == ["000", "001"]


def test_a_message_whose_role_is_no_text_is_counted_and_the_others_are_read(file):
    said = [node("m1", "root", role=["user"], text="Hi"), node("m2", "m1", text="Good morning")]
    path = file("conversations.json", json.dumps([conversation(said, "m2")]))
    found = list(read_chatgpt(path))
    assert SkippedPart("message without a role") in found
    assert texts(kept(found)) == ["Good morning"]
