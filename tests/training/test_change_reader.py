"""The change reader is trained, exported, measured; what asks for the past is learned."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from ekphory.models.changes import CHANGE_KINDS, ChangeThresholds, StatementPair
from ekphory.retrieval.asked_state import ASKED_STATE_FILE, question_features
from ekphory.testing import HashEmbedder
from ekphory.types import MemoryRecord
from ekphory_lab.training.asked_state import fit_past_weights, learn_asked_state, measure_past
from ekphory_lab.training.change_topics import read_topics
from ekphory_lab.training.changes import PLAIN, StateQuestion, pairs_for, read_scenarios
from ekphory_lab.training.near_turns import as_conversations, near_each, near_turns, with_asides
from ekphory_lab.training.reader_export import (
    WrittenPairs,
    export_change_reader,
    fit_scaling,
    measure,
)

SCENARIO = """== update: where somebody lives
a 2024-02-11 Mara: I live in Rome
b 2025-01-20 Mara: I live in Bonn now
c 2025-02-01 Jan: I live in Rome
a>b replaces
a>c other-subject
b>c other-subject
? Where does Mara live? = b
"""


def asked(text, *, past):
    return StateQuestion(text, ("a",), past)


def test_a_question_is_its_words_and_pairs_with_its_beginning_and_numbers_marked():
    assert question_features("Where was I in 2024?") == {
        "where", "was", "i", "in", "#", "^ where", "where was", "was i", "i in", "in #",
    }  # fmt: skip


def test_which_questions_ask_for_the_past_is_learned_from_their_words():
    questions = [
        *(asked(f"where did {name} live", past=True) for name in ("ann", "ben", "cleo", "dan")),
        *(asked(f"where does {name} live", past=False) for name in ("ann", "ben", "cleo", "dan")),
    ]
    weights = fit_past_weights(questions)
    assert weights.probability("where did zoe live") > 0.8
    assert weights.probability("where does zoe live") < 0.2
    # What fewer than four questions hold has no weight of its own.
    assert "ann" not in weights.weights
    found = measure_past(weights, [asked("where did x live", past=True), asked("what", past=True)])
    assert found == {"accuracy": 0.5, "precision": 1.0, "recall": 0.5}


@pytest.mark.long
def test_the_packages_own_weights_are_what_the_command_writes():
    learned = learn_asked_state(read_scenarios())
    written = json.loads(ASKED_STATE_FILE.read_text(encoding="utf-8"))
    assert written["values"] == learned.values
    assert written["measured"] == learned.measured
    assert written["data"] == learned.data


def test_turns_that_lie_near_each_other_are_pairs_that_change_nothing():
    turns = [
        {"at": f"2024-02-{day:02}T10:00:00+00:00", "speaker": "Mara", "text": text}
        for day, text in enumerate(
            ["the red boat", "a red boat", "my tea", "the new boat"], start=1
        )
    ]
    told = {"turns": turns, "questions": [{"category": "update", "turns": [3]}]}
    pairs = near_turns([told], HashEmbedder(), most=20)
    assert {kind for _, kind in pairs} == {"unrelated"}
    texts = {(pair.older.text, pair.newer.text) for pair, _ in pairs}
    assert ("the red boat", "a red boat") in texts
    # A question about a change names it, so it is no talk.
    assert not any("the new boat" in pair for pair in texts)
    assert near_turns([told], HashEmbedder(), most=20) == pairs


def test_memories_of_written_stores_are_paired_with_what_lies_near_in_two_of_them(tmp_path):
    kitchen = (
        "== near-miss: kitchen\na 2024-01-01 user: the red oven\nb 2024-03-01 Jan: a red oven\n"
    )
    boat = "== near-miss: boat\na 2024-02-01 user: my tea\n"
    (tmp_path / "stores.txt").write_text(kitchen + boat, encoding="utf-8")
    pairs = near_each(as_conversations(read_scenarios(tmp_path)), HashEmbedder(), each=8)
    assert {kind for _, kind in pairs} == {"unrelated"}
    texts = {(pair.older.text, pair.newer.text) for pair, _ in pairs}
    assert texts == {
        ("the red oven", "a red oven"),
        ("the red oven", "my tea"),
        ("my tea", "a red oven"),
    }


def test_memories_of_a_store_that_are_related_are_no_pair_that_changes_nothing(tmp_path):
    store = (
        "== update: oven\na 2024-01-01 user: the red oven\nb 2024-03-01 user: a red oven\n"
        "c 2024-04-01 user: the oven is warm\na>b restates\n"
    )
    (tmp_path / "stores.txt").write_text(store, encoding="utf-8")
    pairs = near_each(as_conversations(read_scenarios(tmp_path)), HashEmbedder(), each=8)
    texts = {(pair.older.text, pair.newer.text) for pair, _ in pairs}
    assert texts == {("the red oven", "the oven is warm"), ("a red oven", "the oven is warm")}


def test_one_pair_in_so_many_has_something_else_told_beside_a_text():
    moment = datetime(2024, 5, 8, tzinfo=UTC)
    older, newer = (
        MemoryRecord(id=text, text=text, at=moment, created_at=moment)
        for text in ("I live in Rome", "Off to Bonn!")
    )
    pairs = [(StatementPair(older, newer), "replaces")] * 40
    talk = [{"turns": [{"text": "How are you?"}, {"text": "It rains."}, {"text": "x" * 200}]}]
    found = with_asides(pairs, talk, one_in=4)
    told = {text for pair, _ in found for text in (pair.older.text, pair.newer.text)}
    assert told == {
        "I live in Rome", "I live in Rome How are you?", "How are you? I live in Rome",
        "I live in Rome It rains.", "It rains. I live in Rome",
        "Off to Bonn!", "Off to Bonn! How are you?", "How are you? Off to Bonn!",
        "Off to Bonn! It rains.", "It rains. Off to Bonn!",
    }  # fmt: skip
    assert {kind for _, kind in found} == {"replaces"}
    assert 5 <= sum(pair != pairs[0][0] for pair, _ in found) <= 15
    assert with_asides(pairs, talk, one_in=4) == found


def test_of_the_unrelated_pairs_of_a_scenario_some_are_taken_always_the_same(tmp_path):
    unlisted = SCENARIO.replace("a>c other-subject\nb>c other-subject\n", "")
    (tmp_path / "one.txt").write_text(unlisted, encoding="utf-8")
    scenarios = read_scenarios(tmp_path)
    part = scenarios[0].part
    assert [kind for _, kind in pairs_for(part, scenarios)] == [
        "replaces",
        "unrelated",
        "unrelated",
    ]
    few = pairs_for(part, scenarios, most_unrelated=1)
    assert sorted(kind for _, kind in few) == ["replaces", "unrelated"]
    assert pairs_for(part, scenarios, most_unrelated=1) == few


def test_a_scaling_undoes_that_a_model_is_too_sure_and_prefers_a_kind():
    chance = np.random.default_rng(4)
    labels = chance.integers(0, 2, 4000).astype(float)
    true = np.where(labels[:, None] == np.arange(2), 1.0, 0.0) + chance.normal(0, 1.5, (4000, 2))
    scaling = fit_scaling(3 * true + np.array([0.0, 2.0]), labels)
    found = scaling.probabilities(3 * true + np.array([0.0, 2.0]))
    assert abs(found[:, 1].mean() - labels.mean()) < 0.01
    sure = found.max(axis=1) > 0.8
    right = (found.argmax(axis=1) == labels)[sure].mean()
    assert abs(right - found.max(axis=1)[sure].mean()) < 0.03


def test_what_is_measured_of_a_reader_is_counted_over_all_pairs():
    replaces, unrelated = CHANGE_KINDS.index("replaces"), CHANGE_KINDS.index("unrelated")
    rows = np.zeros((4, len(CHANGE_KINDS)))
    rows[[0, 1], replaces] = 0.9
    rows[[2, 3], unrelated] = 0.9
    labels = np.array([replaces, unrelated, replaces, unrelated])
    found = measure(rows, labels, ChangeThresholds(acts=0.5, shows=0.25))
    assert (found.precision, found.recall, found.accuracy) == (0.5, 0.5, 0.5)
    assert (found.f1["replaces"], found.f1["unrelated"], found.f1["plans"]) == (0.5, 0.5, 0.0)


@pytest.mark.long
@pytest.mark.torch
def test_a_reader_is_trained_stopped_gone_on_with_exported_read_and_opened_again(tmp_path):
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertModel

    from ekphory.models.onnx_change_reader import OnnxChangeReader
    from ekphory_lab.training.exported_readers import write_as_trained
    from ekphory_lab.training.readers import ChangeTraining, train_change_reader
    from ekphory_lab.training.run_files import RunPlaces

    config = BertConfig(
        vocab_size=50, hidden_size=384, intermediate_size=64, num_hidden_layers=6,
        num_attention_heads=12, max_position_embeddings=256,
    )  # fmt: skip
    torch.manual_seed(0)
    BertModel(config).save_pretrained(tmp_path / "base")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text(SCENARIO, encoding="utf-8")
    pairs = list(read_scenarios(tmp_path / "texts")[0].pairs())
    told = []
    settings = ChangeTraining(epochs=2, batch=2)
    how = {"places": RunPlaces(base=tmp_path / "base", target=tmp_path / "run"), "config": settings}
    train_change_reader(pairs, **how, tell=told.append)
    assert [line.partition(",")[0] for line in told] == [f"step {n} of 4" for n in range(1, 5)]
    # All of it is done, so nothing is done again.
    model = train_change_reader(pairs, **how, tell=told.append)
    assert len(told) == 4
    topics = {topic.part: topic for topic in read_topics()}
    unchanged = {"fitting": pairs, "held back": pairs}
    scenarios = read_scenarios()
    plain = [each for each in scenarios if each.name.startswith(PLAIN)][:40]
    oblique = [each for each in scenarios if not each.name.startswith(PLAIN)][:40]
    texts = WrittenPairs([*plain, *oblique], list(topics.values()), pairs, unchanged)
    outcomes = export_change_reader(model, tmp_path / "made", texts=texts)
    assert {name: 0 <= each.macro_f1 <= 1 for name, each in outcomes.items()} == {
        "plain": True, "oblique": True, "topics": True, "all": True,
    }  # fmt: skip
    reader = OnnxChangeReader(tmp_path / "made")
    said = reader.read([pair for pair, _ in pairs])
    assert np.allclose(said.sum(axis=1), 1, atol=1e-4)
    # Training can go on from what was exported: it says the same but for rounding.
    opened = write_as_trained(tmp_path / "made", tmp_path / "opened")
    export_change_reader(opened, tmp_path / "again", texts=texts)
    again = OnnxChangeReader(tmp_path / "again").read([pair for pair, _ in pairs])
    assert np.abs(said - again).max() < 0.05
