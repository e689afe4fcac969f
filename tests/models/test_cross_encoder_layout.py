"""What the bundled cross-encoder reads, token by token."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from ekphory.errors import ModelError
from ekphory.models.model_record import TOKENIZER_FILE
from ekphory.models.onnx_embedder import load_bundled
from ekphory.models.onnx_reranker import (
    MOST_NEIGHBOUR_TOKENS,
    MOST_QUERY_TOKENS,
    MOST_TARGET_TOKENS,
    MOST_TOKENS,
    CrossEncoderLayout,
)
from ekphory.models.reranker import RerankPassage, RerankQuery

TOKENIZER = Tokenizer.from_file(str(load_bundled().directory / TOKENIZER_FILE))
LAYOUT = CrossEncoderLayout(TOKENIZER)
MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def read(query, passage):
    """The tokens as the model reads them, with a bar where the type id changes."""
    (pair,) = LAYOUT.pairs(query, [passage])
    tokens = [TOKENIZER.id_to_token(each) for each in pair.ids]
    border = pair.type_ids.index(1)
    assert pair.type_ids == [0] * border + [1] * (len(pair.ids) - border)
    return " ".join([*tokens[:border], "|", *tokens[border:]])


def test_a_turn_is_read_with_its_date_and_its_neighbours():
    passage = RerankPassage("Ann: to lisbon", before="Bob: where", after="Bob: nice", at=MAY)
    assert read(RerankQuery("where to?"), passage) == (
        "[CLS] where to ? [SEP] | ann : to lisbon ( 8 may 202 ##3 ) [SEP]"
        " bob : where [SEP] bob : nice [SEP]"
    )


def test_the_dialogue_before_the_question_stands_before_it():
    query = RerankQuery("when was that?", context=("Ann: I ran", "Bob: great"))
    assert read(query, RerankPassage("a")) == (
        "[CLS] ann : i ran / bob : great / when was that ? [SEP] | a [SEP]"
    )


@pytest.mark.parametrize(
    ("before", "after", "tail"),
    [
        (None, None, "a [SEP]"),
        ("b", None, "a [SEP] b [SEP]"),
        (None, "c", "a [SEP] [SEP] c [SEP]"),
        ("b", "c", "a [SEP] b [SEP] c [SEP]"),
    ],
)
def test_a_neighbour_that_is_missing_leaves_no_part_but_before_another(before, after, tail):
    assert read(RerankQuery("q"), RerankPassage("a", before, after)) == f"[CLS] q [SEP] | {tail}"


def test_an_empty_question_and_an_empty_passage_are_empty_parts():
    assert read(RerankQuery(""), RerankPassage("")) == "[CLS] [SEP] | [SEP]"


def test_a_marker_in_a_stored_text_is_text():
    assert read(RerankQuery("q"), RerankPassage("a [SEP] b")) == (
        "[CLS] q [SEP] | a [ sep ] b [SEP]"
    )


def test_of_a_long_dialogue_its_end_is_read_and_the_question_whole():
    query = RerankQuery("who is it ?", context=("one " * 100, "two " * 50))
    asked = read(query, RerankPassage("a")).split(" [SEP] |")[0].split()[1:]
    assert asked == ["one"] * 8 + ["/"] + ["two"] * 50 + ["/", "who", "is", "it", "?"]


def test_of_a_long_question_the_beginning_is_read_and_no_dialogue():
    query = RerankQuery("why " + "so " * 100, context=("one",))
    asked = read(query, RerankPassage("a")).split(" [SEP] |")[0].split()[1:]
    assert asked == ["why"] + ["so"] * 63


def test_of_a_long_passage_the_window_with_the_questions_words_is_read_and_the_date_kept():
    passage = RerankPassage("well " * 300 + "the red dog ran " + "and " * 300, at=MAY)
    target = read(RerankQuery("red dog?"), passage).split("| ")[1].split()
    assert len(target) == MOST_TARGET_TOKENS + 1
    assert target[-8:] == ["and", "(", "8", "may", "202", "##3", ")", "[SEP]"]
    assert target[58:64] == ["well", "the", "red", "dog", "ran", "and"]


def test_of_the_turn_before_the_end_is_read_and_of_the_turn_after_the_beginning():
    passage = RerankPassage("a", before="one " * 50 + "two", after="three " + "four " * 50)
    parts = read(RerankQuery("q"), passage).split(" [SEP]")
    assert parts[2].split() == ["one"] * 11 + ["two"]
    assert parts[3].split() == ["three"] + ["four"] * 11


def test_a_passage_of_many_words_is_cut_before_it_is_tokenised():
    passage = RerankPassage("word " * 200_000 + "the red dog")
    target = read(RerankQuery("red dog"), passage).split("| ")[1]
    assert target.endswith("word the red dog [SEP]")


REPEATED = st.builds(lambda text, n: text * n, st.text(max_size=9), st.integers(0, 99))
TEXT = st.text(max_size=300) | REPEATED


@given(TEXT, st.lists(TEXT, max_size=3), TEXT, st.none() | TEXT, st.none() | TEXT)
def test_whatever_is_read_keeps_its_bounds_and_its_marks(asked, context, text, before, after):
    query = RerankQuery(asked, context=tuple(context))
    (pair,) = LAYOUT.pairs(query, [RerankPassage(text, before, after, at=MAY)])
    parts = "".join("." if each == 102 else "x" for each in pair.ids).split(".")
    assert len(pair.ids) == len(pair.type_ids) <= MOST_TOKENS
    assert (pair.ids[0], pair.ids[-1], pair.ids.count(101)) == (101, 102, 1)
    assert pair.type_ids == sorted(pair.type_ids)
    limits = [MOST_QUERY_TOKENS + 1, MOST_TARGET_TOKENS, *[MOST_NEIGHBOUR_TOKENS] * 2, 0]
    assert all(len(part) <= most for part, most in zip(parts, limits, strict=False))


def test_the_tokenizer_that_is_given_stays_as_it_is():
    given = Tokenizer.from_str(TOKENIZER.to_str())
    given.enable_truncation(3)
    (pair,) = CrossEncoderLayout(given).pairs(RerankQuery("a b c d"), [RerankPassage("e")])
    assert len(pair.ids) == 8
    assert (given.truncation["max_length"], given.encode_special_tokens) == (3, False)


def test_a_tokenizer_without_the_marks_is_refused():
    with pytest.raises(ModelError, match=r"knows no \[CLS\]"):
        CrossEncoderLayout(Tokenizer(models.BPE()))
