"""A search with a reranker: which presets ask it, what it is told, and what its scores are."""

from datetime import UTC, datetime

import numpy as np
import pytest
from tests.models.tiny_rerankers import write_overlap_reranker

from ekphory.memory import Memory
from ekphory.models.agent_reranker import Reranker
from ekphory.models.model_record import CalibrationCard, RerankerRecord
from ekphory.models.reranker import BundledReranker
from ekphory.testing.models import HashEmbedder, OverlapReranker
from services.wire import running_service, says

NOW = datetime(2026, 6, 1, tzinfo=UTC)
RUN = [
    {"role": "Anna", "content": "I ran a marathon", "at": "2023-05-08"},
    {"role": "Ben", "content": "wow", "at": "2023-05-09"},
    {"role": "Anna", "content": "thanks", "at": "2023-05-10"},
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    card = CalibrationCard(slope=4.0, intercept=-6.0)
    record = RerankerRecord(name="tiny", calibration=card)
    return write_overlap_reranker(tmp_path_factory.mktemp("onnx"), record)


@pytest.fixture
def open_with(store_path):
    handles = []

    def open_one(reranker):
        handles.append(Memory(store_path, embedder=HashEmbedder(), reranker=reranker))
        return handles[-1]

    yield open_one
    for handle in handles:
        handle.close()


def stages(result):
    return {stage.name: stage for stage in result.trace.stages}


class Listening(OverlapReranker):
    asked = None

    def score(self, query, passages):
        self.asked = (query, {passage.text: passage for passage in passages})
        return super().score(query, passages)


@pytest.mark.parametrize("preset", ["balanced", "accurate"])
def test_a_reranker_in_a_directory_orders_the_hits(open_with, directory, preset):
    memory = open_with(str(directory))
    memory.add_many({"text": text} for text in ("the dog", "the big red dog", "the red"))
    result = memory.search("red dog", preset=preset, now=NOW)
    assert result.hits[0].text == "the big red dog"
    assert stages(result)["rerank"].detail["reranker"] == "tiny"


def test_the_score_of_a_hit_is_the_rerankers_calibrated_probability(open_with, directory):
    memory = open_with(str(directory))
    memory.add_many({"text": text} for text in ("a dog", "a red dog"))
    hits = memory.search("red dog", now=NOW).hits
    # One shared word has the logit 1, two have 2; the curve is 4 · logit - 6.
    expected = [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-5)


def test_with_no_memory_probable_enough_the_result_abstains(open_with, directory):
    memory = open_with(str(directory))
    memory.add("a dog")
    result = memory.search("red dog", min_score=0.5, now=NOW)
    assert (result.hits, result.abstained) == ((), True)


def test_the_bundled_reranker_reads_for_the_preset_accurate(open_with, directory):
    memory = open_with(BundledReranker(directory))
    memory.add("a red dog")
    result = memory.search("red dog", preset="accurate", now=NOW)
    assert stages(result)["rerank"].status == "ran"


def test_the_bundled_reranker_does_not_slow_the_default_preset(open_with, directory):
    memory = open_with(BundledReranker(directory))
    memory.add("a red dog")
    stage = stages(memory.search("red dog", now=NOW))["rerank"]
    assert stage.reason == "ekphory-rerank-small reads for preset='accurate'"


def test_the_bundled_reranker_is_the_same_in_the_class_for_users(open_with, directory):
    memory = open_with(Reranker(BundledReranker(directory)))
    memory.add("a red dog")
    stage = stages(memory.search("red dog", now=NOW))["rerank"]
    assert stage.reason == "ekphory-rerank-small reads for preset='accurate'"


def test_a_reranker_whose_scores_cannot_be_used_costs_no_hit_and_is_told(open_with):
    memory = open_with(Overrating())
    memory.add_many({"text": text} for text in ("a red dog", "a cat"))
    result = memory.search("red dog", now=NOW)
    assert len(result.hits) == 2
    assert stages(result)["rerank"].reason.startswith("overlap-reranker: gave the score 9.")


class Overrating(OverlapReranker):
    def score(self, _query, passages):
        return np.full(len(passages), 9.0, np.float32)


def test_the_bundled_reranker_of_three_layers_reads_for_the_default_preset(open_with, directory):
    memory = open_with(BundledReranker(directory, name="ekphory-rerank-tiny"))
    memory.add("a red dog")
    stage = stages(memory.search("red dog", now=NOW))["rerank"]
    assert (stage.status, stage.detail["reranker"]) == ("ran", "ekphory-rerank-tiny")


def test_the_bundled_reranker_leaves_documents_to_the_first_stage(open_with, directory):
    memory = open_with(BundledReranker(directory))
    for number in range(3):
        memory.add(" ".join(f"word{number}x{place}" for place in range(120)) + " marathon")
    stage = stages(memory.search("marathon", preset="accurate"))["rerank"]
    assert stage.reason == "the bundled reranker learned from turns, and these are long documents"


def test_the_bundled_reranker_reads_long_turns_of_a_conversation(open_with, directory):
    memory = open_with(BundledReranker(directory))
    for number in range(3):
        text = " ".join(f"word{number}x{place}" for place in range(120)) + " marathon"
        memory.add(text, sequence=number)
    assert stages(memory.search("marathon", preset="accurate"))["rerank"].status == "ran"


def test_a_reranker_of_ones_own_reads_documents_too(open_with, directory):
    memory = open_with(str(directory))
    memory.add(" ".join(f"word{place}" for place in range(120)) + " marathon")
    assert stages(memory.search("marathon", preset="accurate"))["rerank"].status == "ran"


class Mild(OverlapReranker):
    """Prefers what is red, a logit of .85 against one of 0."""

    def score(self, _query, passages):
        return np.array([0.7 if "red" in each.text else 0.5 for each in passages], np.float32)


def test_a_reranker_of_ones_own_decides_by_scores_that_lie_close_together(open_with):
    memory = open_with(Mild())
    memory.add_many({"text": text} for text in ("a dog and a dog", "a red cat"))

    hits = memory.search("dog", now=NOW).hits

    assert [hit.text for hit in hits] == ["a red cat", "a dog and a dog"]


def test_the_bundled_reranker_decides_nothing_by_logits_within_two(open_with, tmp_path):
    record = RerankerRecord(name="tiny", calibration=CalibrationCard(slope=1.0, intercept=0.0))
    memory = open_with(BundledReranker(write_overlap_reranker(tmp_path, record)))
    memory.add_many({"text": text} for text in ("a dog", "a green dog"))

    stage = stages(memory.search("green dog", preset="accurate", now=NOW))["rerank"]

    assert stage.detail["undecided"] is True


def test_no_reranker_at_all_can_be_asked_for(open_with):
    memory = open_with("none")
    memory.add("a red dog")
    stage = stages(memory.search("red dog", now=NOW))["rerank"]
    assert (stage.status, stage.reason) == ("skipped", "no reranker")


def test_a_broken_bundled_reranker_costs_no_hit_and_is_told(open_with, directory, tmp_path):
    (tmp_path / "model.json").write_bytes((directory / "model.json").read_bytes())
    memory = open_with(BundledReranker(tmp_path))
    memory.add("a red dog")
    result = memory.search("red dog", preset="accurate", now=NOW)
    assert len(result.hits) == 1
    assert "tokenizer.json: cannot be read" in stages(result)["rerank"].reason


def test_the_default_preset_asks_no_service(open_with):
    with running_service(lambda _: says({})) as service:
        memory = open_with(service.host)
        memory.add("a red dog")
        stage = stages(memory.search("red dog", now=NOW))["rerank"]
    assert stage.reason == "the reranker is a service, which this preset does not ask"
    assert service.asked == []


def test_the_reranker_is_told_the_dialogue_the_moment_and_the_turns_around(open_with):
    reranker = Listening()
    memory = open_with(reranker)
    memory.add_messages(RUN, session="s")
    context = ["Ben: hello", {"role": "Anna", "content": "about the marathon"}]
    result = memory.search("when was it?", context=context, now=NOW)
    query, passages = reranker.asked
    assert (query.context, query.now) == (("Ben: hello", "Anna: about the marathon"), NOW)
    said = passages["Ben: wow"]
    assert (said.before, said.after) == ("Anna: I ran a marathon", "Anna: thanks")
    assert said.at == datetime(2023, 5, 9, tzinfo=UTC)
    assert stages(result)["rerank"].detail["context"] == 2


def test_turns_of_another_scope_are_never_read(store_path):
    reranker = Listening()
    for user in ("ann", "bob"):
        with Memory(store_path, user=user, embedder=HashEmbedder()) as memory:
            memory.add(f"{user} says one", session="s", sequence=1)
            memory.add(f"{user} says two", session="s", sequence=3)
    with Memory(store_path, user="ann", embedder=HashEmbedder(), reranker=reranker) as memory:
        memory.search("one two", now=NOW)
    passages = reranker.asked[1]
    around = {turn for each in passages.values() for turn in (each.before, each.after) if turn}
    assert around == {"ann says one", "ann says two"}


def test_where_no_reranker_reads_the_context_the_trace_says_so(open_with):
    memory = open_with("none")
    memory.add("a red dog")
    balanced = stages(memory.search("red dog", context=["hello"], now=NOW))
    fast = stages(memory.search("red dog", context=["hello"], preset="fast", now=NOW))
    assert balanced["rerank"].reason == "no reranker; none reads the context"
    assert fast["open scope"].detail == {"context": "no stage of 'fast' reads it"}
