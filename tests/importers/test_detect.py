import json
import zipfile

import pytest

from ekphory.errors import InvalidInput
from ekphory.importers.detect import choose_format

CHATGPT = json.dumps([{"title": "t", "mapping": {}}])
CLAUDE = json.dumps([{"uuid": "u", "chat_messages": []}])
LOCOMO = json.dumps([{"qa": [{"question": "q"}] * 5_000, "conversation": {}, "sample_id": "c"}])


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("conversations.json", CHATGPT, "chatgpt"),
        ("conversations.json", CLAUDE, "claude"),
        ("one.json", CLAUDE[1:-1], "claude"),
        ("wrapped.json", f'{{"conversations": {CHATGPT}}}', "chatgpt"),
        ("locomo.json", LOCOMO, "locomo"),
        ("memories.jsonl", '{"ekphory_export":1}\n{"id": "x", "text": "y"}\n', "ekphory"),
        ("memories.json", '{"text": "x"}\n{"text": "y"}\n', "jsonl"),
        ("memories.jsonl", '{"broken\n{"text": "y"}\n', "jsonl"),
        ("memories.ndjson", '{"text": "y"}\n', "jsonl"),
        ("README.md", "# Title\n", "documents"),
        ("notes.txt", "words", "documents"),
        ("latin.txt", b"caf\xe9", "documents"),
        ("list.md", "[link](x.md)", "documents"),
        ("lease.PDF", b"%PDF-1.7\0", "documents"),
        ("lease.docx", b"PK\x03\x04", "documents"),
        ("page.htm", "<p>words", "documents"),
        ("NOTES", "words", "text"),
        ("all.json", '{"count": 1, "results": [{"id": "1", "memory": "x"}]}', "mem0"),
        ("all.json", '[{"id": "1", "memory": "x"}]', "mem0"),
        ("all.jsonl", '{"id": "1", "memory": "x"}\n{"id": "2", "memory": "y"}\n', "mem0"),
        ("graph.json", '{"edges": [{"uuid": "1", "fact": "x"}]}', "zep"),
        ("chat.json", '{"messages": [{"role_type": "user", "content": "x"}]}', "zep"),
        ("chat.json", '[{"role": "user", "content": "x", "created_at": "2026"}]', "zep"),
        (
            "chat.json",
            '[{"id": 1, "messages": [{"uuid": "1", "content": "x", "created_at": "2"}]}]',
            "zep",
        ),
        ("items.json", '[{"namespace": ["a"], "key": "k", "value": {}}]', "langmem"),
        ("items.jsonl", '{"prefix": "a", "key": "k", "value": {}}\n', "langmem"),
    ],
)
def test_the_format_is_found_by_name_and_content(file, name, content, expected):
    assert choose_format(file(name, content), None) == expected


def test_an_archive_is_looked_into(tmp_path):
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", CLAUDE)
    assert choose_format(tmp_path / "export.zip", None) == "claude"


def test_a_folder_is_an_unpacked_export_or_documents(file):
    assert choose_format(file("export/conversations.json", CHATGPT).parent, None) == "chatgpt"
    assert choose_format(file("notes/a.md", "x").parent, None) == "documents"
    assert choose_format(file("scans/a.pdf", "x").parent, None) == "documents"


def test_documents_beside_an_export_can_be_asked_for(file):
    folder = file("export/conversations.json", CHATGPT).parent
    file("export/notes.md", "x")
    assert choose_format(folder, None) == "chatgpt"
    assert choose_format(folder, "documents") == "documents"


@pytest.mark.parametrize(
    ("name", "content", "wanted", "message"),
    [
        ("c.json", CLAUDE, "chatgpt", "not in the format chatgpt: it looks like claude"),
        ("c.jsonl", CHATGPT, None, "not in the format jsonl: it looks like chatgpt"),
        ("c.json", CHATGPT, "text", "Use --format chatgpt"),
        ("c.md", "just words\n", "jsonl", "looks like text. Use --format text"),
        ("c.json", "[1, 2]", "claude", "looks like other JSON"),
        ("c.json", '[{"text": "x"}]', None, "one JSON object per line"),
        ("c.txt", b"\x00\x01\x02", "text", "it looks like binary data"),
        ("c.bin", b"\x00\x01\x02", None, "its format cannot be told"),
        ("c.txt", "words", "xml", "Use one of ekphory, locomo, jsonl, documents, text, chatgpt"),
        ("c.md", CHATGPT, None, "not in the format documents: it looks like chatgpt"),
        ("c.pdf", b"%PDF-1.7", "text", "not in the format text: it looks like documents"),
        ("c.cob", "x = 1", "documents", "not a document. Give a folder, or a .md, .markdown"),
        ("c.txt", b"", None, "the file is empty"),
        ("c.json", '[{"memory": "x"}]', "zep", "looks like mem0. Use --format mem0"),
        ("c.json", '{"messages": [{"role": "user", "content": "x"}]}', "zep", "other JSON"),
    ],
)
def test_what_is_not_the_format_is_refused_by_saying_what_it_looks_like(
    file, name, content, wanted, message
):
    with pytest.raises(InvalidInput, match=message):
        choose_format(file(name, content), wanted)


def test_a_missing_path_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no such file or folder"):
        choose_format(tmp_path / "gone.jsonl", None)


def test_a_folder_without_documents_is_refused(file):
    folder = file("pictures/.hidden.md", "x").parent
    with pytest.raises(InvalidInput, match="the folder holds no document and no conversations"):
        choose_format(folder, None)


def test_plain_json_may_be_imported_as_text_on_request(file):
    assert choose_format(file("a.json", '{"a": 1}'), "text") == "text"
