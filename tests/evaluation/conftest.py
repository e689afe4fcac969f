"""A small set and an embedder for the tests of the evaluation."""

import gzip
import json
from pathlib import Path

import pytest

from ekphory.testing.models import HashEmbedder

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture
def embedder():
    return HashEmbedder(dimension=64)


@pytest.fixture
def shared_data():
    """The folder of benchmark data beside the repository; skips where it is missing."""
    if not SHARED.is_dir():
        pytest.skip("benchmark data is not beside the repository (../shared/data)")
    return SHARED


@pytest.fixture
def conversation_folder(tmp_path):
    return write_conversations(tmp_path / "chats")


def write_conversations(folder):
    """Two conversations in the conversation form, with an adversarial question."""
    folder.mkdir()
    corpus = [
        ("a", "D1:1", "Ann", "I adopted a grey cat"),
        ("a", "D1:2", "Bob", "My boat sank in the harbour"),
        ("a", "D1:3", "Ann", "The cat sleeps all day"),
        ("b", "D1:1", "Cid", "I moved to Lisbon"),
        ("b", "D1:2", "Dan", "The train to Lisbon was late"),
    ]
    rows = [
        {
            "pool": pool,
            "id": turn,
            "speaker": speaker,
            "text": text,
            "at": "2024-05-01T10:00:00+00:00",
            "session": 1,
            "sequence": position,
        }
        for position, (pool, turn, speaker, text) in enumerate(corpus)
    ]
    with gzip.open(folder / "corpus.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    queries = [
        {"pool": "a", "id": "0", "text": "Who adopted a cat?", "category": 4},
        {"pool": "a", "id": "1", "text": "What happened to the boat?", "category": 1},
        {"pool": "a", "id": "2", "text": "Did Bob adopt a dog?", "category": 5},
        {"pool": "b", "id": "0", "text": "Who moved to Lisbon?", "category": 4},
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (folder / "qrels.tsv").write_text(
        "pool\tquery-id\tcorpus-id\tscore\n"
        "a\t0\tD1:1\t1\n"
        "a\t0\tD1:3\t1\n"
        "a\t1\tD1:2\t1\n"
        "a\t2\tD1:1\t1\n"
        "b\t0\tD1:1\t1\n"
    )
    return folder
