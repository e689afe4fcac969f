"""Written conversations on which nothing is trained, as a set of questions."""

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.training.probability_scopes import development_set

FILE = """kind: texting
## 1 | 2024-05-03 18:02
1.1 Ann: the roof leaks again
1.2 Ben: oh no
## 2 | 2024-05-09 08:15
2.1 Ben: fixed?
2.2 Ann: since yesterday, 300 euros
? temporal | 2.2 | When was the roof repaired? | 8 May 2024
"""


def test_turns_become_passages_and_questions_queries(tmp_path):
    (tmp_path / "one.txt").write_text(FILE)
    (tmp_path / "two.txt").write_text(FILE.replace("roof", "shed"))

    found = development_set(tmp_path)

    (passages,) = found.pools.values()
    assert [passage.id for passage in passages[:4]] == ["one:0", "one:1", "one:2", "one:3"]
    assert passages[3].indexed_text == "Ann: since yesterday, 300 euros"
    assert [passages[3].session, passages[4].session] == ["one:1", "two:0"]
    assert passages[3].at.isoformat() == "2024-05-09T08:15:00+00:00"
    assert [query.text for query in found.queries] == [
        "When was the roof repaired?",
        "When was the shed repaired?",
    ]
    assert found.qrels[found.queries[1].key] == {"two:3": 1}


OTHERS = (
    FILE.replace("Ann", "Cleo").replace("Ben", "Dario")
    .replace("the roof leaks again", "Dario, the roof leaks")
    .replace("When was the roof", "When was Cleo's roof")
)  # fmt: skip


def test_the_same_two_speak_in_all_conversations_of_a_pool(tmp_path):
    (tmp_path / "one.txt").write_text(FILE)
    (tmp_path / "two.txt").write_text(OTHERS)

    found = development_set(tmp_path)

    (passages,) = found.pools.values()
    assert [passage.speaker for passage in passages[4:]] == ["Ann", "Ben", "Ben", "Ann"]
    assert passages[4].text == "Ben, the roof leaks"
    assert found.queries[1].text == "When was Ann's roof repaired?"


def test_six_texting_conversations_make_a_pool(tmp_path):
    for number in range(7):
        (tmp_path / f"{number}.txt").write_text(FILE)

    assert [len(passages) for passages in development_set(tmp_path).pools.values()] == [24, 4]


def test_user_and_assistant_stay_who_they_are_whoever_begins(tmp_path):
    asked = FILE.replace("texting", "assistant").replace("Ann", "User").replace("Ben", "Assistant")
    (tmp_path / "one.txt").write_text(asked)
    (tmp_path / "two.txt").write_text(
        asked.replace("1.1 User: the roof leaks again", "1.1 Assistant: Welcome back.")
    )

    (passages,) = development_set(tmp_path).pools.values()
    assert [passage.speaker for passage in passages[4:]] == [
        "Assistant", "Assistant", "Assistant", "User",
    ]  # fmt: skip


def test_a_conversation_of_three_is_refused(tmp_path):
    (tmp_path / "one.txt").write_text(FILE.replace("2.1 Ben", "2.1 Cleo"))

    with pytest.raises(DatasetError, match="one: 3 speakers"):
        development_set(tmp_path)
