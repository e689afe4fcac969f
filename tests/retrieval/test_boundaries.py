"""What lies just inside a limit and just outside it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.store.store_contract import contract_record

from ekphory.retrieval.calibration import answer_features
from ekphory.retrieval.pipeline import CANONICAL_STAGES, QueryClass, describe
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.query import words_of
from ekphory.retrieval.stages.find import SearchPools
from ekphory.retrieval.time_arm import find_timed_rows
from ekphory.time_words.parse import read_time
from ekphory.types import to_microseconds, to_plain_data
from retrieval.states import records, state_of, with_candidates

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)


def find_in_time(query, *told):
    """Rows of memories, each told so long before NOW and in that session, that lie in a time."""
    said = [
        replace(contract_record(number), at=NOW - before, session=session)
        for number, (before, session) in enumerate(told, start=1)
    ]
    snapshot = state_of(*said).snapshot
    visible = np.ones(len(snapshot), bool)
    reading = read_time(query, now=NOW)
    return find_timed_rows(snapshot, reading, visible=visible, now=to_microseconds(NOW))


@pytest.mark.parametrize(
    ("minutes", "rows"),
    [(29, [0]), (31, [0, 1])],
    ids=["a session that goes on is not meant", "one that has ended is"],
)
def test_earlier_today_leaves_out_the_session_that_is_still_going_on(minutes, rows):
    morning, newest = (timedelta(hours=4), "a"), (timedelta(minutes=minutes), "b")
    later = (timedelta(hours=-1), "c")
    assert (
        find_in_time("what did I say earlier today?", morning, newest, later).rows.tolist() == rows
    )


def test_what_is_told_within_three_days_after_a_time_is_marked():
    days = [(timedelta(days=days), None) for days in (33, 31, 29.6, 28.6)]
    told = find_in_time("on May 8th", *days).told
    assert told.tolist() == pytest.approx([0, 0.93, 0.93, 0])


def test_an_apostrophe_is_one_however_it_is_typed():
    assert (
        words_of("What’s Zoe\u0308’s?") == words_of("What's Zoë's?") == ["what", "is", "zoë", "'s"]
    )


def test_a_chain_is_searched_twice_as_deep():
    state = state_of(*records(*["song"] * 9), query="song", k=1)
    state = replace(state, query_class=QueryClass("chain", 0.0, (), {}))
    assert len(SearchPools(depth=3, depth_per_hit=1).run(state).candidates) == 6


def test_features_of_a_hit_without_scores_are_neutral():
    state = with_candidates(state_of(*records("a", "b")), [0.5, 0.25], fused=[1.0, 0.5])
    features = answer_features(state)
    assert np.isfinite(features).all()
    boosted = with_candidates(
        state_of(*records("a", "b")), [0.5, 0.25], fused=[1.0, 0.5],
        boost=[1.0, 1.0], lexical_bound=[0.0, 0.0],
    )  # fmt: skip
    assert answer_features(boosted).tolist() == features.tolist()


def test_every_stage_of_every_preset_has_the_settings_that_are_written_down():
    written = json.loads(Path(__file__).with_name("pipelines.json").read_text(encoding="utf-8"))
    described = {
        name: {
            f"{stage.number} {stage.name}": to_plain_data(dict(stage.settings))
            for stage in describe(pipeline)
            if stage.used
        }
        for name, pipeline in PRESETS.items()
    }
    assert described == written


def test_the_fifteen_stages_are_those_of_the_published_pipeline():
    assert CANONICAL_STAGES == {
        1: "clean query", 2: "hyde", 3: "multi-query", 4: "search pools", 5: "fuse",
        6: "merge pools", 7: "source dedup", 8: "weigh", 9: "decay", 10: "normalise",
        11: "reranker gate", 12: "rerank", 13: "diversify", 14: "expand parents",
        15: "context, safety, budget, cut",
    }  # fmt: skip
