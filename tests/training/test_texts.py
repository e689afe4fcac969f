"""The texts that were written for training, and rows of training files."""

import gzip
import hashlib
import json
import shutil
from datetime import UTC, datetime
from random import Random

import pytest
from tests.cases import read_cases
from tests.training.small_files import FOLDER, text_of

from ekphory.errors import DatasetError
from ekphory_lab.training.sources import (
    conversation_groups,
    document_groups,
    load_training_data,
    mixed_groups,
)
from ekphory_lab.training.texts import (
    CONVERSATIONS,
    DOCUMENTS,
    read_calibration,
    read_conversation,
    read_conversations,
    read_document_file,
    read_documents,
    sha256_of_texts,
)

CASES = read_cases(__file__)
CHAT, IRON, LEAVE = (text_of(f"{name}.txt") for name in ("chat", "iron", "leave"))


@pytest.fixture
def written(tmp_path):
    def write(text, name="01"):
        path = tmp_path / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_turns_have_their_session_time_and_speaker(written):
    row = read_conversation(written(CHAT))

    assert row["kind"] == "friends"
    assert len(row["turns"]) == 5
    assert row["turns"][2] == {
        "session": 0,
        "at": "2022-11-03T19:40:00+00:00",
        "speaker": "Ilse",
        "text": "Three. One of them: the old one from Ghent.",
    }
    # A question names the turns that answer it.
    assert row["questions"][1] == {
        "category": "multi",
        "turns": [2, 4],
        "query": "Which looms does Ilse have?",
        "answer": "three, then a fourth",
    }


@pytest.mark.parametrize(("old", "new", "said"), CASES["lines_of_a_conversation"])
def test_a_line_that_cannot_be_read_is_named(written, old, new, said):
    with pytest.raises(DatasetError, match=said):
        read_conversation(written(CHAT.replace(old, new)))


def test_a_folder_without_conversations_and_a_file_in_another_encoding_are_named(tmp_path):
    with pytest.raises(DatasetError, match="holds no conversation"):
        read_conversations(tmp_path)
    path = tmp_path / "01.txt"
    path.write_bytes(CHAT.replace("Ilse", "Ägnes").encode("latin-1"))

    with pytest.raises(DatasetError, match=r"01\.txt: cannot be read as UTF-8"):
        read_conversation(path)


def test_the_hash_changes_with_any_file(written, tmp_path):
    written(CHAT)
    before = sha256_of_texts(tmp_path)
    shutil.copy(tmp_path / "01.txt", tmp_path / "02.txt")

    assert sha256_of_texts(tmp_path) != before


def test_turns_become_passages_that_keep_their_dates(written):
    (group,) = conversation_groups([read_conversation(written(CHAT))], Random(1))

    assert group.dated
    assert group.passages[4] == "Ilse: It did, and a fourth loom came along."
    assert group.placements[4].at == datetime(2022, 11, 14, 8, 5, tzinfo=UTC)
    assert group.placements[4].before == "Ruben: Did the move go well?"
    asked = {question.text: question.positives for question in group.questions}
    assert asked["Which looms does Ilse have?"] == (2, 4)
    # An assistant's chat has the names of roles.
    (group,) = conversation_groups([read_conversation(FOLDER / "assistant.txt")], Random(1))
    assert group.passages[0] == "user: I decided on PostgreSQL 16."


def test_conversations_and_documents_come_with_the_package(tmp_path):
    data = load_training_data(tmp_path, ["conversations", "documents"])
    group = next(mixed_groups(data.epochs, {"conversations": 1.0}, seed=1, long_messages=1.0))

    assert group.source == "conversations"
    assert group.dated
    documents = list(data.epochs["documents"](Random(1)))
    assert sum(len(group.passages) for group in documents) > 800
    assert data.hashes == {
        "conversations": sha256_of_texts(CONVERSATIONS),
        "documents": sha256_of_texts(DOCUMENTS),
    }


def test_a_document_has_its_title_text_and_searches(written):
    assert read_document_file(written(IRON)) == json.loads(text_of("iron.json"))


@pytest.mark.parametrize(("old", "new", "said"), CASES["lines_of_a_document"])
def test_what_is_out_of_place_is_named(written, old, new, said):
    path = written(IRON.replace(old, new))

    with pytest.raises(DatasetError, match=said):
        read_document_file(path)


def test_a_file_without_documents_is_an_error(written):
    for text in ("", "subject: nothing\n"):
        with pytest.raises(DatasetError, match=r"must be the subject|holds no document"):
            read_document_file(written(text))


def test_two_subjects_compete_in_a_group(written, tmp_path):
    written(IRON, "01")
    written(LEAVE, "02")
    (group,) = document_groups(read_documents(tmp_path), Random(1))

    assert len(group.passages) == 3
    assert {question.text for question in group.questions} == {
        "tobacco raises iron export from lung phagocytes",
        "Which cells lost their iron exporter?",
        "spleen hepcidin",
        "paid weeks for parents",
    }
    for question in group.questions:
        (answering,) = question.positives
        shared = {"spleen hepcidin": "Hepcidin rose", "paid weeks for parents": "are paid"}
        assert shared.get(question.text, "We exposed 24 mice") in group.passages[answering]


def test_some_documents_come_without_their_title(written, tmp_path):
    written(LEAVE)
    rows = read_documents(tmp_path)
    passages = {next(document_groups(rows, Random(seed))).passages[0] for seed in range(20)}

    assert passages == {"Parental leave. Twelve weeks are paid.", "Twelve weeks are paid."}


TURNS = '{"turns": [{"speaker": "Ann", "text": "hi"}, {"speaker": "Ben", "text": "hello"}]}\n'


@pytest.fixture
def calibration(tmp_path):
    """Reads texts for a calibration from a file of the content."""

    def read(name, content, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_calibration([path], **options)

    return read


def test_every_form_of_texts_is_read(calibration, tmp_path):
    # The file's hash is kept.
    found = calibration("chat.jsonl", TURNS)
    assert found.texts == ("Ann: hi", "Ben: hello")
    assert found.files == {"chat.jsonl": hashlib.sha256(TURNS.encode()).hexdigest()}
    # Compressed files are read.
    assert calibration("chat.jsonl.gz", gzip.compress(TURNS.encode())).texts == found.texts
    # Queries and passages are given too.
    pair = '{"query": "who?", "passage": "She did.", "answers": ["she"]}\n\n'
    assert calibration("pairs.jsonl", pair).texts == ("who?", "She did.")
    # The sample is spread evenly over each file.
    ten = "".join(f'{{"text": "t{number}"}}\n' for number in range(10))
    assert calibration("texts.jsonl", ten, texts_per_file=3).texts == ("t0", "t3", "t6")
    # A folder of written conversations gives their turns.
    (tmp_path / "conversations").mkdir()
    shutil.copy(FOLDER / "greeting.txt", tmp_path / "conversations")
    written = read_calibration([tmp_path / "conversations"])
    assert written.texts == found.texts
    assert list(written.files) == ["conversations"]


def test_a_malformed_or_missing_file_is_named(calibration, tmp_path):
    for content in ("", "{}", "[1]", "{broken", '{"turns": [1]}', '{"turns": 1}'):
        with pytest.raises(DatasetError, match=r"bad\.jsonl"):
            calibration("bad.jsonl", content)
    with pytest.raises(DatasetError, match=r"none\.jsonl"):
        read_calibration([tmp_path / "none.jsonl"])
