"""What a text is indexed and searched by."""

from zlib import crc32

import pytest

from ekphory.retrieval.lexical import passage_terms, query_terms


def hashes(*terms):
    return sorted(crc32(term.encode()) for term in terms)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("running runs", ["run", "run"]),
        ("The dog and the cat", ["dog", "cat"]),
        ("Café Müller", ["cafe", "muller"]),
        ("cafe\u0301", ["cafe"]),
        ("STRASSE straße", ["strass", "strass"]),
        ("user_name v2.0", ["user", "name", "v2", "0"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("我", ["我"]),
        ("iPhone手機", ["iphon", "手機"]),
        ("ｆｕｌｌ １２", ["full", "12"]),
        ("😀 — !", []),
        ("", []),
    ],
)
def test_a_passage_is_indexed_by_stems_and_pairs(text, terms):
    assert sorted(passage_terms(text).tolist()) == hashes(*terms)


def test_a_repeated_word_of_a_passage_counts_each_time():
    assert passage_terms("dog dog dog").tolist() == hashes("dog") * 3


def test_a_query_has_each_term_once_in_ascending_order():
    assert query_terms("dog cat dog").tolist() == hashes("dog", "cat")


def test_the_words_that_questions_are_made_of_are_not_searched():
    assert query_terms("What did you do with the dog?").tolist() == hashes("dog")


def test_a_question_word_can_be_found_in_a_passage():
    assert passage_terms("when").tolist() == hashes("when")


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("Where do they live?", "We lived in Oslo"),
        ("resume", "My résumé is ready"),
        ("東京", "昨日、東京に行きました"),
        ("喜歡貓", "我喜歡貓和狗"),
        ("ช้าง", "ฉันเห็นช้าง"),
    ],
)
def test_a_question_shares_a_term_with_its_answer(question, passage):
    assert set(query_terms(question).tolist()) & set(passage_terms(passage).tolist())
