"""Two conversations with their candidates, found with an embedder without weights."""

import pytest
from tests.evaluation.conftest import write_conversations

from ekphory.testing import HashEmbedder
from ekphory_lab.evaluation.loaders import load_conversation
from ekphory_lab.evaluation.reranking.candidates import find_candidates


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    return load_conversation(write_conversations(tmp_path_factory.mktemp("sets") / "chats"))


@pytest.fixture(scope="session")
def candidates(dataset):
    return find_candidates(dataset, embedder=HashEmbedder(dimension=64), top=3)
