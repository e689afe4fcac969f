from hypothesis import given
from hypothesis import strategies as st

from ekphory.models.embedder import batch_by_length


def test_inputs_of_like_length_share_a_batch_and_the_longest_come_first():
    assert batch_by_length([3, 9, 4, 8], most_tokens=18) == [[1, 3], [2, 0]]


def test_an_input_longer_than_a_batch_is_alone():
    assert batch_by_length([50, 2], most_tokens=10) == [[0], [1]]


def test_no_inputs_give_no_batches():
    assert batch_by_length([], most_tokens=10) == []


def test_two_threads_share_the_last_inputs_evenly():
    lengths = [100] * 12

    assert [len(batch) for batch in batch_by_length(lengths, most_tokens=512)] == [5, 5, 2]
    assert [len(batch) for batch in batch_by_length(lengths, most_tokens=512, threads=2)] == [
        5,
        3,
        2,
        1,
        1,
    ]


def test_what_is_too_little_for_two_threads_stays_in_one_batch():
    assert batch_by_length([20, 30, 40], most_tokens=512, threads=2) == [[2, 1, 0]]


@given(
    st.lists(st.integers(min_value=0, max_value=300)),
    st.integers(min_value=1, max_value=512),
    st.integers(min_value=1, max_value=16),
)
def test_every_input_is_in_one_batch_and_no_batch_is_too_large(lengths, most_tokens, threads):
    batches = batch_by_length(lengths, most_tokens=most_tokens, threads=threads)

    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * max(lengths[position] for position in batch)
        assert padded <= most_tokens or len(batch) == 1
