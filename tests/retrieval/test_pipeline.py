"""A pipeline is checked when it is built, and says what each stage did."""

from dataclasses import replace

import numpy as np
import pytest

from recollect.errors import InvalidInput
from recollect.retrieval.pipeline import Pipeline
from recollect.retrieval.presets import PRESETS, preset
from recollect.retrieval.snapshots import Snapshots
from recollect.retrieval.stages.clean_query import CleanQuery
from recollect.retrieval.stages.cut import Cut
from recollect.retrieval.stages.decay import Decay
from recollect.retrieval.stages.fuse import Fuse
from recollect.retrieval.stages.search_pools import SearchPools
from recollect.retrieval.stages.weigh import Weigh
from recollect.retrieval.state import Candidates, SearchRequest, SearchState
from recollect.scope import Scope
from recollect.store.in_memory import InMemoryStore
from recollect.testing import CONTRACT_IDENTITY, HashEmbedder
from recollect.testing.contract_rows import contract_record, contract_row

NOW = 1_800_000_000_000_000


def state_of(*records, query="memory", k=10, min_score=None):
    store = InMemoryStore(CONTRACT_IDENTITY)
    store.append([contract_row(key, record) for key, record in enumerate(records, start=1)])
    snapshot = Snapshots(store).of(Scope().predicate())
    visible = np.ones(len(snapshot), bool)
    request = SearchRequest(query, k, NOW, min_score, visible)
    return SearchState(request, snapshot, HashEmbedder(), query)


def with_candidates(state, probabilities):
    values = np.array(probabilities, np.float32)
    rows = np.arange(len(values), dtype=np.int64)
    return replace(state, candidates=Candidates(rows, values, {"probability": values}).sorted())


def test_stages_in_the_wrong_order_are_refused_by_name():
    with pytest.raises(InvalidInput, match=r"stages='decay, weigh'.* 9 stands before 8"):
        Pipeline("mine", [CleanQuery(), SearchPools(), Fuse(), Decay(), Weigh()])


def test_a_stage_without_what_it_needs_is_refused_by_name():
    with pytest.raises(InvalidInput, match=r"stages='fuse'.*\['cosine', 'lexical'\]"):
        Pipeline("mine", [CleanQuery(), Fuse()])


def test_the_trace_names_every_stage_and_counts_its_candidates():
    _, trace = PRESETS["balanced"].run(state_of(contract_record(1), contract_record(2), k=1))
    assert trace.preset == "balanced"
    assert [stage.name for stage in trace.stages] == [
        "clean query", "search pools", "fuse", "weigh", "decay", "cut",
    ]  # fmt: skip
    assert [stage.status for stage in trace.stages] == ["ran"] * 6
    assert (trace.stages[-1].candidates_in, trace.stages[-1].candidates_out) == (2, 1)


def test_a_stage_with_nothing_to_do_is_skipped_with_the_reason():
    _, trace = PRESETS["balanced"].run(state_of())
    assert [(stage.status, stage.reason) for stage in trace.stages[1:]] == [
        ("skipped", "no memory is visible"),
        ("skipped", "no candidates"),
        ("skipped", "no candidates"),
        ("skipped", "no candidates"),
        ("skipped", "no candidates"),
    ]


def test_an_unknown_preset_is_named_with_the_nearest_one():
    with pytest.raises(InvalidInput, match=r"preset='balancd'.*Did you mean 'balanced'"):
        preset("balancd")


def test_no_preset_means_balanced():
    assert preset(None).name == "balanced"


def test_the_query_is_folded_and_its_end_is_kept():
    cleaned = CleanQuery(longest=9).run(state_of(query="  Who   sang\n\tthe song? "))
    assert cleaned.text == "the song?"
    assert cleaned.notes == {"characters_removed": 15}


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


def test_importance_lifts_and_lowers_by_a_tenth():
    records = [replace(contract_record(n), importance=n / 2) for n in (0, 1, 2)]
    state = with_candidates(state_of(*records), [0.5, 0.5, 0.5])
    weighed = Weigh(pool_weights={}).run(state).candidates
    assert weighed.rows.tolist() == [2, 1, 0]
    assert weighed.ranking.tolist() == pytest.approx([0.55, 0.5, 0.45])


def test_a_pool_lifts_by_a_tenth_at_most():
    record = replace(contract_record(1), pool="shared_mistakes")
    weighed = Weigh().run(with_candidates(state_of(record), [0.5])).candidates
    assert weighed.ranking.tolist() == pytest.approx([0.55])


def test_weighing_changes_no_probability():
    record = replace(contract_record(1), pool="shared_mistakes")
    weighed = Weigh().run(with_candidates(state_of(record), [0.5])).candidates
    assert weighed.scores["probability"].tolist() == [0.5]


def test_facts_and_how_tos_do_not_fade():
    kinds = ("episodic", "semantic", "procedural", "unknown")
    records = [replace(contract_record(n), type=kind) for n, kind in enumerate(kinds, start=1)]
    aged = Decay(floor=0.8).run(with_candidates(state_of(*records), [0.5] * 4)).candidates
    assert sorted(aged.rows[:2].tolist()) == [1, 2]
    assert aged.ranking.tolist() == pytest.approx([0.5, 0.5, 0.4, 0.4], abs=1e-3)


def test_the_cut_keeps_the_k_best():
    state = with_candidates(state_of(*map(contract_record, (1, 2, 3)), k=2), [0.2, 0.9, 0.5])
    assert Cut().run(state).candidates.rows.tolist() == [1, 2]


def test_the_cut_drops_what_is_less_likely_than_min_score():
    state = state_of(*map(contract_record, (1, 2, 3)), min_score=0.5)
    cut = Cut().run(with_candidates(state, [0.2, 0.9, 0.5]))
    assert cut.candidates.rows.tolist() == [1, 2]
    assert cut.notes == {"below_min_score": 1, "k": 10}


def test_equal_ranking_keeps_the_order_of_writing():
    state = with_candidates(state_of(*map(contract_record, (1, 2, 3))), [0.5, 0.5, 0.5])
    assert state.candidates.rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize("method", ["weighted_sum", "reciprocal_rank"])
def test_the_probability_comes_from_the_weighted_sum_whatever_orders(method):
    state = SearchPools().run(state_of(contract_record(1), contract_record(2), query="memory 2"))
    fused = Fuse(method=method).run(state).candidates
    sums = fused.scores["cosine"] + np.float32(1.5) * fused.scores["lexical"]
    assert fused.scores["fused"].tolist() == pytest.approx(sums.tolist())
    assert fused.rows.tolist() == [1, 0]
