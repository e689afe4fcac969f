"""The window of a long passage that shares most words with the question."""

from hypothesis import given
from hypothesis import strategies as st

from ekphory.models.embedder import find_best_piece, find_best_tokens, list_distinct_words


def window(text, question, most):
    words = text.split(" ")
    starts = [len(" ".join(words[:place])) + (place > 0) for place in range(len(words))]
    offsets = [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]
    start, end = find_best_tokens(text, offsets, list_distinct_words(question), most=most)
    return " ".join(words[start:end])


def test_a_text_that_fits_is_taken_whole():
    assert window("a b c", "c", 3) == "a b c"


def test_the_words_of_the_question_stand_in_the_middle():
    assert window("a b c dog d e f", "DOG?", 3) == "c dog d"


def test_a_window_does_not_reach_over_either_end():
    assert window("dog b c d", "dog", 3) == "dog b c"
    assert window("a b c dog", "dog", 3) == "b c dog"


def test_distinct_words_count_and_not_repeated_ones():
    assert window("dog dog dog a b c red dog d", "red dog", 2) == "red dog"


def test_of_equally_good_windows_the_first_counts():
    assert window("a dog b c d e dog f", "dog", 3) == "a dog b"


def test_without_a_shared_word_the_beginning_is_taken():
    assert window("a b c d", "dog", 2) == "a b"


def test_words_of_several_tokens_are_kept_whole():
    offsets = [(0, 1), (2, 4), (4, 6), (7, 8)]
    assert find_best_tokens("a dogs b", offsets, list_distinct_words("dogs"), most=2) == (1, 3)


def test_a_long_text_is_first_cut_to_a_piece_with_the_words():
    piece = find_best_piece(
        "x " * 500 + "dog" + " y" * 500, list_distinct_words("dog"), most_tokens=2
    )
    assert (len(piece), "dog" in piece) == (128, True)


WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=40)


@given(WORDS, st.sets(st.sampled_from("abc")), st.integers(1, 9))
def test_no_other_window_holds_more_words(words, asked, most):
    found = window(" ".join(words), " ".join(sorted(asked)), most).split()
    windows = [words[start : start + most] for start in range(len(words))]
    assert len(found) == min(most, len(words))
    assert len(asked & set(found)) == max(len(asked & set(each)) for each in windows)
