import json
from dataclasses import replace

import pytest

from ekphory.errors import DatasetError, InvalidInput
from ekphory_lab.evaluation.datasets import ask_phrasings
from ekphory_lab.evaluation.loaders import load_conversation


@pytest.fixture
def folder(conversation_folder):
    query = {"pool": "a", "id": "7", "text": "Where did it sink?", "category": 4}
    query["phrasings"] = ["Where was the boat lost?", "Where did it sink?", "The boat sank where?"]
    with (conversation_folder / "queries.jsonl").open("a") as stream:
        stream.write(json.dumps(query) + "\n")
    with (conversation_folder / "qrels.tsv").open("a") as stream:
        stream.write("a\t7\tD1:2\t1\n")
    return conversation_folder


def test_the_first_phrasing_alone_is_what_a_set_holds(folder):
    dataset = load_conversation(folder)
    assert ask_phrasings(dataset, "first") is dataset
    assert [query.id for query in dataset.queries] == ["0", "1", "0", "7"]


def test_each_other_phrasing_becomes_a_query_with_the_same_relevant_passages(folder):
    dataset = ask_phrasings(load_conversation(folder), "all")
    assert [(query.id, query.text) for query in dataset.queries[3:]] == [
        ("7", "Where did it sink?"),
        ("7#2", "Where was the boat lost?"),
        ("7#3", "The boat sank where?"),
    ]
    assert dataset.qrels["a", "7#3"] == dataset.qrels["a", "7"] == {"D1:2": 1}


def test_a_wrong_label_is_wrong_in_every_phrasing(folder):
    dataset = replace(load_conversation(folder), label_errors=frozenset({("a", "7")}))
    asked = ask_phrasings(dataset, "all")
    assert asked.label_errors == {("a", "7"), ("a", "7#2"), ("a", "7#3")}


def test_a_set_without_other_phrasings_cannot_be_asked_all(conversation_folder):
    with pytest.raises(DatasetError, match="chats: no query has other phrasings"):
        ask_phrasings(load_conversation(conversation_folder), "all")


def test_another_choice_is_refused(folder):
    with pytest.raises(InvalidInput, match=r"phrasings='second': unknown\. Use first or all"):
        ask_phrasings(load_conversation(folder), "second")


def test_phrasings_that_are_no_texts_name_their_line(folder):
    queries = folder / "queries.jsonl"
    queries.write_text(queries.read_text().replace('"The boat sank where?"', "3"))
    with pytest.raises(DatasetError, match=r"queries\.jsonl:5: phrasings=.*a list of texts"):
        load_conversation(folder)


def test_the_temporal_set_has_3164_queries_in_all_phrasings(shared_data):
    dataset = load_conversation(shared_data / "temporal_dev")
    assert (len(dataset.queries), len(ask_phrasings(dataset, "all").queries)) == (1010, 3164)
