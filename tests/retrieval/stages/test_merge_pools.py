"""Stage 6 makes one list of all pools."""

from dataclasses import replace

import numpy as np

from ekphory.retrieval.pipeline import Candidates
from ekphory.retrieval.stages.weigh import MergePools
from retrieval.states import records, rows, state_of, with_candidates


def test_a_memory_stands_once_with_its_best_ranking():
    ranking = np.array([0.2, 0.9, 0.5], np.float32)
    twice = Candidates(np.array([0, 1, 0]), ranking, {"probability": ranking})
    merged = MergePools().run(replace(state_of(*records("a", "b")), candidates=twice))
    assert rows(merged) == [1, 0]
    assert merged.candidates.ranking.tolist() == [np.float32(0.9), np.float32(0.5)]


def test_the_trace_counts_by_pool():
    given = [*records("a", "b"), *records("c", pool="shared_rules")]
    merged = MergePools().run(with_candidates(state_of(*given), [0.9, 0.5, 0.7]))
    assert (rows(merged), merged.notes) == ([0, 2, 1], {"agent_memory": 2, "shared_rules": 1})
