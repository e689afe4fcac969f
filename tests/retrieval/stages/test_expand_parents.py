"""Stage 14 shows parts with the rest of their document."""

from dataclasses import replace

from ekphory.errors import StoreError
from ekphory.retrieval.stages.shape import ExpandParents
from retrieval.states import records, rows, state_of, with_candidates


def document(*texts, parent="p", **fields):
    parts = records(*texts, parent_id=parent, path="a.md", **fields)
    return [
        replace(part, id=f"{parent}{place}", sequence=place) for place, part in enumerate(parts)
    ]


def expanded(*given, ranking=None, **settings):
    values = ranking or [0.9 - place / 10 for place in range(len(given))]
    return ExpandParents(**settings).run(with_candidates(state_of(*given), values))


def test_a_part_is_shown_with_its_siblings_in_order():
    found = expanded(*document("First.", "Second."), ranking=[0.1, 0.9])
    assert found.texts[1].split() == ["First.", "Second."]


def test_each_parent_comes_once_at_its_best_part():
    parts = document("First.", "Second.", "Third.")
    found = expanded(*parts, *records("whole"), ranking=[0.2, 0.9, 0.8, 0.5])
    assert rows(found) == [1, 3]
    assert found.notes == {"parents": 1}


def test_a_memory_without_a_parent_is_shown_as_it_is():
    found = expanded(*records("whole"))
    assert (rows(found), dict(found.texts)) == ([0], {})


def test_the_parts_of_two_users_are_not_joined():
    hers, his = document("Hers.", user="anna"), document("His.", user="ben")
    found = expanded(*hers, *[replace(part, id="his") for part in his])
    assert [found.texts[row] for row in rows(found)] == ["Hers.", "His."]


def test_a_long_parent_is_shown_around_the_part():
    found = expanded(
        *document("one one", "two two", "six six"), ranking=[0.1, 0.2, 0.9], longest=14
    )
    assert found.texts[2].split() == ["two", "two", "six", "six"]


def test_where_the_siblings_cannot_be_read_the_part_is_kept_and_the_stage_is_degraded():
    given = with_candidates(state_of(*document("First.", "Second.")), [0.9, 0.8])

    def fails(parents):
        raise StoreError("the disk is gone")

    broken = replace(given, resources=replace(given.resources, children=fails))
    found = ExpandParents().run(broken)
    assert (rows(found), dict(found.texts)) == ([0, 1], {})
    assert found.degraded == "parents not read: the disk is gone"


def test_a_part_that_is_not_among_its_siblings_is_kept_as_it_is():
    given = with_candidates(state_of(*document("First.")), [0.9])
    vanished = replace(given.resources, children=lambda _parents: [])
    found = ExpandParents().run(replace(given, resources=vanished))
    assert (rows(found), dict(found.texts)) == ([0], {})
