from datetime import UTC, datetime

import pytest
from tests.training.reranker.rerank_examples import candidate

from ekphory.errors import DatasetError
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory_lab.training.reranker.examples import (
    Candidate,
    RerankExample,
    read_examples,
    write_examples,
)

WHOLE = RerankExample(
    "chats",
    RerankQuery("And when?", ("Did Ada move?", "Yes."), datetime(2024, 5, 8, 9, tzinfo=UTC)),
    (
        Candidate(
            RerankPassage("a", "b", "c", datetime(2023, 1, 2, tzinfo=UTC), "semantic"),
            True,
            "answer",
            1.25,
            0.5,
            True,
        ),
        candidate("d"),
    ),
    (0.98, 0.02),
)


def test_examples_are_read_as_they_were_written(tmp_path):
    write_examples([WHOLE], tmp_path / "examples.jsonl.gz")

    assert read_examples(tmp_path / "examples.jsonl.gz") == (WHOLE,)


def test_equal_examples_give_equal_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_examples([WHOLE, WHOLE], tmp_path / name)

    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_another_file_is_refused(tmp_path):
    import gzip

    path = tmp_path / "other.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "hello"}\n'))

    with pytest.raises(DatasetError, match="no examples for a reranker"):
        read_examples(path)
