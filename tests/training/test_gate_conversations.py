import gzip
import json

import pytest
from tests.training.conversation_rows import PERSONA_ROW, SGD_ROW

from ekphory.errors import DatasetError
from ekphory_lab.training.gates import gate_conversations
from ekphory_lab.training.reranker.examples import part_of

TALK = {"speaker": "Ada", "text": "The remote control shall have a rubber case in two colours."}
MEETING = {
    "turns": [TALK, {"speaker": "Bo", "text": "I would rather have it made of wood, as before."}],
    "queries": [{"query": "What did Ada say about the case?", "spans": [["0", "0"]]}],
}
SUMMARY = {
    "summary": "Ada says the remote control shall have a rubber case.",
    "turns": [TALK],
}
FILES = {
    "synthetic_persona_chat": PERSONA_ROW,
    "sgd_train": SGD_ROW,
    "qmsum_train": MEETING,
    "crd3": SUMMARY,
}


def write_training_files(directory):
    for name, row in FILES.items():
        numbered = [{**row, "id": str(number)} for number in range(640)]
        text = "".join(json.dumps(each) + "\n" for each in numbered)
        (directory / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), 1))


@pytest.fixture
def folder(tmp_path):
    write_training_files(tmp_path)
    return tmp_path


def test_conversations_of_all_sources_compete_in_a_pool(folder):
    found = gate_conversations(folder, pools=1)
    assert {passage.id.partition(":")[0] for passage in found.pools["0"]} == set("012345")
    assert {query.category for query in found.queries} >= {"synthetic_persona_chat", "sgd", "qmsum"}


def test_turns_keep_their_speaker_and_their_session(folder):
    found = gate_conversations(folder, pools=1)
    turns = {passage.text: passage for passage in found.pools["0"]}
    assert turns[TALK["text"]].speaker == "Ada"
    assert turns[TALK["text"]].session is not None


def test_rows_that_rerankers_are_trained_on_are_left_out(folder):
    held_back = sum(part_of({**MEETING, "id": str(number)}) == "held_back" for number in range(640))
    found = gate_conversations(folder, pools=100)
    assert len(found.pools) <= held_back < 100


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match="synthetic_persona_chat"):
        gate_conversations(tmp_path)
