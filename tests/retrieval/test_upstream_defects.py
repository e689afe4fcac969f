"""Known defects of Memory-Spark: D1 to D8 from its code, F1 to F8 from its own list.

What is tested where it belongs: D5 (a budget that ends at the first memory too long) in
`tests/prompting/test_block.py`, D7 (the date of a file for that of its text) in
`tests/importers/test_documents.py`, D8 (wordings that no words search) in
`tests/retrieval/stages/test_find.py`, F7 (what MAP is divided by) in
`tests/evaluation/test_metrics.py`; F4 (the order of stages) is D1's.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from ekphory.memory import Memory
from ekphory.retrieval.fusion import Blend
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.stages.find import Fuse, SearchPools, lexical_scores
from ekphory.retrieval.stages.rerank import Rerank
from ekphory.retrieval.stages.shape import Diversify
from ekphory.testing import HashEmbedder, OverlapReranker
from retrieval.states import records, rows, state_of, with_candidates


def test_d1_a_boosted_mistake_is_not_cut_off_behind_the_agents_memories(memory):
    memory.add_many({"text": f"the deploy failed on host {n}"} for n in range(12))
    memory.add("the deploy failed on host 99", id="mistake", pool="agent_mistakes")
    found = [hit.id for hit in memory.search("deploy failed host 99", k=5, preset="memory_spark")]
    assert found[0] == "mistake"


@pytest.mark.parametrize("name", PRESETS)
def test_d1_candidates_are_sorted_after_every_stage(name):
    pools = ["agent_memory", "agent_mistakes", "shared_knowledge"]
    given = [
        replace(each, pool=pools[place % 3], importance=place / 10, type="episodic")
        for place, each in enumerate(records(*[f"memory {n} of nine" for n in range(9)]))
    ]
    state = state_of(*given, query="memory 4 of nine", reranker=OverlapReranker())
    for stage in PRESETS[name].stages:
        if stage.skip_reason(state) is None:
            state = stage.run(state)
            assert (np.diff(state.candidates.ranking) <= 0).all(), stage.name


def test_d2_the_best_of_an_irrelevant_pool_does_not_tie_with_the_best_of_all():
    relevant = records("the staging key rotates weekly")
    other = records("a ladder leans there", pool="shared_knowledge")
    state = SearchPools().run(state_of(*relevant, *other, query="the staging key rotates weekly"))
    fused = Fuse(method="reciprocal_rank").run(state)
    assert rows(fused) == [0, 1]
    assert fused.candidates.ranking[0] > fused.candidates.ranking[1]


def test_d3_a_second_best_of_blended_ranks_stays_second_though_it_repeats_the_best():
    given = records("the tram to work", "the tram to work", "a ladder leans there")
    state = state_of(*given)
    blended = [2 / 61, 2 / 62, 2 / 90]
    ranked = with_candidates(state, blended, cosine=[0.9, 0.8, 0.1])
    assert rows(Diversify(trade_off=0.9).run(ranked)) == [0, 1, 2]


def test_d4_the_parts_of_one_parent_take_no_other_parents_place(memory):
    memory.add_many(
        {"text": f"the tram passage number{n}", "parent_id": f"p{n // 2}", "sequence": n}
        for n in range(8)
    )
    found = memory.search("tram passage", k=4, preset="memory_spark")
    assert {hit.memory.parent_id for hit in found} == {"p0", "p1", "p2", "p3"}


def test_d6_every_candidate_of_the_pool_gets_a_reranker_score():
    given = records(*[f"memory {n}" for n in range(40)])
    state = state_of(*given, query="memory 39", k=5, reranker=OverlapReranker())
    state = with_candidates(state, [1 - place / 100 for place in range(40)])
    reranked = Rerank(candidates=40).run(state)
    assert np.isfinite(reranked.candidates.scores["reranker"]).all()
    # Ranked 40th at first and 1st by the reranker; upstream asks for the best 10 of 40 only.
    assert rows(reranked).index(39) < 39


def test_f1_the_stage_orders_by_the_angle_of_vectors_where_the_shared_words_say_otherwise():
    given = records("red red red dog", "red red red cat", "red dog dog dog")
    state = with_candidates(state_of(*given), [0.9, 0.8, 0.7], cosine=[0.9, 0.8, 0.7])
    # To the first, the third has all words in common, but the second points the same way.
    assert rows(Diversify(trade_off=0.0).run(state)) == [0, 2, 1]


def test_f2_a_strong_lexical_match_is_told_from_a_full_one():
    given = records("apple banana cherry damson", "apple banana cherry", *["filler"] * 60)
    state = state_of(*given, query="apple banana cherry damson")
    share = lexical_scores(state.snapshot, [state.text]).shares(np.arange(2))
    assert share[0] > 1.2 * share[1]


def test_f3_scores_crushed_together_still_decide():
    class Crushed(OverlapReranker):
        def score(self, _query, passages):
            by_text = {"a cat": 0.990, "a dog": 0.9999, "a hen": 0.985}
            return np.array([by_text[passage.text] for passage in passages], np.float32)

    state = state_of(*records("a cat", "a dog", "a hen"), query="dog", reranker=Crushed())
    state = with_candidates(state, [0.62, 0.60, 0.50])
    blend = Blend(method="scores", first_stage_share=0.4)
    assert rows(Rerank(blend=blend).run(state)) == [1, 0, 2]


def test_f5_words_find_nothing_of_another_agent_or_pool(open_memory):
    open_memory(project="p", agent="planner").add("the vault code is 4711", id="hers")
    coder = open_memory(project="p", agent="coder")
    coder.add("lunch is at noon", id="mine")
    coder.add("the vault code is secret", id="rule", pool="shared_rules")
    for preset in PRESETS:
        assert "hers" not in {hit.id for hit in coder.search("vault code 4711", preset=preset)}
        only = coder.search("vault code", pools=["agent_memory"], preset=preset)
        assert {hit.id for hit in only} == {"mine"}


def test_f6_first_opens_at_the_same_time_do_not_wait_for_each_other(store_path):
    def remember(number):
        with Memory(store_path, project="p", embedder=HashEmbedder()) as memory:
            memory.add(f"row {number}", id=str(number))
            return len(memory.search("row", k=20))

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(remember, range(8), timeout=60))
    assert max(found) <= 8
    with Memory(store_path, project="p", embedder=HashEmbedder()) as memory:
        assert len(memory.search("row", k=20)) == 8


def test_f8_what_was_recalled_is_not_remembered_again(memory):
    memory.add("The staging key rotates on Mondays", id="key")
    recalled = memory.search("staging key").to_prompt()
    report = memory.add_messages([{"role": "user", "content": recalled}])
    assert (report.added, memory.count()) == (0, 1)
    memory.add_messages([{"role": "user", "content": f"{recalled}\nWhat about Tuesdays?"}])
    assert [each.text for each in memory.list(order="written")] == [
        "The staging key rotates on Mondays",
        "What about Tuesdays?",
    ]
