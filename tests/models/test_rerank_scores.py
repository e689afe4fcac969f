import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.models.reranker import read_scores_in_order


@given(st.lists(st.floats(0, 1, width=32), max_size=20), st.randoms())
def test_scores_in_any_order_come_back_in_that_of_the_passages(scores, chance):
    rows = [{"index": index, "score": score} for index, score in enumerate(scores)]
    chance.shuffle(rows)

    found = read_scores_in_order(rows, count=len(scores), score_field="score", scale="probability")

    assert found.tolist() == scores


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_logits_keep_their_order_and_lie_between_zero_and_one(logits):
    rows = [{"index": index, "score": logit} for index, logit in enumerate(sorted(logits))]

    found = read_scores_in_order(rows, count=len(rows), score_field="score", scale="logit")

    assert all(0 <= score <= 1 for score in found)
    assert found.tolist() == sorted(found.tolist())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["index", "score"]), inner),
)


@given(JSON)
def test_whatever_a_service_answers_gives_every_score_or_a_value_error(rows):
    try:
        found = read_scores_in_order(rows, count=1, score_field="score", scale="probability")
    except ValueError:
        return
    assert len(found) == 1
    assert 0 <= found[0] <= 1


def test_the_error_names_only_the_first_of_many_passages():
    rows = [{"index": index, "score": 0.5} for index in range(1, 9)]

    with pytest.raises(ValueError, match=r"scored 8: \[1, 2, 3, 4, 5\] and more"):
        read_scores_in_order(rows, count=8, score_field="score", scale="probability")
