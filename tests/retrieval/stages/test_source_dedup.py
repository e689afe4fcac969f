"""Stage 7 keeps one of several near-identical passages of one source."""

from ekphory.retrieval.stages.weigh import SourceDedup
from retrieval.states import records, rows, state_of, with_candidates

SAME = "the backup runs every night at two and takes ten minutes"


def deduplicated(*given, **settings):
    state = with_candidates(state_of(*given), [0.9 - place / 10 for place in range(len(given))])
    return SourceDedup(**settings).run(state)


def test_the_better_of_two_near_duplicates_is_kept():
    found = deduplicated(*records(SAME, f"{SAME}!", "another passage", path="backup.md"))
    assert (rows(found), found.notes) == ([0, 2], {"dropped": 1})


def test_a_parent_counts_before_a_path():
    one, two = (
        records(SAME, parent_id="p1", path="a.md")[0],
        records(SAME, parent_id="p2", path="a.md")[0],
    )
    assert rows(deduplicated(one, two)) == [0, 1]


def test_the_source_counts_where_there_is_no_path():
    assert rows(deduplicated(*records(SAME, SAME, source="capture"))) == [0]


def test_what_is_said_twice_without_a_source_happened_twice():
    assert rows(deduplicated(*records(SAME, SAME))) == [0, 1]


def test_two_users_may_have_the_same_file():
    anna, ben = (
        records(SAME, path="a.md", user="anna")[0],
        records(SAME, path="a.md", user="ben")[0],
    )
    assert rows(deduplicated(anna, ben)) == [0, 1]


def test_candidates_that_are_not_looked_at_are_kept():
    assert rows(deduplicated(*records(SAME, SAME, SAME, path="a.md"), among=2)) == [0, 2]
