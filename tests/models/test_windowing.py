import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ekphory.models.embedder import split_into_windows


def words(text):
    """One token a word, as (start, end)."""
    return [found.span() for found in re.finditer(r"\S+", text)]


def pieces(text, budget):
    return [
        text[start:end] for start, end in split_into_windows(text, budget=budget, tokenise=words)
    ]


def test_a_text_that_fits_is_one_window():
    assert pieces("one two three", 3) == ["one two three"]


def test_an_empty_text_is_one_empty_window():
    assert pieces("", 3) == [""]


def test_a_window_ends_where_a_sentence_ends():
    text = "One two three. Four five six. Seven eight nine ten."

    assert pieces(text, 7) == ["One two three. Four five six. ", "Seven eight nine ten."]


def test_a_window_ends_between_words_where_no_sentence_ends():
    assert pieces("a b c d e f", 4) == ["a b c d ", "e f"]


def test_windows_share_about_an_eighth_of_their_tokens():
    text = " ".join(f"w{number}" for number in range(60))

    first, second = pieces(text, 32)[:2]

    assert first.split()[-4:] == ["w28", "w29", "w30", "w31"]
    assert second.split()[:4] == ["w28", "w29", "w30", "w31"]


def test_the_shared_part_begins_with_a_sentence_where_it_can():
    text = " ".join(f"w{number}" for number in range(60)).replace("w29", "w29.")

    first, second = pieces(text.replace("w31", "w31."), 32)[:2]

    assert first.split()[-1] == "w31."
    assert second.split()[0] == "w30"


def test_an_ideographic_full_stop_ends_a_sentence():
    def characters(text):
        return [(i, i + 1) for i in range(len(text))]

    text = "我喜欢猫。她喜欢狗。他们都好。"
    spans = split_into_windows(text, budget=7, tokenise=characters)

    assert [text[start:end] for start, end in spans] == ["我喜欢猫。", "她喜欢狗。", "他们都好。"]


def test_a_word_longer_than_the_look_ahead_is_not_cut():
    text = "x" * 1000 + " tail"

    assert pieces(text, 1) == ["x" * 1000 + " ", "tail"]


def test_ten_megabytes_of_blanks_are_one_window():
    assert pieces(" " * 10_000_000, 4) == [" " * 10_000_000]


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
