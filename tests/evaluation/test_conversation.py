from datetime import UTC, datetime

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.datasets import Passage
from ekphory_lab.evaluation.loaders import load_conversation, load_multihop


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


def test_what_is_indexed_names_the_speaker(conversation_folder):
    dataset = load_conversation(conversation_folder)
    assert dataset.pools["b"][0].indexed_text == "Cid: I moved to Lisbon"


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


def test_a_judgement_of_an_unknown_passage_names_its_line(conversation_folder):
    with (conversation_folder / "qrels.tsv").open("a") as stream:
        stream.write("b\t0\tD9:9\t1\n")
    with pytest.raises(DatasetError, match=r"qrels\.tsv:7: passage 'D9:9' is not in pool 'b'"):
        load_conversation(conversation_folder)


def test_a_judgement_of_an_unknown_query_names_its_line(conversation_folder):
    with (conversation_folder / "qrels.tsv").open("a") as stream:
        stream.write("b\t77\tD1:1\t1\n")
    with pytest.raises(DatasetError, match=r"qrels\.tsv:7: query '77' of pool 'b'"):
        load_conversation(conversation_folder)


def test_a_query_that_is_there_twice_names_its_line(conversation_folder):
    with (conversation_folder / "queries.jsonl").open("a") as stream:
        stream.write('{"pool": "b", "id": "0", "text": "again"}\n')
    with pytest.raises(DatasetError, match=r"queries\.jsonl:5: query '0' is twice in 'b'"):
        load_conversation(conversation_folder)


def test_a_question_without_a_relevant_passage_is_left_out(conversation_folder):
    qrels = conversation_folder / "qrels.tsv"
    qrels.write_text(qrels.read_text().replace("b\t0\tD1:1\t1", "b\t0\tD1:1\t0"))
    dataset = load_conversation(conversation_folder)
    assert {query.pool for query in dataset.queries} == {"a"}
