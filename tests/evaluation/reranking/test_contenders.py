import pytest

from ekphory.errors import InvalidInput
from ekphory.testing.models import OverlapReranker
from ekphory_lab.evaluation.reranking.contenders import load_contenders


def names(*specs):
    return [each.name for each in load_contenders(specs, load=lambda _: OverlapReranker())]


def test_the_first_stage_alone_always_comes_first():
    assert names("bm25", "none") == ["none", "bm25"]
    assert names() == ["none"]


def test_a_model_is_called_by_its_name_and_the_bundled_one_bundled():
    assert names("https://host/rerank", "bundled") == ["none", "overlap-reranker", "bundled"]


def test_a_model_in_a_directory_is_called_by_it(tmp_path):
    assert names(str(tmp_path)) == ["none", tmp_path.name]


def test_two_of_one_name_are_refused():
    with pytest.raises(InvalidInput, match="two called 'bm25'"):
        names("bm25", "bm25")
