"""Candidates are written once, and used again only where they fit."""

from dataclasses import replace

import pytest

from ekphory.errors import DatasetError
from ekphory.testing.models import HashEmbedder
from ekphory_lab.evaluation.reranking.candidates import (
    candidates_of,
    read_candidate_sets,
    write_candidate_sets,
)


@pytest.fixture
def file(tmp_path, candidates):
    path = tmp_path / "candidates.jsonl"
    write_candidate_sets([candidates], path)
    return path


def test_what_was_written_is_read_again(tmp_path, candidates):
    path = tmp_path / "new" / "candidates.jsonl"
    write_candidate_sets([candidates], path)
    assert read_candidate_sets(path) == {candidates.identity.dataset: candidates}


def test_a_file_that_fits_is_not_made_again(file, dataset, embedder):
    before = file.stat().st_mtime_ns
    again = candidates_of(dataset, embedder=embedder, top=3, file=file)
    assert len(again.own) == 3
    assert file.stat().st_mtime_ns == before


def test_another_set_is_added(file, dataset, embedder):
    candidates_of(replace(dataset, name="other"), embedder=embedder, top=3, file=file)
    assert list(read_candidate_sets(file)) == ["chats", "other"]


def test_candidates_of_another_embedder_are_refused(file, dataset):
    with pytest.raises(DatasetError, match=r"candidates\.jsonl: .* another embedder: .*64-d"):
        candidates_of(dataset, embedder=HashEmbedder(dimension=32), top=3, file=file)


def test_candidates_of_other_data_are_refused(file, dataset, embedder):
    changed = replace(dataset, files=(replace(dataset.files[0], sha256="0" * 64),))
    with pytest.raises(DatasetError, match="another data: "):
        candidates_of(changed, embedder=embedder, top=3, file=file)


def test_another_number_of_candidates_is_refused(file, dataset, embedder):
    with pytest.raises(DatasetError, match="another top: 3, now it is 2"):
        candidates_of(dataset, embedder=embedder, top=2, file=file)


def test_a_file_that_is_cut_short_is_named(file):
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]))
    with pytest.raises(DatasetError, match=r"candidates\.jsonl.* cut short"):
        read_candidate_sets(file)


@pytest.mark.parametrize("content", ['{"kind": "list"}', '{"kind": "set", "format": "other"}', "x"])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    with pytest.raises(DatasetError, match=r"other\.jsonl:1"):
        read_candidate_sets(path)
