"""One interface for every reranker, told with one that counts shared words."""

from datetime import UTC, datetime

import numpy as np
import pytest
from tests.cases import read_cases
from tests.models.tiny_rerankers import write_overlap_reranker
from tests.services.wire import running_service, says

from ekphory.errors import InvalidInput
from ekphory.models.agent_reranker import Reranker
from ekphory.models.model_record import CalibrationCard, RerankerRecord
from ekphory.models.reranker import RerankPassage, RerankQuery, bundled_name, read_documents
from ekphory.types import Hit, MemoryRecord

CASES = read_cases(__file__)

MAY = datetime(2023, 5, 8, tzinfo=UTC)
SAID = {"producer": "Ann", "type": "semantic"}
RECORD = MemoryRecord(id="m", text="I like tea", at=MAY, created_at=MAY, **SAID)


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    card = CalibrationCard(slope=1.0, intercept=-1.0)
    record, folder = RerankerRecord(name="tiny", calibration=card), tmp_path_factory.mktemp("onnx")
    return Reranker.from_pretrained(write_overlap_reranker(folder, record))


def test_a_directory_gives_calibrated_scores(reranker):
    # A directory gives calibrated scores and raw ones beside them.
    documents = ["a red dog", "a cat"]
    assert reranker.raw_scores("red dog", documents).tolist() == [2.0, 0.0]
    assert reranker.score("red dog", documents) == pytest.approx(1 / (1 + np.exp([-1, 1])))
    assert (reranker.name, reranker.is_calibrated, reranker.is_remote) == ("tiny", True, False)
    # Context is read before the question.
    context = [{"role": "user", "content": "I have a red dog"}]
    found = reranker.raw_scores("which?", ["the red dog"], context=context)
    assert found.tolist() == [2.0]
    # The bundled one is known through the wrapper.
    assert bundled_name(Reranker.from_pretrained()) == "ekphory-rerank-small"
    assert bundled_name(reranker) is None


def test_the_best_documents_come_first_and_equal_ones_as_they_were_given(reranker):
    ranked = reranker.rank("red dog", ["a cat", "red", "red dog", "the red"], top_n=3)
    found = [(each.index, each.document, each.raw_score) for each in ranked]
    assert found == [(2, "red dog", 2.0), (1, "red", 1.0), (3, "the red", 1.0)]
    assert ranked[0].score == pytest.approx(1 / (1 + np.exp(-1)))
    assert len(reranker.rank("red dog", ["a", "b"])) == 2


@pytest.mark.parametrize(
    "document",
    [
        RECORD,
        Hit("m", "I like tea", 0.5, {}, RECORD),
        RerankPassage("Ann: I like tea", at=MAY, type="semantic"),
        {"text": "I like tea", "at": "2023-05-08", **SAID},
        {"text": "I like tea", "at": MAY, "before": None, **SAID},
    ],
)
def test_a_memory_is_read_with_its_speaker_its_date_and_its_type(document):
    assert read_documents([document]) == [RerankPassage("Ann: I like tea", at=MAY, type="semantic")]


def test_a_dict_may_hold_the_turns_around_it():
    document = {"text": "b", "before": "Ann: a", "after": "Ann: c", "type": "unknown"}
    assert read_documents([document]) == [RerankPassage("b", "Ann: a", "Ann: c")]


@pytest.mark.parametrize(("documents", "problem"), CASES["no documents"])
def test_what_is_no_document_is_refused(documents, problem):
    with pytest.raises(InvalidInput, match=problem):
        read_documents(documents)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [*CASES["no questions"], ({"query": RerankQuery("a"), "now": "2026-01-01"}, "says itself")],
)
def test_a_question_that_cannot_be_asked_is_refused(reranker, arguments, problem):
    with pytest.raises(InvalidInput, match=problem):
        reranker.rank(documents=["b"], **arguments)


def test_a_service_is_asked_by_its_url_and_may_give_logits():
    answer = {"results": [{"index": 0, "relevance_score": 0.5}]}
    with running_service(lambda _: says(answer)) as service:
        named = {"protocol": "memos", "model": "memos-reranker-4b", "api_key": "k"}
        reranker = Reranker.from_pretrained(service.host, **named)
        scores = reranker.score("用户有哪些业余爱好", ["用户喜欢羽毛球"], instruction="Find.")
        by_logit = Reranker.from_pretrained(service.host, scores="logit")
        assert by_logit.score("tea", ["tea is warm"]).tolist() == pytest.approx([0.6225], abs=1e-4)
    assert (scores.tolist(), reranker.is_remote) == ([0.5], True)
    assert service.bodies[0]["query"] == "Find.\n用户有哪些业余爱好"
