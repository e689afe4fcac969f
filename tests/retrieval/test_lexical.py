"""What a text is indexed and searched by."""

from collections import Counter
from math import log
from zlib import crc32

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.retrieval.lexical import LexicalIndex, long_share, passage_terms, query_terms

CASES = read_cases(__file__)


def hashes(*terms):
    return sorted(crc32(term.encode()) for term in terms)


@pytest.mark.parametrize(("text", "terms"), CASES["passages"])
def test_a_passage_is_indexed_by_stems_and_pairs(text, terms):
    assert sorted(passage_terms(text).tolist()) == hashes(*terms)


def test_a_query_has_each_term_once_in_ascending_order_and_none_that_questions_are_made_of():
    assert query_terms("dog cat dog").tolist() == hashes("dog", "cat")
    assert query_terms("What did you do with the dog?").tolist() == hashes("dog")


@pytest.mark.parametrize(("question", "passage"), CASES["answers"])
def test_a_question_shares_a_term_with_its_answer(question, passage):
    assert set(query_terms(question).tolist()) & set(passage_terms(passage).tolist())


K1, B = 0.9, 0.3

passages = st.lists(st.lists(st.integers(0, 6), max_size=8), max_size=12)
queries = st.sets(st.integers(0, 8), max_size=4).map(sorted)


def columns(rows):
    terms = np.array([term for row in rows for term in row], np.uint32)
    return terms, np.array([len(row) for row in rows], np.int32)


def naive_bm25(rows, query):
    mean = max(sum(map(len, rows)) / len(rows), 1e-9) if rows else 1.0
    scores, bound = [0.0] * len(rows), 0.0
    for term in query:
        holders = sum(term in row for row in rows)
        if holders == 0:
            continue
        idf = log(1 + (len(rows) - holders + 0.5) / (holders + 0.5))
        bound += idf * (K1 + 1)
        for place, row in enumerate(rows):
            frequency = Counter(row)[term]
            length = 1 - B + B * len(row) / mean
            scores[place] += idf * frequency * (K1 + 1) / (frequency + K1 * length)
    return scores, bound


@settings(deadline=None)
@given(rows=passages, query=queries)
@example(rows=[], query=[1])
@example(rows=[[1], [2]], query=[8])
def test_every_score_is_that_of_the_formula_and_within_the_bound(rows, query):
    scores, bound = LexicalIndex.build(*columns(rows)).scores(np.array(query, np.uint32))
    expected, expected_bound = naive_bm25(rows, query)
    assert scores.tolist() == pytest.approx(expected, rel=1e-5)
    assert bound == pytest.approx(expected_bound)
    assert all(score <= bound + 1e-5 for score in scores)


@settings(deadline=None)
@given(parts=st.lists(passages, min_size=1, max_size=5), query=queries)
def test_an_extended_index_scores_as_one_built_at_once(parts, query):
    index = LexicalIndex.build(*columns(parts[0]))
    for part in parts[1:]:
        index = index.extended(*columns(part))
    at_once = LexicalIndex.build(*columns([row for part in parts for row in part]))
    wanted = np.array(query, np.uint32)
    assert index.scores(wanted)[0].tolist() == at_once.scores(wanted)[0].tolist()
    assert index.scores(wanted)[1] == at_once.scores(wanted)[1]


def test_extending_changes_neither_scores_nor_the_earlier_index():
    # Extending past the size of a merge changes no score.
    generator = np.random.default_rng(7)
    rows = [generator.integers(0, 50, size=5).tolist() for _ in range(1_500)]
    index = LexicalIndex.build(*columns(rows[:100]))
    for start in range(100, 1_500, 175):
        index = index.extended(*columns(rows[start : start + 175]))
    query = np.arange(10, dtype=np.uint32)
    at_once = LexicalIndex.build(*columns(rows))
    assert index.base_rows > 100
    assert index.scores(query)[0].tolist() == at_once.scores(query)[0].tolist()
    # Extending leaves the earlier index as it was.
    earlier = LexicalIndex.build(*columns([[1], [2]]))
    before = earlier.scores(np.array([1], np.uint32))[0].tolist()
    earlier.extended(*columns([[1], [1]]))
    assert earlier.scores(np.array([1], np.uint32))[0].tolist() == before


@pytest.mark.parametrize(
    ("length", "share"), [(5, 0.0), (20, 0.0), (60, 0.5), (100, 1.0), (400, 1.0)]
)
def test_a_scope_is_one_of_turns_or_of_documents_by_its_mean_length(length, share):
    assert long_share(length) == pytest.approx(share)
