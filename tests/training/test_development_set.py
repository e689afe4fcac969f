"""Written conversations on which nothing is trained, as a set of questions."""

import pytest
from tests.training.small_files import text_of

from ekphory.errors import DatasetError
from ekphory_lab.training.probability_scopes import development_set

FILE = text_of("roof.txt")


@pytest.fixture
def written(tmp_path):
    """Reads a set of conversations with these texts."""

    def write(*texts):
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.txt").write_text(text)
        return development_set(tmp_path)

    return write


def test_turns_become_passages_and_questions_queries(written):
    found = written(FILE, FILE.replace("roof", "shed"))

    (passages,) = found.pools.values()
    assert [passage.id for passage in passages[:4]] == ["0:0", "0:1", "0:2", "0:3"]
    assert passages[3].indexed_text == "Ann: since yesterday, 300 euros"
    assert [passages[3].session, passages[4].session] == ["0:1", "1:0"]
    assert passages[3].at.isoformat() == "2024-05-09T08:15:00+00:00"
    assert [query.text for query in found.queries] == [
        "When was the roof repaired?",
        "When was the shed repaired?",
    ]
    assert found.qrels[found.queries[1].key] == {"1:3": 1}


OTHERS = (
    FILE.replace("Ann", "Cleo").replace("Ben", "Dario")
    .replace("the roof leaks again", "Dario, the roof leaks")
    .replace("When was the roof", "When was Cleo's roof")
)  # fmt: skip


def test_the_same_two_speak_in_all_conversations_of_a_pool(written):
    found = written(FILE, OTHERS)

    (passages,) = found.pools.values()
    assert [passage.speaker for passage in passages[4:]] == ["Ann", "Ben", "Ben", "Ann"]
    assert passages[4].text == "Ben, the roof leaks"
    assert found.queries[1].text == "When was Ann's roof repaired?"


def test_six_texting_conversations_make_a_pool(written):
    assert [len(passages) for passages in written(*[FILE] * 7).pools.values()] == [24, 4]


def test_user_and_assistant_stay_who_they_are_whoever_begins(written):
    asked = FILE.replace("texting", "assistant").replace("Ann", "User").replace("Ben", "Assistant")
    welcomed = asked.replace("1.1 User: the roof leaks again", "1.1 Assistant: Welcome back.")

    (passages,) = written(asked, welcomed).pools.values()
    assert [passage.speaker for passage in passages[4:]] == [*["Assistant"] * 3, "User"]


def test_a_conversation_of_three_is_refused(written):
    with pytest.raises(DatasetError, match="0: 3 speakers"):
        written(FILE.replace("2.1 Ben", "2.1 Cleo"))
