import gzip
import json

import pytest

from ekphory.errors import DatasetError
from ekphory_lab.evaluation.captures import measure_captures, read_labelled_transcripts
from ekphory_lab.evaluation.runner import silent

TRANSCRIPT = {
    "id": "tea",
    "messages": [
        {"role": "user", "content": "hello!", "at": "2026-01-05T10:00:00Z"},
        {
            "role": "user",
            "content": "I am allergic to peanuts, and I prefer green tea in the morning.",
            "at": "2026-01-05T10:01:00Z",
        },
    ],
    "keep": [{"about": "tea", "evidence": [1], "class": "preference", "entities": []}],
    "drop": [0],
    "secrets": ["hedgehog-Lamp-91"],
    "injection": [],
}


def test_what_is_kept_and_dropped_of_a_labelled_transcript_is_counted(tmp_path):
    file = tmp_path / "transcripts.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(TRANSCRIPT).encode()))
    figures = measure_captures(read_labelled_transcripts(file), progress=silent)
    assert (figures["kept"], figures["size"], figures["dropped"]) == (1.0, 1.0, 1.0)
    assert (figures["secrets"], figures["steering"]) == (0, 0)


def test_a_transcript_without_labels_is_refused_with_its_place(tmp_path):
    file = tmp_path / "transcripts.jsonl"
    file.write_text(json.dumps({"id": "tea", "messages": []}) + "\n")
    with pytest.raises(DatasetError, match=r"transcripts\.jsonl:1: is not a labelled transcript"):
        read_labelled_transcripts(file)
