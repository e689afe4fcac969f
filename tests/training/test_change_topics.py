"""The topics of facts that change: their form, and the pairs that are drawn of them."""

from collections import Counter

import pytest

from ekphory.errors import DatasetError
from ekphory.models.changes import CHANGE_KINDS
from ekphory_lab.training.change_topics import read_topics, topic_pairs

TOPIC = """== where I live
values: Rome | Bonn | Lyon
state: I live in {v}. | Home is {v}.
change: I moved to {v}.
correct: I live in {v}, not in {o}.
end: I left {o}.
plan: I may move to {v}.
temporary: This week I sleep in {v}.
restate: Still in {v}.
other: My sister lives in {v}.
near: The train to {v} was late.
ask: Where do I live?
past: Where did I live before?
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        (tmp_path / "one.txt").write_text(text, encoding="utf-8")
        return read_topics(tmp_path)

    return read


def drawn(topics, *, each=400):
    return topic_pairs(topics[0].part, topics, each=each)


def test_a_topic_is_read_as_it_stands(read):
    (topic,) = read(TOPIC)
    assert topic.name == "where I live"
    assert topic.lines["values"] == ["Rome", "Bonn", "Lyon"]
    assert topic.lines["end"] == ["I left {o}."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOPIC.replace("near: ", "close: "), "is not a line of a topic: 'close: The train"),
        (TOPIC.replace("past: Where did I live before?\n", ""), "has no line 'past'"),
    ],
)
def test_what_cannot_be_read_is_named(read, text, message):
    with pytest.raises(DatasetError, match=message):
        read(text)


def test_pairs_are_drawn_always_the_same_and_filled(read):
    topics = read(TOPIC)
    pairs = drawn(topics)
    again = drawn(topics)
    texts = [(pair.older.text, pair.newer.text, kind) for pair, kind in pairs]
    assert texts == [(pair.older.text, pair.newer.text, kind) for pair, kind in again]
    assert not any("{" in older + newer for older, newer, _ in texts)
    assert all(pair.older.at < pair.newer.at for pair, _ in pairs)


def test_a_change_has_another_value_and_a_restatement_the_same(read):
    values = ("Rome", "Bonn", "Lyon")
    for pair, kind in drawn(read(TOPIC)):
        named = [
            [each for each in values if each in record.text] for record in (pair.older, pair.newer)
        ]
        if kind == "restates":
            assert named[0] == named[1]
        if kind == "corrects":
            assert named[0][0] in named[1]
            assert len(named[1]) == 2
        if kind == "replaces" and "may move" not in pair.older.text:
            assert named[0] != named[1]


def test_what_two_people_say_of_themselves_is_about_two_subjects(read):
    told = [pair for pair, kind in drawn(read(TOPIC)) if kind == "other subject"]
    own = [pair for pair in told if "sister" not in pair.older.text + pair.newer.text]
    assert own
    assert all(pair.older.producer != pair.newer.producer for pair in own)


def test_a_named_subject_stays_the_same_but_in_pairs_about_two(read):
    lines = TOPIC.replace("I ", "{s} ") + "subjects: Ann | Ben\n"
    for pair, kind in drawn(read(lines)):
        names = [
            {name for name in ("Ann", "Ben") if name in record.text}
            for record in (pair.older, pair.newer)
        ]
        if all(names) and kind not in ("other subject", "unrelated"):
            assert names[0] == names[1]


def test_every_part_has_every_kind():
    topics = read_topics()
    assert len(topics) > 400
    for part in ("training", "fitting", "held back"):
        kinds = Counter(kind for _, kind in topic_pairs(part, topics, each=20))
        assert set(kinds) == set(CHANGE_KINDS)
