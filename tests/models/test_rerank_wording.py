"""Question and passage in plain words, for models that read two texts."""

from datetime import UTC, datetime

import pytest

from ekphory.models.reranker import RerankPassage, RerankQuery, format_passage, format_query

MAY = datetime(2023, 5, 8, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (RerankQuery("who?"), "who?"),
        (RerankQuery("who?", now=MAY), "Asked on 8 May 2023: who?"),
        (RerankQuery("who?", ("Ann: hi", "Bob: ho")),
         "The dialogue so far:\nAnn: hi\nBob: ho\nAsked: who?"),
        (RerankQuery("who?", ("hi",), MAY),
         "The dialogue so far:\nhi\nAsked on 8 May 2023: who?"),
        (RerankQuery("who?", instruction="Find people."), "who?"),
    ],
)  # fmt: skip
def test_what_is_known_stands_before_the_question(query, words):
    assert format_query(query) == words


@pytest.mark.parametrize(
    ("passage", "words"),
    [
        (RerankPassage("Ann: hi", before="Bob: ho", after="Bob: ha"), "Ann: hi"),
        (RerankPassage("Ann: hi", at=MAY), "[8 May 2023] Ann: hi"),
        (RerankPassage("Ann: hi", type="semantic"), "[semantic memory] Ann: hi"),
        (
            RerankPassage("Ann: hi", at=MAY, type="episodic"),
            "[8 May 2023, episodic memory] Ann: hi",
        ),
        (RerankPassage("Ann: hi", type="unknown"), "Ann: hi"),
    ],
)
def test_date_and_type_stand_before_the_passage_and_neighbours_do_not(passage, words):
    assert format_passage(passage) == words
