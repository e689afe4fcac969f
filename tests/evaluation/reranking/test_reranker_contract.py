"""The rerankers that run here keep what every reranker must."""

import pytest
from tests.models.tiny_rerankers import write_overlap_reranker

from ekphory.models.onnx_reranker import OnnxReranker
from ekphory.models.reranker import bundled_reranker
from ekphory.testing.models import OverlapReranker
from ekphory.testing.reranker_contract import LargeInputRerankerContract, RerankerContract
from ekphory_lab.evaluation.reranking.contenders import Bm25Reranker


@pytest.fixture(scope="module")
def tiny_onnx(tmp_path_factory):
    return OnnxReranker(write_overlap_reranker(tmp_path_factory.mktemp("tiny")))


class TestOverlapReranker(RerankerContract, LargeInputRerankerContract):
    @pytest.fixture
    def reranker(self):
        return OverlapReranker()


class Bm25:
    @pytest.fixture
    def reranker(self):
        return Bm25Reranker(["Ann: The ferry leaves from the pier.", "Ben: I had soup."])


class Onnx:
    @pytest.fixture
    def reranker(self, tiny_onnx):
        return tiny_onnx


class Bundled:
    @pytest.fixture(params=["ekphory-rerank-small", "ekphory-rerank-tiny"])
    def reranker(self, request):
        return bundled_reranker(request.param)


class TestBm25Reranker(Bm25, RerankerContract):
    pass


class TestOnnxReranker(Onnx, RerankerContract):
    pass


class TestBundledReranker(Bundled, RerankerContract):
    pass


@pytest.mark.slow
class TestBm25RerankerWithMuch(Bm25, LargeInputRerankerContract):
    pass


@pytest.mark.slow
class TestOnnxRerankerWithMuch(Onnx, LargeInputRerankerContract):
    pass


@pytest.mark.long
class TestBundledRerankerWithMuch(Bundled, LargeInputRerankerContract):
    pass
