"""What fits into a budget of tokens, and how tokens are estimated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.prompting.block import estimate_tokens, fit_token_budget

SIZES = st.lists(st.text(alphabet="ab \n", max_size=40), max_size=10)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("cat", 1),
        ("language", 2),
        ("I like cats.", 4),
        ("2026-11-20", 10),
        ("x = {}\n    y", 7),
        ("记忆", 4),
        ("ก", 3),
        ("🎉", 4),
        ("a\u3000\u3000b \x85", 4),
    ],
)
def test_tokens_are_estimated_from_above(text, tokens):
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "real"),
    [
        # Counted with the tokenizer of GPT-4 (cl100k_base).
        ("def add(a: int, b: int) -> int:\n    return a + b\n", 19),
        ("We spent the summer in a hut by the lake, without a telephone.", 15),
        ("记忆检索引擎把代理看到的内容保存下来，并在需要时返回最相关的几条记录。", 33),
        ("Вчера мы были на встрече и обсуждали бюджет следующего года.", 28),
    ],
)
def test_the_estimate_is_not_below_a_real_tokenizer(text, real):
    assert real <= estimate_tokens(text) <= 3 * real


def test_a_text_that_does_not_fit_is_passed_over():
    texts = ["one two", "three four five six", "seven"]
    assert fit_token_budget(texts, 3, count_tokens=lambda text: len(text.split())) == [0, 2]


def test_a_first_text_larger_than_the_budget_does_not_block_the_rest():
    assert fit_token_budget(["word " * 5_000, "short", "brief"], 10) == [1, 2]


@given(SIZES, st.integers(0, 60))
def test_the_texts_that_fit_never_cost_more_than_the_budget(texts, budget):
    places = fit_token_budget(texts, budget)
    assert sum(estimate_tokens(texts[place]) for place in places) <= budget


@given(SIZES, st.integers(0, 60))
def test_a_text_is_left_out_only_when_those_before_it_left_too_little(texts, budget):
    places = fit_token_budget(texts, budget)
    for place in set(range(len(texts))) - set(places):
        before = sum(estimate_tokens(texts[other]) for other in places if other < place)
        assert before + estimate_tokens(texts[place]) > budget


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_joined_texts_cost_no_more_than_the_texts(text):
    half = len(text) // 2
    parts = estimate_tokens(text[:half] + "\n") + estimate_tokens(text[half:])
    assert estimate_tokens(text[:half] + "\n" + text[half:]) <= parts
