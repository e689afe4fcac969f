"""The dialogue before a question, as texts or as messages."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.errors import InvalidInput
from ekphory.models.reranker import (
    RerankPassage,
    RerankQuery,
    format_passage,
    format_query,
    read_dialogue,
    read_scores_in_order,
)
from ekphory.models.torch_reranker import log_odds

CASES = read_cases(__file__)


@pytest.mark.parametrize(("context", "turns"), CASES["turns"])
def test_a_turn_is_told_with_its_speaker_and_an_empty_one_left_out(context, turns):
    assert read_dialogue(context) == tuple(turns)


@pytest.mark.parametrize(("context", "problem"), [*CASES["no dialogue"], (None, "must be a list")])
def test_what_is_no_dialogue_is_refused(context, problem):
    with pytest.raises(InvalidInput, match=problem):
        read_dialogue(context)


MAY = datetime(2023, 5, 8, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (RerankQuery("who?"), "who?"),
        (RerankQuery("who?", now=MAY), "Asked on 8 May 2023: who?"),
        (RerankQuery("who?", ("Ann: hi", "Bob: ho")),
         "The dialogue so far:\nAnn: hi\nBob: ho\nAsked: who?"),
        (RerankQuery("who?", ("hi",), MAY),
         "The dialogue so far:\nhi\nAsked on 8 May 2023: who?"),
        (RerankQuery("who?", instruction="Find people."), "who?"),
    ],
)  # fmt: skip
def test_what_is_known_stands_before_the_question(query, words):
    assert format_query(query) == words


@pytest.mark.parametrize(
    ("passage", "words"),
    [
        (RerankPassage("Ann: hi", before="Bob: ho", after="Bob: ha"), "Ann: hi"),
        (RerankPassage("Ann: hi", at=MAY), "[8 May 2023] Ann: hi"),
        (RerankPassage("Ann: hi", type="semantic"), "[semantic memory] Ann: hi"),
        (RerankPassage("Ann: hi", at=MAY, type="episodic"),
         "[8 May 2023, episodic memory] Ann: hi"),
        (RerankPassage("Ann: hi", type="unknown"), "Ann: hi"),
    ],
)  # fmt: skip
def test_date_and_type_stand_before_the_passage_and_neighbours_do_not(passage, words):
    assert format_passage(passage) == words


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


@pytest.mark.parametrize(
    ("answered", "logit"),
    # An answer without a probability counts as the model card counts it.
    [({9693: -0.1, 2152: -2.4}, 2.3), ({9693: -0.5}, 9.5), ({}, 0.0)],
)
def test_vllms_logit_is_the_difference_of_the_two_log_probabilities(answered, logit):
    answer = {token: SimpleNamespace(logprob=value) for token, value in answered.items()}
    assert log_odds(answer, yes=9693, no=2152) == pytest.approx(logit)
