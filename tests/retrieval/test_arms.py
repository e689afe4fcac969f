"""What the lexical arm chooses in each pool equals what scoring every row would choose."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.retrieval.states import records, state_of

from ekphory.retrieval.snapshot import Neighbours
from ekphory.retrieval.stages.find import LexicalScores, WordingScores

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
