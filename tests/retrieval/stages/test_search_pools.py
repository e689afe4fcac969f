"""Stage 4 finds candidates in every pool, by both arms and for every wording."""

from dataclasses import replace

import numpy as np
import pytest

from ekphory.retrieval.pipeline import QueryVariants
from ekphory.retrieval.query import QueryClass
from ekphory.retrieval.stages.find import SearchPools
from ekphory.testing.models import HashEmbedder
from ekphory.testing.store_contract import contract_record
from retrieval.states import records, rows, state_of


def test_both_arms_score_every_candidate():
    state = state_of(contract_record(1), contract_record(2), query="memory 2")
    found = SearchPools().run(state).candidates
    assert sorted(found.rows.tolist()) == [0, 1]
    assert {"cosine", "bm25", "lexical"} <= set(found.scores)


def test_a_full_lexical_match_has_nearly_the_whole_share():
    state = state_of(contract_record(1), contract_record(2), query="2")
    found = SearchPools().run(state).candidates
    share = dict(zip(found.rows.tolist(), found.scores["lexical"].tolist(), strict=True))
    assert share[0] == 0.0
    assert 0.5 < share[1] <= 1.0


def test_every_pool_is_searched_to_its_own_depth():
    crowd = [replace(contract_record(n), text="memory song") for n in range(1, 10)]
    lonely = replace(contract_record(10), text="song of memory, at length", pool="shared_rules")
    found = SearchPools(depth=2, depth_per_hit=1).run(state_of(*crowd, lonely, query="song", k=1))
    assert 9 in found.candidates.rows.tolist()
    assert len(found.candidates) < 10


def test_a_pool_can_be_searched_less_deeply_than_the_others():
    crowd = [replace(contract_record(n), text="song", pool="shared_rules") for n in range(1, 5)]
    state = state_of(*crowd, *records("song", "song"), query="song", k=1)
    stage = SearchPools(pool_depth_per_hit={"shared_rules": 1})
    assert len(stage.run(state).candidates) == 3


@pytest.mark.parametrize(("factor_intent", "found"), [(None, 2), ("chain", 4)])
def test_a_query_that_needs_more_is_searched_deeper(factor_intent, found):
    state = state_of(*records(*["song"] * 9), query="song", k=1)
    query_class = None if factor_intent is None else QueryClass(factor_intent, 0.0)
    stage = SearchPools(depth=2, depth_per_hit=0, arms="lexical")
    assert len(stage.run(replace(state, query_class=query_class)).candidates) == found


def test_the_dense_arm_alone_gives_cosine_alone():
    stage = SearchPools(arms="dense")
    found = stage.run(state_of(*records("a song", "a dog"), query="song")).candidates
    assert (set(found.scores), found.rows.tolist()) == ({"cosine"}, [0, 1])
    assert stage.gives == {"candidates", "cosine"}


def test_the_lexical_arm_alone_embeds_nothing():
    found = SearchPools(arms="lexical").run(state_of(*records("a song", "a dog"), query="song"))
    assert "cosine" not in found.candidates.scores
    assert rows(found)[0] == 0


def test_where_words_find_too_few_the_newest_fill_up():
    found = SearchPools(arms="lexical").run(state_of(*records("a", "b", "c"), query="song", k=2))
    assert len(found.candidates) == 3
    assert found.candidates.scores["lexical"].tolist() == [0.0, 0.0, 0.0]


def test_both_arms_search_every_wording_and_a_row_counts_by_the_best():
    state = state_of(*records("the tram to work", "a ladder"), query="commute")
    plain = SearchPools().run(state).candidates
    variants = QueryVariants(texts=("tram work",))
    found = SearchPools().run(replace(state, variants=variants)).candidates
    for name in ("cosine", "lexical", "bm25"):
        assert found.scores[name][0] > plain.scores[name][plain.rows.tolist().index(0)]
    assert found.rows.tolist() == [0, 1]


def test_a_vector_of_its_own_stands_for_the_query_in_the_dense_arm():
    state = state_of(*records("the tram to work", "a ladder"), query="ladder")
    vector = HashEmbedder().encode(["the tram to work window 0"])[0]
    found = SearchPools().run(replace(state, variants=QueryVariants(vector=vector))).candidates
    assert found.scores["cosine"][0] == pytest.approx(1.0, abs=1e-6)
    assert found.rows.tolist()[0] == 0
    assert found.scores["lexical"][1] > 0


def test_pinned_rows_are_candidates_however_little_they_score():
    state = state_of(*records("song song", "song", "no match"), query="song", k=1)
    pinned = replace(state, request=replace(state.request, pinned=np.array([2])))
    stage = SearchPools(depth=1, depth_per_hit=1)
    assert 2 not in rows(stage.run(state))
    assert 2 in rows(stage.run(pinned))
