"""Near duplicates, by the words that two texts share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.retrieval.stages.weigh import drop_near_duplicates, jaccard, words


def kept(*texts, groups=None, threshold=0.85):
    given_groups = groups or ["doc"] * len(texts)
    return drop_near_duplicates(given_groups, [words(text) for text in texts], threshold=threshold)


def test_words_are_distinct_folded_and_of_three_letters_at_least():
    assert words("The cat, the CAT is at 042!") == {"the", "cat", "042"}


def test_the_similarity_is_the_share_of_common_words():
    assert jaccard(words("red green blue"), words("green blue black")) == pytest.approx(2 / 4)


def test_texts_without_words_are_alike():
    assert jaccard(words("!"), words("?")) == 1.0


def test_the_later_of_two_near_duplicates_goes():
    common = "one two three four five six seven eight nine ten"
    assert kept(common, f"{common} eleven", "something else entirely") == [0, 2]


def test_at_the_threshold_both_stay():
    assert kept("aaa bbb ccc", "aaa bbb ccc ddd", threshold=0.75) == [0, 1]


def test_other_groups_are_never_compared():
    assert kept("aaa bbb", "aaa bbb", groups=["one", "two"]) == [0, 1]


def test_what_has_no_group_is_compared_with_nothing():
    assert kept("aaa bbb", "aaa bbb", groups=[None, None]) == [0, 1]


@given(st.lists(st.frozensets(st.sampled_from("abcdef")), max_size=8), st.floats(0, 1))
def test_what_is_kept_is_like_nothing_that_was_kept_before(texts, threshold):
    expected = []
    for place, text in enumerate(texts):
        if all(jaccard(text, texts[before]) <= threshold for before in expected):
            expected.append(place)
    assert drop_near_duplicates(["doc"] * len(texts), texts, threshold=threshold) == expected
