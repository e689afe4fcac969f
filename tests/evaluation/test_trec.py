import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.loaders import (
    key_of,
    load_conversation,
    read_run,
    topic_of,
    write_qrels,
    write_run,
)
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import ScoringSystem


@pytest.fixture
def report(conversation_folder):
    all_equal = ScoringSystem("my system", {}, lambda texts: lambda _: np.full(len(texts), 0.5))
    return evaluate(load_conversation(conversation_folder), all_equal)


def test_a_run_comes_back_in_its_order_although_scores_tie(report, tmp_path):
    write_run(report, tmp_path / "x.run")
    rankings = {
        key: [passage for passage, _ in ranking]
        for key, ranking in read_run(tmp_path / "x.run").items()
    }
    three = ["D1:1", "D1:2", "D1:3"]
    assert rankings == {("a", "0"): three, ("a", "1"): three, ("b", "0"): ["D1:1", "D1:2"]}


def test_written_scores_fall_strictly_with_the_rank(report, tmp_path):
    write_run(report, tmp_path / "x.run")
    first, second = read_run(tmp_path / "x.run")["b", "0"]
    assert first[1] == 0.5
    assert 0.4999 < second[1] < 0.5


def test_a_line_has_the_six_columns_of_trec(report, tmp_path):
    write_run(report, tmp_path / "x.run")
    line = (tmp_path / "x.run").read_text().splitlines()[0]
    assert line == "a/0 Q0 D1:1 1 0.5 my%20system"


def test_qrels_go_with_the_run(report, tmp_path):
    write_qrels(report.dataset, tmp_path / "x.qrels")
    assert (tmp_path / "x.qrels").read_text() == (
        "a/0 0 D1:1 1\na/0 0 D1:3 1\na/1 0 D1:2 1\nb/0 0 D1:1 1\n"
    )


def test_a_pool_without_a_name_leaves_the_topic_bare():
    assert topic_of(("", "301")) == "301"


@given(pool=st.text(), query_id=st.text())
def test_every_topic_names_its_query_and_has_no_space(pool, query_id):
    topic = topic_of((pool, query_id))
    assert key_of(topic) == (pool, query_id)
    assert not topic or topic.split() == [topic]


@pytest.mark.parametrize("line", ["a/0 Q0 D1:2 1 0.5", "a/0 Q0 D1:2 first 0.5 x"])
def test_a_broken_line_is_named(line, tmp_path):
    (tmp_path / "x.run").write_text(f"a/0 Q0 D1:1 1 0.9 x\n{line}\n")
    with pytest.raises(DatasetError, match=r"x\.run:2"):
        read_run(tmp_path / "x.run")
