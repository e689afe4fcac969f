"""A reranker that is asked for each pair once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ekphory.errors import ServiceError
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_reranker
from ekphory.retrieval.calibration import reranker_probabilities
from ekphory.testing.models import OverlapReranker
from ekphory_lab.evaluation.configurations import RememberingReranker

QUERY = RerankQuery("who has a grey cat")
CAT, BOAT, TRAIN = (
    RerankPassage("I adopted a grey cat"),
    RerankPassage("My boat sank in the harbour"),
    RerankPassage("The train to Lisbon was late"),
)


class CountingReranker(OverlapReranker):
    """Keeps the texts that it reads."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def score(self, query, passages, /):
        self.texts += [passage.text for passage in passages]
        return super().score(query, passages)


class FailingOnce(OverlapReranker):
    """Fails the first time that it is asked."""

    failed = False

    def score(self, query, passages, /):
        if not self.failed:
            self.failed = True
            raise ServiceError("the service is gone")
        return super().score(query, passages)


def test_only_unknown_passages_are_read():
    model = CountingReranker()
    reranker = RememberingReranker(model)
    reranker.score(QUERY, [CAT, BOAT])
    scores = reranker.score(QUERY, [TRAIN, BOAT, CAT])
    assert model.texts == [CAT.text, BOAT.text, TRAIN.text]
    assert scores.tolist() == OverlapReranker().score(QUERY, [TRAIN, BOAT, CAT]).tolist()
    assert reranker.remembered == 2


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        (RerankQuery(QUERY.text, context=("Ann: I like cats",)), CAT),
        (RerankQuery(QUERY.text, instruction="names count"), CAT),
        (QUERY, RerankPassage(CAT.text, before=BOAT.text)),
        (QUERY, RerankPassage(CAT.text, type="semantic")),
    ],
)
def test_whatever_a_model_reads_beside_the_texts_makes_another_pair(query, passage):
    reranker = RememberingReranker(OverlapReranker())
    reranker.score(QUERY, [CAT])
    reranker.score(query, [passage])
    assert reranker.remembered == 0


def test_threads_that_ask_for_the_same_pairs_have_them_read_once():
    model = CountingReranker()
    reranker = RememberingReranker(model)
    passages = [RerankPassage(f"row {n}") for n in range(50)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: reranker.score(QUERY, passages), range(16)))
    assert len(model.texts) == 50
    assert reranker.remembered == 15 * 50


def test_what_a_failed_call_asked_for_is_read_the_next_time():
    reranker = RememberingReranker(FailingOnce())
    with pytest.raises(ServiceError):
        reranker.score(QUERY, [CAT])
    assert reranker.score(QUERY, [CAT]).tolist() == pytest.approx([3 / 5])
    assert reranker.remembered == 0


def test_no_passages_have_no_scores():
    assert RememberingReranker(OverlapReranker()).score(QUERY, []).shape == (0,)


def test_the_bundled_reranker_gives_the_same_probabilities_and_raw_scores():
    bundled = bundled_reranker()
    reranker = RememberingReranker(bundled)
    reranker.score(QUERY, [BOAT])
    judged, expected = (each.judge(QUERY, [CAT, BOAT, TRAIN]) for each in (reranker, bundled))
    assert (judged.scores == expected.scores).all()
    assert (judged.raw == expected.raw).all()
    assert judged.scores.dtype == np.float32


def test_scores_stay_probabilities_only_where_the_model_was_calibrated():
    scores = np.array([0.25], np.float32)
    calibrated = RememberingReranker(bundled_reranker())
    assert reranker_probabilities(calibrated, scores).tolist() == [0.25]
    assert reranker_probabilities(RememberingReranker(OverlapReranker()), scores) is None
