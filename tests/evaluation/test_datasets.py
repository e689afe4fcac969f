import gzip
import json

import pytest
from tests.evaluation.conftest import SETS, append_line

from ekphory.errors import DatasetError, InvalidInput
from ekphory_lab.evaluation.datasets import Row, ask_phrasings, read_json_lines
from ekphory_lab.evaluation.loaders import load_conversation


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", b'{"id": "1"}\n\n{"id": \n', r"q\.jsonl:3: not JSON"),
        ("q.jsonl", b"[1]\n", r"q\.jsonl:1: not a JSON object"),
        ("q.jsonl", b'{"id": "\xff"}\n', r"q\.jsonl:1: not JSON"),
        (
            "q.gz",
            gzip.compress(b'{"id": "1"}\n' * 5, mtime=0)[:-6],
            r"q\.gz:\d+: the compressed file breaks",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named_with_file_and_number(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        list(read_json_lines(tmp_path / name))


def test_a_label_may_be_a_number():
    row = Row("queries.jsonl:1", {"category": 4, "kind": "order"})
    assert (row.label("category"), row.label("kind"), row.label("other")) == ("4", "order", "")
    # A text of another kind is named.
    for value in (None, 3, ["x"]):
        with pytest.raises(DatasetError, match=r"corpus\.jsonl:9: text=.*a text is needed"):
            Row("corpus.jsonl:9", {"text": value}).text("text")
    # An impossible moment is named.
    with pytest.raises(DatasetError, match="at='yesterday'"):
        Row("corpus.jsonl:1", {"at": "yesterday"}).moment("at")


@pytest.fixture
def folder(conversation_folder):
    query = {"pool": "a", "id": "7", "text": "Where did it sink?", "category": 4}
    query["phrasings"] = ["Where was the boat lost?", "Where did it sink?", "The boat sank where?"]
    append_line(conversation_folder / "queries.jsonl", json.dumps(query))
    append_line(conversation_folder / "qrels.tsv", "a\t7\tD1:2\t1")
    return conversation_folder


def test_the_first_phrasing_alone_is_what_a_set_holds(folder):
    dataset = load_conversation(folder)
    assert ask_phrasings(dataset, "first") is dataset
    assert [query.id for query in dataset.queries] == ["0", "1", "0", "7"]
    # Each other phrasing becomes a query with the same relevant passages.
    phrased = ask_phrasings(dataset, "all")
    assert [(query.id, query.text) for query in phrased.queries[3:]] == [
        ("7", "Where did it sink?"),
        ("7#2", "Where was the boat lost?"),
        ("7#3", "The boat sank where?"),
    ]
    assert phrased.qrels["a", "7#3"] == phrased.qrels["a", "7"] == {"D1:2": 1}


def test_other_phrasings_that_there_are_not_are_refused(folder):
    with pytest.raises(DatasetError, match="chats: no query has other phrasings"):
        ask_phrasings(load_conversation(SETS / "chats"), "all")
    # Another choice is refused.
    with pytest.raises(InvalidInput, match=r"phrasings='second': unknown\. Use first or all"):
        ask_phrasings(load_conversation(folder), "second")
    # Phrasings that are not texts name their line.
    queries = folder / "queries.jsonl"
    queries.write_text(queries.read_text().replace('"The boat sank where?"', "3"))
    with pytest.raises(DatasetError, match=r"queries\.jsonl:5: phrasings=.*a list of texts"):
        load_conversation(folder)


def test_the_temporal_set_has_3164_queries_in_all_phrasings(shared_data):
    dataset = load_conversation(shared_data / "temporal_dev")
    assert len(ask_phrasings(dataset, "all").queries) == 3164
