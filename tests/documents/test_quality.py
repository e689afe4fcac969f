import pytest

from ekphory.documents.blocks import LeftOut, Section
from ekphory.documents.passages import Passage, explain_exclusion, passages
from ekphory.documents.text import blocks_of


def reason(text, *kinds):
    kept = frozenset(kinds or ("paragraph",))
    return explain_exclusion(Passage(text, Section(), 1, 1, kept))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", "page number"),
        ("- 12 -", "page number"),
        ("Page 7 of 12", "page number"),
        ("Seite 7", "page number"),
        ("Yes.", "near-empty"),
        ("* * *", "near-empty"),
        ("© 2024 ACME. All rights reserved.", "boilerplate"),
        ("This page intentionally left blank", "boilerplate"),
        ("We use cookies to make this better for you.", "boilerplate"),
        ("Intro ........ 3\nUse ........ 7\nEnd .... 9", "table of contents"),
        ("a=b ---- ==== ____ //// ++++ |||| #### b=c", "mostly punctuation"),
        ("picture: " + "iVBORw0KGgo" * 40, "encoded data"),
    ],
)
def test_what_answers_no_question_is_left_out_with_the_reason(text, expected):
    assert reason(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The gate code is 4711.",
        "Wifi: hunter2",
        "猫は魚が好きです。",
        "Кот любит рыбу и молоко.",
        "القط يحب السمك كثيرا.",
        "แมวชอบกินปลามากและดื่มนม",
        "고양이는 생선을 좋아한다.",
        "Η γάτα αγαπά το ψάρι.",
        "In 2019 the company sold 1,204 boilers, 12 % more than in 2018.",
    ],
)
def test_a_plain_sentence_of_any_script_is_kept(text):
    assert reason(text) is None


def test_code_may_be_mostly_punctuation():
    assert reason("{{ (a) => [[b]], ... }} // -> ==> x y", "code") is None


def test_a_long_text_that_names_cookies_is_kept():
    assert reason("We use cookies. " + "The recipe needs two eggs and some flour. " * 12) is None


def test_one_word_below_its_heading_is_a_fact():
    (found,) = passages(blocks_of("## Port\n\n8080\n"))
    assert explain_exclusion(found) is None


def test_a_heading_with_nothing_below_it_is_left_out():
    assert [explain_exclusion(one) for one in passages(blocks_of("# A\n# B\n\nthe text\n"))] == [
        "heading alone",
        None,
    ]
    assert LeftOut("heading alone").reason == "heading alone"
