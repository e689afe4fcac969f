"""The last stage keeps what is wanted."""

from ekphory.retrieval.stages.shape import Cut
from ekphory.testing.store_contract import contract_record
from retrieval.states import state_of, with_candidates


def test_the_cut_keeps_the_k_best():
    state = with_candidates(state_of(*map(contract_record, (1, 2, 3)), k=2), [0.2, 0.9, 0.5])
    assert Cut().run(state).candidates.rows.tolist() == [1, 2]


def test_the_cut_drops_what_is_less_likely_than_min_score():
    state = state_of(*map(contract_record, (1, 2, 3)), min_score=0.5)
    cut = Cut().run(with_candidates(state, [0.2, 0.9, 0.5]))
    assert cut.candidates.rows.tolist() == [1, 2]
    assert cut.notes == {"below_min_score": 1, "k": 10}
