from hypothesis import given
from hypothesis import strategies as st

from ekphory.documents.blocks import Block, estimate_tokens
from ekphory.documents.passages import cut

SIGNS = st.sampled_from(list("ab .!?\n-字。、👩\u200d\u0301"))
LONG_TEXTS = st.text(SIGNS, min_size=1, max_size=400).filter(str.strip)
KINDS = st.sampled_from(["paragraph", "list", "table", "code"])


def pieces(text, limit=10, kind="paragraph"):
    block = Block(text, kind, 1, 1 + text.count("\n"), verbatim=True)
    return list(cut(block, limit))


def texts(text, limit=10, kind="paragraph"):
    return [piece.text for piece in pieces(text, limit, kind)]


@given(LONG_TEXTS, KINDS, st.integers(5, 60))
def test_no_character_but_blanks_is_lost(text, kind, limit):
    assert "".join("".join(texts(text, limit, kind)).split()) == "".join(text.split())


@given(st.text(st.sampled_from(list("ab .!?\n-字。、")), min_size=1), KINDS, st.integers(5, 60))
def test_no_piece_is_longer_than_the_limit(text, kind, limit):
    assert all(estimate_tokens(piece) <= limit for piece in texts(text, limit, kind))


@given(LONG_TEXTS, KINDS)
def test_the_lines_of_a_piece_are_where_its_text_is(text, kind):
    lines = text.split("\n")
    for piece in pieces(text, kind=kind):
        there = "\n".join(lines[piece.first - 1 : piece.last])
        assert piece.text in there


def test_a_paragraph_is_cut_after_sentences():
    assert texts("The roof is new. It was made in May. The cellar is dry!", limit=10) == [
        "The roof is new. It was made in May.",
        "The cellar is dry!",
    ]


def test_chinese_and_japanese_are_cut_after_their_full_stops():
    assert texts("猫は魚が好きです。夜は庭で遊びます。", limit=10) == [
        "猫は魚が好きです。",
        "夜は庭で遊びます。",
    ]


def test_a_sentence_that_is_too_long_is_cut_between_words():
    assert texts("one two three four five six", limit=4) == ["one two three", "four five six"]


def test_pieces_have_about_equal_lengths():
    sentences = "Every word of it counts here. " * 11
    lengths = [len(text) for text in texts(sentences, limit=75)]
    assert max(lengths) - min(lengths) <= len("Every word of it counts here. ")


def test_a_list_is_cut_before_an_item_and_not_inside_one():
    items = "- the first item\n  goes on\n- the second item\n  goes on too"
    assert texts(items, limit=8, kind="list") == [
        "- the first item\n  goes on",
        "- the second item\n  goes on too",
    ]


def test_code_is_cut_at_blank_lines_before_it_is_cut_at_others():
    code = "def one():\n    return 1\n\ndef two():\n    return 2"
    assert texts(code, limit=8, kind="code") == [
        "def one():\n    return 1",
        "def two():\n    return 2",
    ]


def test_an_emoji_of_several_signs_stays_whole():
    family = "👩\u200d👩\u200d👧"
    assert set("".join(texts(family * 30, limit=5)).split(family)) == {""}
    assert all(text.startswith("👩") for text in texts(family * 30, limit=5))


def test_only_the_first_piece_does_not_continue_another():
    assert [piece.continues for piece in pieces("One is here. Two is there.", limit=4)] == [
        False,
        True,
    ]
