"""A reranker that knows Chinese orders Chinese rightly, in Python and over HTTP."""

import httpx
import pytest
from tests.models.chinese_reranker import write_chinese_reranker
from tests.server.running import models, running_server

from ekphory.models.agent_reranker import Reranker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
QUESTION = "用户有哪些业余爱好"
HOBBY, WORK = "用户喜欢羽毛球", "用户在杭州做前端开发"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_chinese_reranker(tmp_path_factory.mktemp("chinese"))


def test_the_hobby_answers_the_question_for_hobbies(directory):
    ranked = Reranker.from_pretrained(directory).rank(QUESTION, [WORK, HOBBY])

    assert [each.document for each in ranked] == [HOBBY, WORK]
    assert ranked[0].score > 0.5 > ranked[1].score


def test_memos_own_request_is_answered_by_it(directory, tmp_path):
    body = {
        "model": "memos-reranker-0.6b",
        "query": QUESTION,
        "documents": [WORK, HOBBY],
        "top_n": 3,
    }
    with running_server(
        tmp_path, used=models(reranker=Reranker.from_pretrained(directory))
    ) as server:
        answer = httpx.post(f"{server.url}/api/openmem/v1/rerank", json=body, timeout=60).json()

    assert [each["document"]["text"] for each in answer["results"]] == [HOBBY, WORK]
