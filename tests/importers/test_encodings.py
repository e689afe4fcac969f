"""Files in other encodings: read where the encoding is sure, else refused, never garbled."""

from __future__ import annotations

import pytest

from ekphory.errors import InvalidInput
from ekphory.importers.documents import import_documents
from ekphory.importers.run import import_path

GERMAN = "Die Heizung wurde im März repariert. Der Schlüssel hängt über der Tür."
RUSSIAN = "Котёл отремонтировали в мае. Ключи висят в прихожей."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "cp1252"),
        (GERMAN, "cp850"),
        (GERMAN, "mac_roman"),
        (GERMAN, "utf-16-le"),
        ("El año pasado cambiamos la caldera; mañana llamará el señor técnico.", "iso8859_1"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        ("Kocioł naprawiono w maju. Klucze wiszą w przedpokoju, obok łazienki i półki.", "cp1250"),
        ("ボイラーは五月に修理されました。鍵は玄関にあります。", "shift_jis"),
        ("ボイラーは五月に修理されました。鍵は玄関にあります。", "iso2022_jp"),
        ("열쇠는 마당의 화분 아래에 있습니다.", "iso2022_kr"),
        ("锅炉五月份修好了。钥匙挂在门厅里。", "gb18030"),
    ],
)
def test_a_sentence_in_another_encoding_is_read(memory, file, text, encoding):
    import_documents(memory, file("a.txt", text.encode(encoding)))
    assert [record.text for record in memory.list()] == [text]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("café", "cp1252"),
        ("Grüße aus Köln", "cp1252"),
        # What chardet takes for Hebrew, Korean, Cyrillic and control characters.
        ("Price: 20 € — cheap", "cp1252"),
        ("Temperature: 21 °C outside, 5 °C in the cellar.", "cp1252"),
        ("• milk\n• bread\n• eggs\n", "mac_roman"),
        ("Dr. Müller called about the naïve assumption that the façade is old.", "cp850"),
    ],
)
def test_what_cannot_be_told_for_sure_is_refused_with_a_remedy(memory, file, text, encoding):
    report = import_documents(memory, file("a.txt", text.encode(encoding)))
    (failure,) = report.examples
    assert (failure.place, memory.count()) == ("a.txt", 0)
    assert "Save the file as UTF-8, or name its encoding with --encoding" in failure.message


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", '{"text": "Käse"}\n'), ("a.json", '[{"chat_messages": [], "name": "Käse"}]')],
)
def test_records_in_another_encoding_are_refused_with_file_and_remedy(
    memory, file, name, text, encoding
):
    with pytest.raises(InvalidInput, match=rf"{name}:1.*is not UTF-8.*Save the file as UTF-8"):
        import_path(memory, file(name, text.encode(encoding)))
    assert memory.count() == 0
