from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ekphory.errors import DatasetError
from ekphory.testing import HashEmbedder
from ekphory_lab.evaluation.datasets import Passage
from ekphory_lab.evaluation.reranking.candidates import (
    another_conversation,
    candidates_of,
    find_candidates,
    read_candidate_sets,
    write_candidate_sets,
)


@pytest.fixture
def file(tmp_path, candidates):
    path = tmp_path / "new" / "candidates.jsonl"
    write_candidate_sets([candidates], path)
    return path


def test_what_was_written_is_read_again(file, dataset, candidates, embedder):
    assert read_candidate_sets(file) == {candidates.identity.dataset: candidates}
    # A file that fits is not made again.
    before = file.stat().st_mtime_ns
    again = candidates_of(dataset, embedder=embedder, top=3, file=file)
    assert len(again.own) == 3
    assert file.stat().st_mtime_ns == before
    # Another set is added.
    candidates_of(replace(dataset, name="other"), embedder=embedder, top=3, file=file)
    assert list(read_candidate_sets(file)) == ["chats", "other"]


def test_candidates_of_another_embedder_or_number_are_refused(file, dataset, embedder):
    with pytest.raises(DatasetError, match=r"candidates\.jsonl: .* another embedder: .*64-d"):
        candidates_of(dataset, embedder=HashEmbedder(dimension=32), top=3, file=file)
    with pytest.raises(DatasetError, match="another top: 3, now it is 2"):
        candidates_of(dataset, embedder=embedder, top=2, file=file)


def test_a_file_that_is_cut_short_or_of_another_kind_is_named(file):
    file.write_text(file.read_text()[:-200])
    with pytest.raises(DatasetError, match=r"candidates\.jsonl:1: not JSON"):
        read_candidate_sets(file)
    for content in ("{}", '{"format": "ekphory-candidates-2"}', "x"):
        file.write_text(content)
        with pytest.raises(DatasetError, match=r"candidates\.jsonl:1"):
            read_candidate_sets(file)


ON_MAY_FIRST = datetime(2024, 5, 1, 10, tzinfo=UTC)


def spoken_by(dataset, **speakers):
    pools = {
        pool: tuple(Passage(id=name, text="hi", speaker=name) for name in names)
        for pool, names in speakers.items()
    }
    return replace(dataset, pools=pools)


def test_every_question_gets_the_best_of_its_own_pool(candidates):
    boat = candidates.own[1]
    assert (boat.key, boat.searched) == (("a", "1"), "a")
    assert boat.asked.text == "What happened to the boat?"
    assert boat.ids[0] == "D1:2"
    assert len(boat.ids) == 3
    assert boat.scores["ranking"] == tuple(sorted(boat.scores["ranking"], reverse=True))
    # A passage comes with its neighbours and its date.
    passage = candidates.passages["a"]["D1:2"]
    assert passage.text == "Bob: My boat sank in the harbour"
    assert passage.before == "Ann: I adopted a grey cat"
    assert passage.after == "Ann: The cat sleeps all day"
    assert passage.at == ON_MAY_FIRST
    # A question is asked at the newest moment of its pool.
    assert candidates.own[0].asked.now == ON_MAY_FIRST
    # Every question is put to another conversation too.
    elsewhere = [(*found.key, found.searched) for found in candidates.elsewhere]
    assert elsewhere == [("a", "0", "b"), ("a", "1", "b"), ("b", "0", "a")]


def test_what_the_set_does_not_date_is_not_dated(dataset, embedder):
    undated = {
        pool: tuple(replace(passage, at=None) for passage in passages)
        for pool, passages in dataset.pools.items()
    }
    found = find_candidates(replace(dataset, pools=undated), embedder=embedder, top=3)
    assert found.own[0].asked.now is None
    assert {passage.at for passage in found.passages["a"].values()} == {None}


def test_another_conversation_is_the_next_without_a_common_speaker(dataset):
    spoken = spoken_by(dataset, a=["Ann", "Bob"], b=["ann", "Cid"], c=["Dan"], d=["Eve"])
    assert another_conversation(spoken, "a") == "c"
    assert another_conversation(spoken, "d") == "a"
    # Where all share a speaker it is the next.
    spoken = spoken_by(dataset, a=["user"], b=["user"])
    assert another_conversation(spoken, "b") == "a"
    assert another_conversation(spoken_by(dataset, a=["user"]), "a") is None
