"""Parts of a document grouped and joined."""

from dataclasses import replace

from ekphory.retrieval.stages.shape import families, family_of, join_around
from retrieval.states import records


def parts(*texts, **fields):
    given = {"parent_id": "p", "path": "a.md"} | fields
    return [
        replace(record, sequence=place) for place, record in enumerate(records(*texts, **given))
    ]


def test_parts_are_in_the_order_of_the_text():
    shuffled = [parts("one", "two", "three")[place] for place in (2, 0, 1)]
    (family,) = families(shuffled).values()
    assert [part.text for part in family] == ["one", "two", "three"]


def test_two_users_documents_of_one_id_stay_apart():
    anna, ben = parts("hers", user="anna")[0], parts("his", user="ben")[0]
    assert family_of(anna) != family_of(ben)
    assert len(families([anna, ben])) == 2


def test_what_has_no_parent_belongs_to_no_family():
    (whole,) = records("whole")
    assert family_of(whole) is None
    assert families([whole]) == {}


def test_all_parts_are_joined():
    assert join_around(parts("one.", "two.", "three."), "m2", longest=100).split() == [
        "one.",
        "two.",
        "three.",
    ]


def test_of_a_long_parent_the_parts_around_are_joined():
    text = join_around(parts("aaaa", "bbbb", "cccc", "dddd"), "m3", longest=9)
    assert text.split() == ["bbbb", "cccc"]


def test_the_part_itself_is_always_whole():
    assert join_around(parts("aaaa", "b" * 50), "m2", longest=10) == "b" * 50
