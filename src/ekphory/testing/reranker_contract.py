"""What every reranker must do, as tests to inherit."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.resources import files

import numpy as np

from ekphory.errors import EkphoryError
from ekphory.models.reranker import RelevanceScores, RerankingModel, RerankPassage, RerankQuery

_SENTENCES = files(__package__).joinpath("forty_languages.toml").read_text("utf-8")
FORTY_LANGUAGES: Mapping[str, str] = tomllib.loads(_SENTENCES)
"""A sentence in each of forty languages, by the language's code."""


# ruff: noqa: D102, S101  the name of a test is its sentence

TOLERANCE = 1e-4
"""How far a score may differ because of what is scored beside it."""

_QUERY = RerankQuery("Where does the ferry to the island leave?")
_TEXTS = (
    "Ann: The ferry to the island leaves from the old pier.",
    "Ben: I had soup for lunch.",
    "Ann: The island has two lighthouses and no shop.",
    "Ben: The pier was painted last spring, and the paint is already coming off in long strips "
    "that the gulls pull down to the water, which nobody in the office wants to hear about.",
    "Ann: No.",
    "Ben: My sister keeps bees on the roof of the library.",
)
_PASSAGES = tuple(map(RerankPassage, _TEXTS))
_UNUSUAL = (
    "nul \x00 and bell \x07",
    "a lone surrogate \ud83d",
    "🛶🛶🛶 👩‍👩‍👧‍👦",
    "مرحبا עולם",
    "[CLS] [SEP] <|im_end|> </s>",
    "e\u0301\u0301\u0301\u0301",
    "\u202eright to left",
    "tab\tand\r\nnew line",
    "word" * 500,
)


class RerankerContract:
    """What every reranker must do; to be inherited by a pytest class with a fixture `reranker`.

    Example:
        class TestMyReranker(RerankerContract):
            @pytest.fixture(scope="class")
            @classmethod
            def reranker(cls):
                return MyReranker("model")
    """

    def test_it_has_a_name_and_a_batch_size(self, reranker: RerankingModel) -> None:
        assert reranker.name.strip()
        assert reranker.batch_size >= 1

    def test_every_passage_gets_a_score_from_0_to_1(self, reranker: RerankingModel) -> None:
        scores = reranker.score(_QUERY, _PASSAGES)
        assert scores.shape == (len(_PASSAGES),)
        assert scores.dtype == np.float32
        assert _are_probabilities(scores)

    def test_no_passages_get_no_scores(self, reranker: RerankingModel) -> None:
        scores = reranker.score(_QUERY, [])
        assert scores.shape == (0,)
        assert scores.dtype == np.float32

    def test_one_passage_gets_one_score(self, reranker: RerankingModel) -> None:
        assert reranker.score(_QUERY, _PASSAGES[:1]).shape == (1,)

    def test_shuffled_passages_keep_their_scores(self, reranker: RerankingModel) -> None:
        order = np.random.default_rng(0).permutation(len(_PASSAGES))
        straight = reranker.score(_QUERY, _PASSAGES)
        shuffled = reranker.score(_QUERY, [_PASSAGES[place] for place in order])
        assert np.abs(shuffled - straight[order]).max() <= TOLERANCE

    def test_a_score_does_not_depend_on_its_batch(self, reranker: RerankingModel) -> None:
        together = reranker.score(_QUERY, _PASSAGES)
        alone = [reranker.score(_QUERY, [passage])[0] for passage in _PASSAGES]
        beside_long = reranker.score(_QUERY, [*_PASSAGES, RerankPassage("and so on " * 300)])
        assert np.abs(together - alone).max() <= TOLERANCE
        assert np.abs(together - beside_long[:-1]).max() <= TOLERANCE

    def test_equal_passages_get_equal_scores(self, reranker: RerankingModel) -> None:
        scores = reranker.score(_QUERY, [_PASSAGES[0]] * 3)
        assert np.ptp(scores) <= TOLERANCE

    def test_threads_get_the_scores_of_one_thread(self, reranker: RerankingModel) -> None:
        alone = reranker.score(_QUERY, _PASSAGES)
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _: reranker.score(_QUERY, _PASSAGES), range(8)))
        assert max(np.abs(scores - alone).max() for scores in found) <= TOLERANCE

    def test_everything_that_can_be_known_may_be_given(self, reranker: RerankingModel) -> None:
        moment = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
        query = RerankQuery("When was that?", ("user: Ann took the ferry.", "Yes."), now=moment)
        known = RerankPassage(_TEXTS[0], _TEXTS[1], _TEXTS[2], at=moment, type="episodic")
        assert _are_probabilities(reranker.score(query, [known, _PASSAGES[1]]))

    def test_an_empty_passage_is_scored_or_clearly_refused(self, reranker: RerankingModel) -> None:
        _check_scored_or_refused(reranker, _QUERY, ["", " \n"])

    def test_an_empty_question_is_answered_or_clearly_refused(
        self, reranker: RerankingModel
    ) -> None:
        _check_scored_or_refused(reranker, RerankQuery(""), _TEXTS)

    def test_forty_languages_are_scored_or_clearly_refused(self, reranker: RerankingModel) -> None:
        for sentence in FORTY_LANGUAGES.values():
            _check_scored_or_refused(reranker, RerankQuery(sentence), [sentence, _TEXTS[0]])

    def test_unusual_characters_are_scored_or_clearly_refused(
        self, reranker: RerankingModel
    ) -> None:
        for text in _UNUSUAL:
            _check_scored_or_refused(reranker, RerankQuery(text), [text, _TEXTS[0]])


class LargeInputRerankerContract:
    """What a reranker must do with much at once; to be inherited likewise, and marked as slow."""

    def test_ten_thousand_passages_are_scored(self, reranker: RerankingModel) -> None:
        passages = [RerankPassage(f"Ann: note {number}") for number in range(10_000)]
        scores = reranker.score(_QUERY, passages)
        assert scores.shape == (10_000,)
        assert _are_probabilities(scores)

    def test_a_passage_of_100_000_words_is_scored_or_clearly_refused(
        self, reranker: RerankingModel
    ) -> None:
        long = " ".join(f"word{number % 997}" for number in range(100_000))
        _check_scored_or_refused(reranker, _QUERY, [long, _TEXTS[0]])

    def test_a_question_of_100_000_words_is_answered_or_clearly_refused(
        self, reranker: RerankingModel
    ) -> None:
        _check_scored_or_refused(reranker, RerankQuery("where " * 100_000), _TEXTS)


def _check_scored_or_refused(
    reranker: RerankingModel, query: RerankQuery, texts: Sequence[str]
) -> None:
    try:
        scores = reranker.score(query, [RerankPassage(text) for text in texts])
    except EkphoryError as error:
        assert str(error).strip()
        return
    assert scores.shape == (len(texts),)
    assert _are_probabilities(scores)


def _are_probabilities(scores: RelevanceScores) -> bool:
    return bool(np.all((scores >= 0) & (scores <= 1)))
