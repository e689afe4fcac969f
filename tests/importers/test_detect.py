import zipfile

import pytest
from tests.cases import read_tables, spell

from ekphory.errors import InvalidInput
from ekphory.importers.detect import choose_format

TABLES = read_tables(__file__)
CHATGPT, CLAUDE = (TABLES["formats"][place][1] for place in (0, 1))


@pytest.mark.parametrize(("name", "content", "expected"), TABLES["formats"])
def test_the_format_is_found_by_name_and_content(file, name, content, expected):
    assert choose_format(file(name, spell(content).encode("latin-1")), None) == expected


def test_the_format_of_an_archive_a_folder_or_what_is_asked_for_is_found(file, tmp_path):
    # An archive is looked into.
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", CLAUDE)
    assert choose_format(tmp_path / "export.zip", None) == "claude"
    # A folder is an unpacked export or documents.
    folder = file("export/conversations.json", CHATGPT).parent
    assert choose_format(folder, None) == "chatgpt"
    assert choose_format(file("notes/a.md", "x").parent, None) == "documents"
    assert choose_format(file("scans/a.pdf", "x").parent, None) == "documents"
    # Documents beside an export can be asked for.
    file("export/notes.md", "x")
    assert choose_format(folder, None) == "chatgpt"
    assert choose_format(folder, "documents") == "documents"
    # Plain JSON may be imported as text on request.
    assert choose_format(file("a.json", '{"a": 1}'), "text") == "text"


@pytest.mark.parametrize(("name", "content", "wanted", "message"), TABLES["refused"])
def test_what_is_not_the_format_is_refused_with_its_look(file, name, content, wanted, message):
    with pytest.raises(InvalidInput, match=message):
        choose_format(file(name, content.encode("latin-1")), wanted or None)


def test_a_missing_path_and_a_folder_without_documents_are_refused(file, tmp_path):
    with pytest.raises(InvalidInput, match="no such file or folder"):
        choose_format(tmp_path / "gone.jsonl", None)
    with pytest.raises(InvalidInput, match="the folder holds no document and no conversations"):
        choose_format(file("pictures/.hidden.md", "x").parent, None)
