import hashlib
import json

import pytest

from ekphory.errors import ModelError
from ekphory.models.model_record import (
    ModelRecord,
    content_revision,
    read_checked,
    read_record,
    write_record,
)

WRITTEN = {"licence": "MIT", "source": "here", "made_by": {"quantisation": "int8"}}
FILES = {"model.onnx": "00", "tokenizer.json": "11"}
SIZES = {"dimension": 8, "max_tokens": 16}
RECORD = ModelRecord(
    name="small", revision="a", query_prompt="q: ", files=FILES, **SIZES, **WRITTEN
)


def test_a_record_comes_back_as_it_was_written_with_the_prompts_together(tmp_path):
    write_record(RECORD, tmp_path)

    assert read_record(tmp_path) == RECORD
    content = json.loads((tmp_path / "model.json").read_text())
    assert content["prompts"] == {"query": "q: ", "passage": ""}


@pytest.mark.parametrize(
    "content", [None, "", "[]", "null", "{}", '{"format": 2}', '{"format": 1, "files": {}}', "\x00"]
)
def test_a_missing_or_broken_record_is_refused_with_the_remedy(tmp_path, content):
    if content is not None:
        (tmp_path / "model.json").write_text(content)

    with pytest.raises(ModelError, match=r"model\.json.*Export the model again"):
        read_record(tmp_path)


def test_a_changed_file_is_refused_and_another_prompt_another_revision(tmp_path):
    # A changed file is refused.
    path = tmp_path / "model.onnx"
    path.write_bytes(b"cut sho")

    with pytest.raises(ModelError, match="7 bytes"):
        read_checked(path, hashlib.sha256(b"cut short").hexdigest())
    # Another prompt is another revision.
    hashes = {"model.onnx": "00"}

    first = content_revision(hashes, prompts={"query": ""})
    second = content_revision(hashes, prompts={"query": "query: "})

    assert first != second
    assert first == content_revision(dict(hashes), prompts={"query": ""})
