import gzip
import json
from datetime import UTC, datetime

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.datasets import Passage
from ekphory_lab.evaluation.loaders import (
    evidence_ids,
    load_beir,
    load_conversation,
    load_locomo,
    load_multihop,
)
from ekphory_lab.evaluation.runner import evaluate
from ekphory_lab.evaluation.systems import bm25_system


@pytest.fixture
def beir_folder(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Cats", "text": "They purr."}\n'
        '{"_id": "d2", "title": "", "text": "Dogs bark."}\n'
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "who purrs", "metadata": {}}\n{"_id": "2", "text": "who barks"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n")
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n2\td2\t1\n")
    return tmp_path


def test_a_document_is_its_title_and_its_text(beir_folder):
    texts = [passage.text for passage in load_beir(beir_folder).pools[""]]
    assert texts == ["Cats They purr.", "Dogs bark."]


def test_only_the_queries_of_the_test_judgements_are_taken(beir_folder):
    assert [query.id for query in load_beir(beir_folder).queries] == ["1"]


def test_graded_judgements_are_kept(beir_folder):
    assert load_beir(beir_folder).qrels == {("", "1"): {"d1": 2}}


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


def test_adversarial_questions_of_locomos_numbering_are_left_out(conversation_folder):
    dataset = load_conversation(conversation_folder)
    assert [query.category for query in dataset.queries] == ["4", "1", "4"]


def test_categories_asked_for_are_kept_and_no_others(conversation_folder):
    dataset = load_conversation(conversation_folder, categories={"5"})
    assert [query.id for query in dataset.queries] == ["2"]
    assert list(dataset.qrels) == [("a", "2")]


def test_a_category_that_no_question_has_is_an_error(conversation_folder):
    with pytest.raises(DatasetError, match="It has: 1, 4, 5"):
        load_conversation(conversation_folder, categories={"temporal"})


def test_a_set_with_categories_of_its_own_keeps_all(conversation_folder):
    queries = conversation_folder / "queries.jsonl"
    queries.write_text(queries.read_text().replace('"category": 1', '"category": "order"'))
    assert len(load_conversation(conversation_folder).queries) == 4


def test_the_multihop_form_needs_no_speakers_and_keeps_all_questions(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"pool": "w", "id": "Ann", "text": "Ann\\nA queen."}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"pool": "w", "id": "q", "text": "Who?", "category": "bridge"}\n'
    )
    (tmp_path / "qrels.tsv").write_text("pool\tquery-id\tcorpus-id\tscore\nw\tq\tAnn\t1\n")
    dataset = load_multihop(tmp_path)
    assert dataset.pools["w"] == (Passage(id="Ann", text="Ann\nA queen."),)
    assert dataset.qrels == {("w", "q"): {"Ann": 1}}


def test_an_unknown_set_is_unverified_and_named_after_its_folder(conversation_folder):
    dataset = load_conversation(conversation_folder)
    assert (dataset.name, dataset.verified) == ("chats", False)
    assert dataset.source.licence == "not known"


def test_a_missing_file_is_an_error_that_tells_where_to_get_it(tmp_path):
    with pytest.raises(DatasetError, match=r"corpus\.jsonl\.gz: no such file.*github\.com"):
        load_conversation(tmp_path)


@pytest.mark.parametrize(
    ("file", "line", "problem"),
    [
        ("qrels.tsv", "b\t0\tD9:9\t1", "7: passage 'D9:9' is not in pool 'b'"),
        ("qrels.tsv", "b\t77\tD1:1\t1", "7: query '77' of pool 'b'"),
        ("queries.jsonl", '{"pool": "b", "id": "0", "text": "x"}', "5: query '0' is twice in 'b'"),
        ("corpus.jsonl", '{"pool": "b", "id": "D1:1", "text": "x"}', "6: id 'D1:1' is twice"),
    ],
)
def test_a_line_that_does_not_fit_the_others_is_named(conversation_folder, file, line, problem):
    packed = conversation_folder / "corpus.jsonl.gz"
    (conversation_folder / "corpus.jsonl").write_bytes(gzip.decompress(packed.read_bytes()))
    with (conversation_folder / file).open("a") as stream:
        stream.write(f"{line}\n")
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


@pytest.fixture
def locomo_file(tmp_path):
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ann", "text": "Look!", "blip_caption": "a red kite"},
            {"dia_id": "D1:2", "speaker": "Bob", "text": "Nice."},
        ],
    }
    questions = [
        {"question": "What did Ann show?", "answer": "a kite", "evidence": ["D1:1"], "category": 4},
        {"question": "Where?", "answer": "?", "evidence": ["D7:1"], "category": 3},
        {"question": "What did Bob show?", "evidence": ["D1:2"], "category": 5},
    ]
    file = tmp_path / "mine.json"
    file.write_text(
        json.dumps([{"sample_id": "conv-1", "conversation": conversation, "qa": questions}])
    )
    return file


def test_the_caption_of_a_shared_photo_is_part_of_the_text(locomo_file):
    first = load_locomo(locomo_file).pools["conv-1"][0]
    assert first.text == "Look! [shares a photo: a red kite]"


def test_questions_without_evidence_in_the_conversation_and_adversarial_ones_are_left_out(
    locomo_file,
):
    dataset = load_locomo(locomo_file)
    assert [(query.id, query.text) for query in dataset.queries] == [("0", "What did Ann show?")]


def test_a_file_that_breaks_off_is_an_error(locomo_file):
    locomo_file.write_text(locomo_file.read_text()[:-40])
    with pytest.raises(DatasetError, match=r"mine\.json"):
        load_locomo(locomo_file)


def test_a_file_without_questions_is_an_error(tmp_path):
    file = tmp_path / "empty.json"
    file.write_text("[]")
    with pytest.raises(DatasetError, match="no query has a relevant passage"):
        load_locomo(file)


def test_locomos_own_file_and_the_conversation_form_give_the_same(shared_data):
    own = load_locomo(shared_data / "locomo_dev" / "locomo.json")
    other = load_conversation(shared_data / "locomo_dev")
    assert own.pools == other.pools
    assert own.queries == other.queries
    assert own.qrels == other.qrels


@pytest.mark.parametrize(
    ("load", "name", "queries", "passages"),
    [
        (load_conversation, "locomo_dev", 760, 2760),
        (load_conversation, "realtalk", 705, 8944),
        (load_conversation, "beam_100k", 355, 5732),
        (load_conversation, "temporal_dev", 1010, 3479),
        (load_beir, "scifact", 300, 5183),
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
    estimates = evaluate(load_conversation(shared_data / name), bm25_system()).overall.estimates
    assert estimates["MAP"].mean == pytest.approx(mean_average_precision, abs=0.001)
    assert estimates["R@20"].mean == pytest.approx(recall, abs=0.001)
