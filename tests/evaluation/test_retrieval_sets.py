"""Any retrieval set: BEIR's and TREC's forms as they are met, and LMEB's."""

import gzip
import json

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.ablation import load_benchmark
from ekphory_lab.evaluation.loaders import has_pools, load_retrieval

DOCUMENTS = [
    {"id": "d1", "title": "Rates", "text": "The rate rose to 4 %."},
    {"id": "d2", "text": "Aspirin thins the blood.", "metadata": {"year": 2020}},
    {"id": "d3", "title": None, "text": "Bonds fell."},
]
QUERIES = [{"_id": "q1", "text": "What is the rate?"}, {"_id": "q2", "text": "What thins blood?"}]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(lines(DOCUMENTS))
    (tmp_path / "queries.jsonl").write_text(lines(QUERIES))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels.tsv", "query_id\tcorpus_id\tscore\nq1\td1\t2\nq2\td2\t1\n"),
        ("qrels.tsv", "q1\td1\t2\nq2\td2\t1\n"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\n"),
        ("qrels/dev.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\n"),
        ("qrels.txt", "q1 0 d1 2\nq2 0 d2 1\n"),
    ],
)
def test_qrels_are_read_in_the_forms_that_are_met(folder, name, content):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content)

    dataset = load_retrieval(folder)

    assert dataset.qrels == {("", "q1"): {"d1": 2}, ("", "q2"): {"d2": 1}}
    texts = [each.text for each in dataset.pools[""]]
    assert texts == ["Rates The rate rose to 4 %.", "Aspirin thins the blood.", "Bonds fell."]


def test_a_zipped_corpus_is_read_and_the_set_is_told_by_its_form(folder):
    (folder / "qrels.tsv").write_text("q1\td1\t1\n")
    content = (folder / "corpus.jsonl").read_bytes()
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(content))

    assert not has_pools(folder)
    found = load_benchmark(folder)
    assert found.main == "NDCG@10"
    assert [query.id for query in found.dataset.queries] == ["q1"]


def test_with_candidates_a_query_searches_its_scene_alone(folder):
    (folder / "queries.jsonl").write_text(
        lines([{"id": "q1", "text": "rate?", "scene_id": "bank"}, {"id": "q2", "text": "blood?"}])
    )
    (folder / "candidates.jsonl").write_text(
        lines(
            [
                {"scene_id": "bank", "candidate_doc_ids": ["d1", "d3"]},
                {"query_id": "q2", "candidate_doc_ids": ["d2", "d3"]},
            ]
        )
    )
    (folder / "qrels.tsv").write_text("query_id\tcorpus_id\tscore\nq1\td1\t1\nq2\td2\t1\n")

    dataset = load_benchmark(folder).dataset

    assert {pool: [each.id for each in found] for pool, found in dataset.pools.items()} == {
        "bank": ["d1", "d3"],
        "q2": ["d2", "d3"],
    }
    assert set(dataset.qrels) == {("bank", "q1"), ("q2", "q2")}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("qrels.tsv", "q1\td9\t1\n", r"qrels.tsv:1: passage 'd9' is not in pool"),
        ("qrels.tsv", "q1\td1\thigh\n", r"qrels.tsv:1: score='high'"),
        ("qrels.tsv", "q1\td1\n", r"qrels.tsv:1: 2 cells, not 3"),
        ("corpus.jsonl", '{"text": "no id"}\n', r"corpus.jsonl:1: _id=None: this field is missing"),
        (
            "candidates.jsonl",
            '{"scene_id": "bank", "candidate_doc_ids": ["d1"]}\n',
            r"queries.jsonl:1: scene_id=None: candidates.jsonl has no documents for it",
        ),
    ],
)
def test_a_damaged_line_is_named(folder, name, content, said):
    (folder / "qrels.tsv").write_text("q1\td1\t1\n")
    (folder / name).write_text(content)

    with pytest.raises(DatasetError, match=said):
        load_retrieval(folder)
