import gzip
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.evaluation.conftest import SETS, append_line

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.datasets import Passage
from ekphory_lab.evaluation.loaders import (
    evidence_ids,
    load_conversation,
    load_locomo,
    load_multihop,
    load_retrieval,
)
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import bm25_system


def test_a_document_is_its_title_and_its_text():
    dataset = load_retrieval(SETS / "documents")
    assert [passage.text for passage in dataset.pools[""]] == ["Cats They purr.", "Dogs bark."]
    # Only the queries of the test judgements are taken.
    assert [query.id for query in dataset.queries] == ["1"]
    # Graded judgements are kept.
    assert dataset.qrels == {("", "1"): {"d1": 2}}


def test_a_turn_keeps_who_said_it_when_and_where(conversation_folder):
    dataset = load_conversation(conversation_folder)
    assert dataset.pools["a"][1] == Passage(
        id="D1:2",
        text="My boat sank in the harbour",
        speaker="Bob",
        at=datetime(2024, 5, 1, 10, tzinfo=UTC),
        session="1",
        sequence=1,
    )
    # Adversarial questions of LoCoMo's numbering are left out.
    assert [query.category for query in dataset.queries] == ["4", "1", "4"]
    # An unknown set is unverified and named after its folder.
    assert (dataset.name, dataset.verified) == ("chats", False)
    assert dataset.source.licence == "not known"


def test_categories_asked_for_are_kept_and_no_others(conversation_folder):
    dataset = load_conversation(conversation_folder, categories={"5"})
    assert [query.id for query in dataset.queries] == ["2"]
    assert list(dataset.qrels) == [("a", "2")]
    # A category that no question has is an error.
    with pytest.raises(DatasetError, match="It has: 1, 4, 5"):
        load_conversation(conversation_folder, categories={"temporal"})
    # A set with categories of its own keeps all.
    queries = conversation_folder / "queries.jsonl"
    queries.write_text(queries.read_text().replace('"category": 1', '"category": "order"'))
    assert len(load_conversation(conversation_folder).queries) == 4


def test_the_multihop_form_needs_no_speakers_and_keeps_all_questions():
    dataset = load_multihop(SETS / "2wiki")
    assert dataset.pools["w"] == (Passage(id="Ann", text="Ann\nA queen."),)
    assert dataset.qrels == {("w", "q"): {"Ann": 1}}


def test_a_missing_file_is_an_error_that_tells_where_to_get_it(tmp_path):
    with pytest.raises(DatasetError, match=r"corpus\.jsonl\.gz: no such file.*github\.com"):
        load_conversation(tmp_path)


@pytest.mark.parametrize(
    ("file", "line", "problem"),
    [
        ("qrels.tsv", "b\t0\tD9:9\t1", "7: passage 'D9:9' is not in pool 'b'"),
        ("qrels.tsv", "b\t77\tD1:1\t1", "7: query '77' of pool 'b'"),
        ("qrels.tsv", "b\t0\tD1:1", "7: 3 cells, not 4"),
        ("queries.jsonl", '{"pool": "b", "id": "0", "text": "x"}', "5: query '0' is twice in 'b'"),
        ("corpus.jsonl", '{"pool": "b", "id": "D1:1", "text": "x"}', "6: id 'D1:1' is twice"),
    ],
)
def test_a_line_that_does_not_fit_the_others_is_named(conversation_folder, file, line, problem):
    packed = conversation_folder / "corpus.jsonl.gz"
    (conversation_folder / "corpus.jsonl").write_bytes(gzip.decompress(packed.read_bytes()))
    append_line(conversation_folder / file, line)
    with pytest.raises(DatasetError, match=rf"{file}:{problem}"):
        load_conversation(conversation_folder)


def test_a_question_without_a_relevant_passage_is_left_out(conversation_folder):
    qrels = conversation_folder / "qrels.tsv"
    qrels.write_text(qrels.read_text().replace("b\t0\tD1:1\t1", "b\t0\tD1:1\t0"))
    dataset = load_conversation(conversation_folder)
    assert {query.pool for query in dataset.queries} == {"a"}


KNOWN = {"D1:1", "D1:2", "D8:6", "D9:17", "D11:26"}


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (["D1:1"], ["D1:1"]),
        (["D8:6; D9:17"], ["D8:6", "D9:17"]),
        (["D1:1 D1:2"], ["D1:1", "D1:2"]),
        (["D:11:26"], ["D11:26"]),
        (["D1:02"], ["D1:2"]),
        (["D1:1", "D", "D1:2"], ["D1:1", "D1:2"]),
        (["D1:1", "D1:1"], ["D1:1"]),
        (["D10:19"], []),
        ([], []),
    ],
)
def test_evidence_is_cleaned(evidence, expected):
    assert evidence_ids(evidence, known=KNOWN) == expected


def test_the_caption_of_a_shared_photo_is_part_of_the_text():
    dataset = load_locomo(SETS / "locomo" / "locomo.json")
    assert dataset.pools["conv-1"][0].text == "Look! [shares a photo: a red kite]"
    # Questions without evidence in the conversation and adversarial ones are left out.
    assert [(query.id, query.text) for query in dataset.queries] == [("0", "What did Ann show?")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ((SETS / "locomo" / "locomo.json").read_text()[:-40], r"mine\.json"),
        ("[]", "no query has a relevant passage"),
    ],
    ids=["a file that breaks off", "a file without questions"],
)
def test_a_file_without_a_whole_question_is_an_error(tmp_path, content, said):
    (tmp_path / "mine.json").write_text(content)
    with pytest.raises(DatasetError, match=said):
        load_locomo(tmp_path / "mine.json")


def test_locomos_own_file_and_the_conversation_form_give_the_same(shared_data):
    own = load_locomo(shared_data / "locomo_dev" / "locomo.json")
    other = load_conversation(shared_data / "locomo_dev")
    assert own.pools == other.pools
    # The folder of the conversation form has no answers.
    assert tuple(replace(query, answers=()) for query in own.queries) == other.queries
    assert own.qrels == other.qrels


@pytest.mark.parametrize(
    ("load", "name", "queries", "passages"),
    [
        (load_conversation, "locomo_dev", 760, 2760),
        (load_conversation, "realtalk", 705, 8944),
        (load_conversation, "beam_100k", 355, 5732),
        (load_conversation, "temporal_dev", 1010, 3479),
        (load_retrieval, "scifact", 300, 5183),
        pytest.param(load_multihop, "2wiki_dev", 500, 8748, marks=pytest.mark.slow),
    ],
)
def test_the_sets_are_complete_and_verified(shared_data, load, name, queries, passages):
    dataset = load(shared_data / name)
    assert (dataset.name, dataset.verified) == (name, True)
    assert (len(dataset.queries), dataset.size) == (queries, passages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mean_average_precision", "recall"),
    [("locomo_dev", 0.383, 0.643), ("realtalk", 0.341, 0.546)],
)
def test_bm25_reaches_its_published_figures(shared_data, name, mean_average_precision, recall):
    estimates = evaluate(load_conversation(shared_data / name), bm25_system()).overall.scores
    assert estimates["MAP"].mean == pytest.approx(mean_average_precision, abs=0.001)
    assert estimates["R@20"].mean == pytest.approx(recall, abs=0.001)


@pytest.mark.parametrize(
    ("name", "title"),
    [("fiqa", "FiQA-2018"), ("nfcorpus", "NFCorpus"), ("scifact", "unknown set"), ("pets", "unkn")],
)
def test_a_set_without_known_hashes_is_named_by_its_folder_and_not_verified(tmp_path, name, title):
    shutil.copytree(SETS / "pets", tmp_path / name)
    dataset = load_retrieval(tmp_path / name)
    assert dataset.source.title.startswith(title)
    assert not dataset.verified
