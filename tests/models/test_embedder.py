"""Batches, windows and the cache of an embedder."""

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.models.embedder import (
    LONGEST_KEY,
    VectorCache,
    batch_by_length,
    find_best_piece,
    find_best_tokens,
    list_distinct_words,
    split_into_windows,
)

CASES = read_cases(__file__)


@pytest.mark.parametrize(
    ("lengths", "most_tokens", "batches"),
    [
        # Inputs of like length share a batch, and the longest come first.
        ([3, 9, 4, 8], 18, [[1, 3], [2, 0]]),
        # An input that is longer than a batch is alone.
        ([50, 2], 10, [[0], [1]]),
        ([], 10, []),
    ],
)
def test_batches_hold_inputs_of_like_length(lengths, most_tokens, batches):
    assert batch_by_length(lengths, most_tokens=most_tokens) == batches


def test_two_threads_share_the_last_inputs_evenly():
    for threads, sizes in ((1, [5, 5, 2]), (2, [5, 3, 2, 1, 1])):
        batches = batch_by_length([100] * 12, most_tokens=512, threads=threads)
        assert [len(batch) for batch in batches] == sizes
    # Too little for two threads.
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


def window(text, question, most):
    words = text.split(" ")
    starts = [len(" ".join(words[:place])) + (place > 0) for place in range(len(words))]
    offsets = [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]
    start, end = find_best_tokens(text, offsets, list_distinct_words(question), most=most)
    return " ".join(words[start:end])


@pytest.mark.parametrize(("text", "question", "most", "found"), CASES["windows"])
def test_the_words_of_the_question_stand_in_the_middle(text, question, most, found):
    assert window(text, question, most) == found


def test_words_are_kept_whole_and_a_long_text_is_cut_first():
    # Words of several tokens are kept whole.
    offsets = [(0, 1), (2, 4), (4, 6), (7, 8)]
    assert find_best_tokens("a dogs b", offsets, list_distinct_words("dogs"), most=2) == (1, 3)
    # A long text is first cut to a piece with the words.
    text = "x " * 500 + "dog" + " y" * 500
    piece = find_best_piece(text, list_distinct_words("dog"), most_tokens=2)
    assert (len(piece), "dog" in piece) == (128, True)


WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=40)


@given(WORDS, st.sets(st.sampled_from("abc")), st.integers(1, 9))
def test_no_other_window_holds_more_words(words, asked, most):
    found = window(" ".join(words), " ".join(sorted(asked)), most).split()
    windows = [words[start : start + most] for start in range(len(words))]
    assert len(found) == min(most, len(words))
    assert len(asked & set(found)) == max(len(asked & set(each)) for each in windows)


class Counted:
    """Gives each text the vector (its length, 1) and counts how often it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.extend(texts)
        return np.array([[len(text), 1] for text in texts], np.float32).reshape(-1, 2)


def test_texts_keep_their_order_and_those_that_are_known_are_not_computed_again():
    cache, missing = VectorCache(10), Counted()
    cache.encode(["four"], missing=missing)[:] = 99

    vectors = cache.encode(["a", "four", "bb", "a"], missing=missing)

    assert vectors.tolist() == [[1, 1], [4, 1], [2, 1], [1, 1]]
    assert missing.asked == ["four", "a", "bb"]


def test_the_text_that_was_used_longest_ago_is_forgotten_first():
    cache, missing = VectorCache(2), Counted()
    for text in ("a", "bb", "a", "ccc"):
        cache.encode([text], missing=missing)

    missing.asked.clear()
    cache.encode(["a", "ccc", "bb"], missing=missing)

    assert missing.asked == ["bb"]
    assert len(cache) == 2


@pytest.mark.parametrize(("capacity", "text"), [(10, "x" * (LONGEST_KEY + 1)), (0, "tea")])
def test_very_long_texts_are_not_kept_and_a_cache_of_no_capacity_answers(capacity, text):
    cache = VectorCache(capacity)

    assert cache.encode([text], missing=Counted()).tolist() == [[len(text), 1]]
    assert cache.encode([], missing=Counted()).shape == (0, 2)
    assert len(cache) == 0


def test_many_threads_get_the_right_vectors():
    cache = VectorCache(5)
    texts = ["x" * (number * seed % 11) for number in range(300) for seed in (1, 3, 7, 9)]

    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda text: cache.encode([text], missing=Counted())[0, 0], texts)

    assert list(found) == [len(text) for text in texts]
    assert len(cache) == 5


def words(text):
    """One token a word, as (start, end)."""
    return [found.span() for found in re.finditer(r"\S+", text)]


def pieces(text, budget):
    spans = split_into_windows(text, budget=budget, tokenise=words)
    return [text[start:end] for start, end in spans]


SENTENCES = "One two three. Four five six. Seven eight nine ten."


@pytest.mark.parametrize(
    ("text", "budget", "windows"),
    [
        ("one two three", 3, ["one two three"]),
        ("", 3, [""]),
        (SENTENCES, 7, ["One two three. Four five six. ", "Seven eight nine ten."]),
        ("a b c d e f", 4, ["a b c d ", "e f"]),
        # A word longer than the look-ahead is not cut.
        ("x" * 1000 + " tail", 1, ["x" * 1000 + " ", "tail"]),
        (" " * 10_000_000, 4, [" " * 10_000_000]),
    ],
    ids=range(6),
)
def test_a_window_ends_where_a_sentence_ends_or_else_a_word(text, budget, windows):
    assert pieces(text, budget) == windows


@pytest.mark.parametrize(
    ("stops", "first_end", "second_start"),
    # The shared part begins with a sentence where it can.
    [((), "w28 w29 w30 w31", "w28 w29"), (("w29", "w31"), "w28 w29. w30 w31.", "w30 w31.")],
)
def test_windows_share_about_an_eighth_of_their_tokens(stops, first_end, second_start):
    text = " ".join(f"w{number}{'.' * (f'w{number}' in stops)}" for number in range(60))

    first, second = pieces(text, 32)[:2]

    assert first.split()[-4:] == first_end.split()
    assert second.split()[:2] == second_start.split()


def test_an_ideographic_full_stop_ends_a_sentence():
    def characters(text):
        return [(i, i + 1) for i in range(len(text))]

    text = "我喜欢猫。她喜欢狗。他们都好。"
    spans = split_into_windows(text, budget=7, tokenise=characters)

    assert [text[start:end] for start, end in spans] == ["我喜欢猫。", "她喜欢狗。", "他们都好。"]


@given(
    st.text(alphabet=st.sampled_from("ab .\n。!é\0😂"), max_size=400),
    st.integers(min_value=1, max_value=12),
)
def test_windows_cover_the_text_without_gaps_and_each_fits(text, budget):
    spans = split_into_windows(text, budget=budget, tokenise=words)

    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start <= end < next_end
    assert all(len(words(text[start:end])) <= budget for start, end in spans)
