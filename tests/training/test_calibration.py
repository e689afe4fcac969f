import gzip
import hashlib

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.training.texts import read_calibration

TURNS = '{"turns": [{"speaker": "Ann", "text": "hi"}, {"speaker": "Ben", "text": "hello"}]}\n'


def test_turns_are_given_with_their_speaker(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(TURNS)

    assert read_calibration([path]).texts == ("Ann: hi", "Ben: hello")


def test_queries_and_passages_are_given_too(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"query": "who?", "passage": "She did.", "answers": ["she"]}\n\n')

    assert read_calibration([path]).texts == ("who?", "She did.")


def test_compressed_files_are_read(tmp_path):
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress(TURNS.encode()))

    assert read_calibration([path]).texts == ("Ann: hi", "Ben: hello")


def test_the_sample_is_spread_evenly_over_each_file(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f'{{"text": "t{number}"}}\n' for number in range(10)))

    assert read_calibration([path], texts_per_file=3).texts == ("t0", "t3", "t6")


def test_the_files_hash_is_kept(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(TURNS)

    expected = hashlib.sha256(TURNS.encode()).hexdigest()
    assert read_calibration([path]).files == {"chat.jsonl": expected}


def test_a_folder_of_written_conversations_gives_their_turns(tmp_path):
    folder = tmp_path / "conversations"
    folder.mkdir()
    (folder / "one.txt").write_text(
        "kind: texting\n## 1 | 2024-05-03 18:02\n1.1 Ann: hi\n1.2 Ben: hello\n"
        "? single | 1.1 | Who greets first? | Ann\n"
    )

    found = read_calibration([folder])

    assert found.texts == ("Ann: hi", "Ben: hello")
    assert list(found.files) == ["conversations"]


@pytest.mark.parametrize("content", ["", "{}", "[1]", "{broken", '{"turns": [1]}', '{"turns": 1}'])
def test_a_malformed_file_is_named(tmp_path, content):
    path = tmp_path / "bad.jsonl"
    path.write_text(content)

    with pytest.raises(DatasetError, match=r"bad\.jsonl"):
        read_calibration([path])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"none\.jsonl"):
        read_calibration([tmp_path / "none.jsonl"])
