"""Stage 9 lets what fades rank a little lower."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ekphory.retrieval.stages.weigh import Decay
from ekphory.testing.store_contract import contract_record
from ekphory.types import MEMORY_TYPES
from retrieval.states import state_of, with_candidates


def test_facts_and_how_tos_do_not_fade():
    kinds = ("episodic", "semantic", "procedural", "unknown")
    records = [replace(contract_record(n), type=kind) for n, kind in enumerate(kinds, start=1)]
    aged = Decay(floor=0.8).run(with_candidates(state_of(*records), [0.5] * 4)).candidates
    assert sorted(aged.rows[:2].tolist()) == [1, 2]
    assert aged.ranking.tolist() == pytest.approx([0.5, 0.5, 0.4, 0.4], abs=1e-3)


def test_every_type_can_be_made_to_fade():
    record = replace(contract_record(1), type="semantic")
    aged = Decay(floor=0.8, fading=MEMORY_TYPES).run(with_candidates(state_of(record), [0.5]))
    assert aged.candidates.ranking.tolist() == pytest.approx([0.4], abs=1e-3)


def test_age_counts_from_when_it_happened_not_from_when_it_was_written():
    record = replace(contract_record(1), created_at=datetime(2027, 1, 15, tzinfo=UTC))
    aged = Decay(floor=0.8).run(with_candidates(state_of(record), [0.5]))
    assert aged.candidates.ranking.tolist() == pytest.approx([0.4], abs=1e-3)
