"""Stage 4 finds candidates in every pool, by both arms and for every wording."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.store_contract import contract_record

from ekphory.retrieval.calibration import Calibration, FusionCalibration
from ekphory.retrieval.fusion import LexicalWeight
from ekphory.retrieval.pipeline import QueryClass
from ekphory.retrieval.snapshot import Neighbours
from ekphory.retrieval.stages.find import Fuse, LexicalScores, SearchPools, WordingScores
from ekphory.testing import HashEmbedder
from retrieval.states import records, rows, state_of, with_candidates


def test_both_arms_score_every_candidate_and_a_full_match_has_nearly_the_whole_share():
    # Both arms score every candidate.
    state = state_of(contract_record(1), contract_record(2), query="memory 2")
    found = SearchPools().run(state).candidates
    assert sorted(found.rows.tolist()) == [0, 1]
    assert {"cosine", "bm25", "lexical"} <= set(found.scores)
    # A full lexical match has nearly the whole share.
    state = state_of(contract_record(1), contract_record(2), query="2")
    found = SearchPools().run(state).candidates
    share = dict(zip(found.rows.tolist(), found.scores["lexical"].tolist(), strict=True))
    assert share[0] == 0.0
    assert 0.5 < share[1] <= 1.0


def test_every_pool_is_searched_to_its_own_depth():
    # Every pool is searched to its own depth.
    crowd = [replace(contract_record(n), text="memory song") for n in range(1, 10)]
    lonely = replace(contract_record(10), text="song of memory, at length", pool="shared_rules")
    found = SearchPools(depth=2, depth_per_hit=1).run(state_of(*crowd, lonely, query="song", k=1))
    assert 9 in found.candidates.rows.tolist()
    assert len(found.candidates) < 10
    # A pool can be searched less deeply than the others.
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


def test_one_arm_alone_gives_its_scores_alone_and_the_newest_where_words_find_too_few():
    # The dense arm alone gives cosine alone.
    stage = SearchPools(arms="dense")
    found = stage.run(state_of(*records("a song", "a dog"), query="song")).candidates
    assert (set(found.scores), found.rows.tolist()) == ({"cosine"}, [0, 1])
    assert stage.gives == {"candidates", "cosine"}
    # The lexical arm alone embeds nothing.
    found = SearchPools(arms="lexical").run(state_of(*records("a song", "a dog"), query="song"))
    assert "cosine" not in found.candidates.scores
    assert rows(found)[0] == 0
    # Where words find too few the newest fill up.
    found = SearchPools(arms="lexical").run(state_of(*records("a", "b", "c"), query="song", k=2))
    assert len(found.candidates) == 3
    assert found.candidates.scores["lexical"].tolist() == [0.0, 0.0, 0.0]


def test_both_arms_search_every_wording_and_a_row_counts_by_the_best():
    state = state_of(*records("the tram to work", "a ladder"), query="commute")
    plain = SearchPools().run(state).candidates
    found = SearchPools().run(replace(state, wordings=("tram work",))).candidates
    for name in ("cosine", "lexical", "bm25"):
        assert found.scores[name][0] > plain.scores[name][plain.rows.tolist().index(0)]
    assert found.rows.tolist() == [0, 1]


def test_a_vector_of_its_own_stands_for_the_query_in_the_dense_arm():
    state = state_of(*records("the tram to work", "a ladder"), query="ladder")
    vector = HashEmbedder().encode(["the tram to work window 0"])[0]
    found = SearchPools().run(replace(state, vector=vector)).candidates
    assert found.scores["cosine"][0] == pytest.approx(1.0, abs=1e-6)
    assert found.rows.tolist()[0] == 0
    assert found.scores["lexical"][1] > 0


def test_pinned_rows_are_candidates_however_little_they_score():
    state = state_of(*records("song song", "song", "no match"), query="song", k=1)
    pinned = replace(state, request=replace(state.request, pinned=np.array([2])))
    stage = SearchPools(depth=1, depth_per_hit=1)
    assert 2 not in rows(stage.run(state))
    assert 2 in rows(stage.run(pinned))


ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.4, 1.0, 1.3, 2.0, 7.5]),  # BM25
        st.integers(1, 3),  # thread
        st.sampled_from(["agent_memory", "agent_tools", "shared_rules"]),
        st.booleans(),  # visible
    ),
    min_size=1,
    max_size=40,
)


def neighbours_of(threads):
    written = np.arange(len(threads))
    return Neighbours.build(np.array(threads, np.int64), written, written, written)


@given(rows=ROWS, depth=st.integers(1, 6))
def test_the_best_of_each_pool_have_the_largest_shares_of_all_its_visible_rows(rows, depth):
    bm25, threads, pools, visible = zip(*rows, strict=True)
    stored = [record for pool in pools for record in records("text", pool=pool)]
    snapshot = state_of(*stored).snapshot
    wording = WordingScores(np.array(bm25, np.float32), 1.0, neighbours_of(threads))
    seen = np.array(visible)
    depths = np.full(len(snapshot.pool_names), depth)
    chosen = LexicalScores((wording,)).best_in_each_pool(snapshot, seen, depths=depths)
    every = wording.shares(np.arange(len(rows)))
    for code in range(len(snapshot.pool_names)):
        inside = (snapshot.pool_codes == code) & seen & (every > 0)
        expected = np.sort(every[inside])[::-1][:depth]
        found = every[chosen[snapshot.pool_codes[chosen] == code]]
        assert np.sort(found)[::-1].tolist() == expected.tolist()


def test_a_row_that_only_its_neighbours_speak_for_is_found():
    wording = WordingScores(np.array([9, 0, 9, 1], np.float32), 10.0, neighbours_of([1, 1, 1, 2]))
    snapshot = state_of(*records("a", "b", "c", "d")).snapshot
    scores = LexicalScores((wording,))
    chosen = scores.best_in_each_pool(snapshot, np.ones(4, bool), depths=np.array([3]))
    assert sorted(chosen.tolist()) == [0, 1, 2]
    assert round(float(scores.of(np.array([1]))["lexical"][0]), 3) == 0.54


def test_equal_ranking_keeps_the_order_of_writing():
    state = with_candidates(state_of(*map(contract_record, (1, 2, 3))), [0.5, 0.5, 0.5])
    assert state.candidates.rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize("method", ["weighted_sum", "reciprocal_rank"])
def test_the_probability_comes_from_the_weighted_sum_whatever_orders(method):
    state = SearchPools().run(state_of(contract_record(1), contract_record(2), query="memory 2"))
    fused = Fuse(method=method).run(state).candidates
    sums = fused.scores["cosine"] + np.float32(0.75) * fused.scores["lexical"]
    assert fused.scores["fused"].tolist() == pytest.approx(sums.tolist())
    assert fused.rows.tolist() == [1, 0]


def test_turns_and_documents_weigh_words_and_probabilities_each_in_their_own_way():
    # Turns and documents weigh words and probabilities each in their own way.
    fuse = Fuse(
        lexical_weight=LexicalWeight(documents=0.8, turns=0.4),
        calibration=FusionCalibration(
            documents=Calibration(slope=2.0, steepening=0.0, weight=0.0, intercept=-1.0),
            turns=Calibration(slope=4.0, steepening=0.0, weight=0.0, intercept=-1.0),
        ),
    )
    note, turn = records("the roof leaks"), records("the roof leaks", session="s1")

    found = {}
    for name, stored in (("note", note), ("turn", turn), ("both", [*note, *renamed(turn)])):
        state = with_candidates(
            state_of(*stored), [1.0], cosine=[0.5], lexical=[0.5], lexical_bound=[5.0]
        )
        scores = fuse.run(state).candidates.scores
        found[name] = float(scores["fused"][0]), float(scores["probability"][0])

    assert found["note"] == pytest.approx((0.9, 1 / (1 + exp(-0.8))))
    assert found["turn"] == pytest.approx((0.7, 1 / (1 + exp(-1.8))))
    assert found["both"] == pytest.approx((0.8, 1 / (1 + exp(-1.4))))
    # Documents in the pools for reference are not turns.
    passage = records("the roof leaks", session="handbook", pool="reference_library")
    state = with_candidates(
        state_of(*passage), [1.0], cosine=[0.5], lexical=[0.5], lexical_bound=[5.0]
    )
    fuse = Fuse(lexical_weight=LexicalWeight(documents=0.8, turns=0.4))

    assert fuse.run(state).candidates.scores["fused"].tolist() == pytest.approx([0.9])


def renamed(stored):
    return [replace(record, id=f"{record.id}b") for record in stored]


def arms(cosine, lexical):
    count = len(cosine)
    state = state_of(*records(*map(str, range(count))), k=1)
    bound = [5.0] * count
    return with_candidates(state, cosine, cosine=cosine, lexical=lexical, lexical_bound=bound)


def test_ranks_of_both_arms_add_up_as_far_as_a_list_goes_and_one_arm_orders_alone():
    # Ranks of both arms add up.
    fused = Fuse(method="reciprocal_rank").run(arms([0.9, 0.8, 0.1], [0.0, 0.7, 0.2]))
    assert rows(fused) == [1, 2, 0]
    assert fused.candidates.ranking.tolist() == pytest.approx(
        [1 / 62 + 1 / 61, 1 / 63 + 1 / 62, 1 / 61]
    )
    # An arms list ends where it is told to.
    fused = Fuse(method="reciprocal_rank", list_per_hit=1).run(arms([0.9, 0.8], [0.1, 0.7]))
    assert fused.candidates.ranking.tolist() == pytest.approx([1 / 61, 1 / 61])
    # One arm orders alone.
    state = arms([0.9, 0.8], [0.1, 0.7])
    assert rows(Fuse(method="dense").run(state)) == [0, 1]
    assert rows(Fuse(method="lexical").run(state)) == [1, 0]


def test_where_the_arms_disagree_the_adaptive_ranks_trust_the_dense_one():
    state = arms([0.9, 0.8, 0.7], [0.0, 0.0, 0.9])
    assert rows(Fuse(method="reciprocal_rank").run(state))[0] == 2
    adaptive = Fuse(method="adaptive_reciprocal_rank", list_per_hit=2).run(state)
    assert rows(adaptive)[0] == 0
    assert adaptive.notes["arm_weights"] == (2.0, 0.3)


def test_a_method_asks_for_the_arms_that_it_fuses():
    methods = ("weighted_sum", "dense", "lexical")
    assert [sorted(Fuse(method=method).needs) for method in methods] == [
        ["cosine", "lexical"], ["cosine"], ["lexical"],
    ]  # fmt: skip
