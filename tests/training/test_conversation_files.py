import shutil
from datetime import UTC, datetime
from random import Random

import pytest
from tests.training.reranker.rerank_examples import WordCounts

from ekphory.errors import DatasetError
from ekphory_lab.training.reranker.sources import CandidateCounts, group_examples
from ekphory_lab.training.sources import conversation_groups, load_training_data, mixed_groups
from ekphory_lab.training.texts import (
    CONVERSATIONS,
    read_conversation,
    read_conversations,
    sha256_of_texts,
)

CHAT = """\
kind: friends
## 1 | 2022-11-03 19:40
1.1 Ilse: I signed the lease, moving my looms over on Saturday.
1.2 Ruben: Congrats! How many looms are there now?
1.3 Ilse: Three. One of them: the old one from Ghent.

## 2 | 2022-11-14 08:05
2.1 Ruben: Did the move go well?
2.2 Ilse: It did, and a fourth loom came along.
? temporal | 1.1 | When did Ilse move her looms? | 5 November 2022
? multi | 1.3 2.2 | Which looms does Ilse have? | three, then a fourth
"""
ASSISTANT = """\
kind: assistant
## 1 | 2024-02-01 10:00
1.1 User: I decided on PostgreSQL 16.
1.2 Assistant: A good choice.
? single | 1.1 | Which database did I decide on? | PostgreSQL 16
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "01.txt"
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


def test_a_question_names_the_turns_that_answer_it(written):
    assert read_conversation(written(CHAT))["questions"][1] == {
        "category": "multi",
        "turns": [2, 4],
        "query": "Which looms does Ilse have?",
        "answer": "three, then a fourth",
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: friends", "kind: enemies", "line 1: 'enemies' is none of friends"),
        ("## 2 | 2022-11-14", "## 2 | 2022-11-01", "line 7: sessions count from 1 and follow"),
        ("## 2 |", "## 3 |", "line 7: sessions count from 1"),
        ("2.1 Ruben", "1.4 Ruben", "line 8: turn 1.4 is not of this session"),
        ("1.2 Ruben", "1.1 Ruben", "line 4: turn 1.1 is not of this session"),
        ("2.2 Ilse:", "Ilse said", "must be a line of a conversation"),
        ("| 1.3 2.2 |", "| 1.3 4.1 |", "no turn 4.1"),
        ("| 1.3 2.2 |", "|   |", "line 11: no turn is named"),
        ("2022-11-14 08:05", "2022-13-14 08:05", "line 7: 2022-13-14 08:05 must be a time"),
        ("? multi", "? riddle", "'riddle' is none of single"),
        ("kind: friends\n", "", "no kind"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(written, old, new, said):
    with pytest.raises(DatasetError, match=said):
        read_conversation(written(CHAT.replace(old, new)))


def test_a_file_in_another_encoding_is_named(tmp_path):
    path = tmp_path / "01.txt"
    path.write_bytes(CHAT.replace("Ilse", "Ägnes").encode("latin-1"))

    with pytest.raises(DatasetError, match=r"01\.txt: cannot be read as UTF-8"):
        read_conversation(path)


def test_an_empty_file_is_named(written):
    with pytest.raises(DatasetError, match=r"01\.txt: no kind, or no question"):
        read_conversation(written(""))


def test_a_folder_without_conversations_is_an_error(tmp_path):
    with pytest.raises(DatasetError, match="holds no conversation"):
        read_conversations(tmp_path)


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


def test_an_assistants_chat_has_the_names_of_roles(written):
    (group,) = conversation_groups([read_conversation(written(ASSISTANT))], Random(1))

    assert group.passages[0] == "user: I decided on PostgreSQL 16."


def test_what_a_reranker_reads_has_the_dates_of_the_conversation(written):
    (group,) = conversation_groups([read_conversation(written(CHAT))], Random(1))

    counts = CandidateCounts(hard=2, random=1)
    for example in group_examples(group, WordCounts(), Random(2), counts=counts):
        dates = {each.passage.at.date().isoformat() for each in example.candidates}
        assert dates <= {"2022-11-03", "2022-11-14"}


def test_conversations_come_with_the_package(tmp_path):
    data = load_training_data(tmp_path, ["conversations"])
    group = next(mixed_groups(data.epochs, {"conversations": 1.0}, seed=1, long_messages=1.0))

    assert group.source == "conversations"
    assert group.dated
    assert data.hashes == {"conversations": sha256_of_texts(CONVERSATIONS)}
