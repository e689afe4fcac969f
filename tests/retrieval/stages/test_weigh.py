"""Stage 8 lifts and lowers within bounds."""

from dataclasses import replace

import pytest

from ekphory.retrieval.query import QueryClass, QueryHints
from ekphory.retrieval.stages.weigh import PUBLISHED_ORIGIN_WEIGHTS, OriginWeights, Weigh
from ekphory.testing.store_contract import contract_record
from retrieval.states import records, rows, state_of, with_candidates


def test_importance_lifts_and_lowers_by_a_tenth():
    records = [replace(contract_record(n), importance=n / 2) for n in (0, 1, 2)]
    state = with_candidates(state_of(*records), [0.5, 0.5, 0.5])
    weighed = Weigh(pool_weights={}).run(state).candidates
    assert weighed.rows.tolist() == [2, 1, 0]
    assert weighed.ranking.tolist() == pytest.approx([0.55, 0.5, 0.45])


def test_a_predicted_importance_neither_lifts_nor_lowers():
    predicted = frozenset({"importance"})
    records = [
        replace(contract_record(n), importance=n / 2, predicted=predicted) for n in (0, 1, 2)
    ]
    state = with_candidates(state_of(*records), [0.5, 0.5, 0.5])
    assert Weigh(pool_weights={}).run(state).candidates.ranking.tolist() == [0.5, 0.5, 0.5]


def test_a_query_for_what_is_important_lifts_a_predicted_importance_too():
    record = replace(contract_record(1), importance=1.0, predicted=frozenset({"importance"}))
    state = with_candidates(state_of(record), [0.5])
    asked = replace(state, query_class=QueryClass("lookup", 0.0, hints=QueryHints(importance=1.0)))
    lifted = Weigh(pool_weights={}).run(asked).candidates.ranking.tolist()
    assert lifted == pytest.approx([0.5 * 20.0855369])


def test_a_pool_lifts_by_a_tenth_at_most():
    record = replace(contract_record(1), pool="shared_mistakes")
    weighed = Weigh().run(with_candidates(state_of(record), [0.5])).candidates
    assert weighed.ranking.tolist() == pytest.approx([0.55])


def test_weighing_changes_no_probability():
    record = replace(contract_record(1), pool="shared_mistakes")
    weighed = Weigh().run(with_candidates(state_of(record), [0.5])).candidates
    assert weighed.scores["probability"].tolist() == [0.5]


def weighed(record, **settings):
    stage = Weigh(pool_weights={}, importance=0.0, **settings)
    return stage.run(with_candidates(state_of(record), [0.5])).candidates.ranking.tolist()


def test_without_a_bound_the_published_pool_weights_hold():
    pools = [
        "agent_memory",
        "agent_mistakes",
        "shared_mistakes",
        "shared_knowledge",
        "shared_rules",
    ]
    given = [replace(contract_record(n), pool=pool) for n, pool in enumerate(pools, start=1)]
    lifted = Weigh(bound=None).run(with_candidates(state_of(*given), [0.5] * 5)).candidates
    by_row = dict(zip(lifted.rows.tolist(), lifted.ranking.tolist(), strict=True))
    assert [by_row[row] for row in range(5)] == pytest.approx([0.5, 0.8, 0.8, 0.4, 0.5])


@pytest.mark.parametrize(
    ("fields", "factor"),
    [
        ({"source": "capture"}, 1.5),
        ({"source": "sessions"}, 0.5),
        ({"path": "MEMORY.md"}, 1.4),
        ({"path": "memory/learnings.md"}, 0.1),
        ({"path": "notes/Mistakes/2026.md"}, 1.6),
        ({"path": "memory/archive/mistakes.md"}, 1.6),
        ({"path": "memory/archive/old.md"}, 0.4),
        ({"source": "capture", "path": "TOOLS.md"}, 1.5 * 1.3),
        ({"path": "elsewhere.md"}, 1.0),
        ({}, 1.0),
    ],
)
def test_source_and_path_weigh_as_published(fields, factor):
    (record,) = records("text", **fields)
    assert PUBLISHED_ORIGIN_WEIGHTS.of(record) == pytest.approx(factor)


def test_an_origin_lifts_by_the_bound_at_most():
    (record,) = records("text", source="capture")
    origins = OriginWeights(sources={"capture": 1.5})
    assert weighed(record, origin_weights=origins) == pytest.approx([0.55])
    assert weighed(record, origin_weights=origins, bound=None) == pytest.approx([0.75])


def test_what_a_query_asks_for_is_lifted():
    given = [
        replace(each, type=kind)
        for each, kind in zip(records("a", "b"), ("episodic", "procedural"), strict=True)
    ]
    state = with_candidates(state_of(*given), [0.5, 0.5])
    asked = QueryClass("procedural", 0.0, hints=QueryHints(procedural=0.9))
    lifted = Weigh().run(replace(state, query_class=asked))
    assert rows(lifted) == [1, 0]
    assert lifted.candidates.ranking.tolist() == pytest.approx([0.5 * 1.27, 0.5])


def test_the_factors_are_remembered_for_a_later_stage():
    record = replace(contract_record(1), pool="shared_mistakes")
    lifted = Weigh().run(with_candidates(state_of(record), [0.5])).candidates
    assert lifted.scores["boost"].tolist() == pytest.approx([1.1])
