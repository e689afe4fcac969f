"""A small set and an embedder for the tests of the evaluation."""

import gzip
import shutil
from pathlib import Path

import pytest

from ekphory.testing import HashEmbedder

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
SETS = Path(__file__).parent / "sets"


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
    """Two conversations in the conversation form, compressed, with an adversarial question."""
    shutil.copytree(SETS / "chats", folder)
    corpus = folder / "corpus.jsonl"
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    corpus.unlink()
    return folder


def append_line(file, line):
    with file.open("a") as stream:
        stream.write(f"{line}\n")
