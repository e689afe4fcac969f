"""Files in other encodings: read where the encoding is sure, else refused, never garbled."""

from __future__ import annotations

import pytest
from tests.cases import read_tables

from ekphory.errors import InvalidInput
from ekphory.importers.documents import import_documents
from ekphory.importers.run import import_path

CASES = read_tables(__file__)


@pytest.mark.parametrize(("text", "encoding"), CASES["sure"])
def test_a_sentence_in_another_encoding_is_read(memory, file, text, encoding):
    import_documents(memory, file("a.txt", text.encode(encoding)))
    assert [record.text for record in memory.list()] == [text]


@pytest.mark.parametrize("text", CASES["plain"])
def test_ascii_that_is_no_other_encoding_stays_as_it_is(memory, file, text):
    import_documents(memory, file("a.txt", text))
    assert [record.text for record in memory.list()] == [text]


@pytest.mark.parametrize(("text", "encoding"), CASES["unsure"])
def test_what_cannot_be_told_for_sure_is_refused_with_a_remedy(memory, file, text, encoding):
    report = import_documents(memory, file("a.txt", text.encode(encoding)))
    (failure,) = report.examples
    assert (failure.place, memory.count()) == ("a.txt", 0)
    assert failure.message.endswith(
        "Save the file as UTF-8, or name its encoding with --encoding; that of Windows is cp1252 "
        "in western and cp1250 in central Europe."
    )


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", '{"text": "Käse"}\n'), ("a.json", '[{"chat_messages": [], "name": "Käse"}]')],
)
def test_records_in_another_encoding_are_refused(memory, file, name, text, encoding):
    with pytest.raises(InvalidInput, match=rf"{name}:1.*is not UTF-8.*Save the file as UTF-8"):
        import_path(memory, file(name, text.encode(encoding)))
    assert memory.count() == 0
