"""Type and importance that the embedder predicted, told from those that were given."""

import json

import pytest
from tests.models.tiny_components import write_tiny_embedder

from ekphory.cli.output import plain
from ekphory.importers.text import read_jsonl
from ekphory.memory import Memory
from ekphory.models.agent_embedder import Embedder
from ekphory.models.onnx_export import ModelDescription, export_embedder

BOTH = {"type", "importance"}


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    """A model with random heads, which tell of "the cat sat" what they do not of "a big dog"."""
    folder = tmp_path_factory.mktemp("model")
    write_tiny_embedder(folder / "torch")
    description = ModelDescription(name="tiny")
    export_embedder(folder / "torch", folder / "onnx", description=description)
    return Embedder.from_pretrained(folder / "onnx")


@pytest.fixture
def predicting(embedder, tmp_path):
    with Memory(tmp_path / "predicting", embedder=embedder) as opened:
        yield opened


def importance_of(embedder, text):
    return pytest.approx(float(embedder.importance([text])[0]), abs=0.001)


@pytest.mark.parametrize(
    ("given", "predicted"),
    [
        ({}, BOTH),
        ({"type": "semantic"}, {"importance"}),
        ({"importance": 0.9}, {"type"}),
        ({"type": "unknown", "importance": 0.5}, set()),
    ],
)
def test_what_was_not_given_is_marked_as_predicted(predicting, given, predicted):
    predicting.add("the cat sat", id="1", **given)
    assert predicting.get("1").predicted == predicted


def test_lists_and_hits_tell_it_too(predicting):
    predicting.add("the cat sat", type="semantic")
    assert [record.predicted for record in predicting.list()] == [{"importance"}]
    assert [hit.memory.predicted for hit in predicting.search("cat").hits] == [{"importance"}]


def test_a_model_without_heads_predicts_nothing(memory):
    memory.add("the cat sat", id="1")
    assert memory.get("1").predicted == frozenset()


def test_a_new_text_has_predicted_values_predicted_anew(predicting, embedder):
    predicting.add("the cat sat", id="1")
    changed = predicting.update("1", text="a big dog")
    assert changed.type == embedder.memory_type(["a big dog"])[0]
    assert changed.importance == importance_of(embedder, "a big dog")
    assert changed.importance != importance_of(embedder, "the cat sat")
    assert (changed.predicted, changed) == (BOTH, predicting.get("1"))


def test_a_new_text_keeps_what_was_given(predicting, embedder):
    predicting.add("the cat sat", id="1", type="procedural")
    changed = predicting.update("1", text="a big dog")
    assert (changed.type, changed.predicted) == ("procedural", {"importance"})
    assert changed.importance == importance_of(embedder, "a big dog")


def test_another_change_keeps_what_was_predicted(predicting, embedder):
    predicting.add("the cat sat", id="1")
    before = predicting.get("1")
    changed = predicting.update("1", metadata={"k": 1})
    assert (changed.type, changed.importance) == (before.type, before.importance)
    assert changed.predicted == BOTH


def test_an_updated_value_counts_as_given_from_then_on(predicting):
    predicting.add("the cat sat", id="1")
    assert predicting.update("1", type="semantic").predicted == {"importance"}
    changed = predicting.update("1", text="a big dog")
    assert (changed.type, changed.predicted) == ("semantic", {"importance"})


def test_a_value_that_comes_with_the_new_text_is_given(predicting):
    predicting.add("the cat sat", id="1")
    changed = predicting.update("1", text="a big dog", importance=0.25)
    assert (changed.importance, changed.predicted) == (0.25, {"type"})


def test_an_earlier_version_keeps_its_marks(predicting):
    predicting.add("the cat sat", id="1")
    predicting.update("1", type="semantic", importance=0.9)
    assert [version.predicted for version in predicting.history("1")] == [set(), BOTH]


def test_a_listing_that_is_imported_elsewhere_keeps_values_and_marks(predicting, memory, tmp_path):
    predicting.add("the cat sat", id="1", type="semantic")
    listed = tmp_path / "listing.jsonl"
    listed.write_text(json.dumps(plain(predicting.get("1"))) + "\n")

    memory.add_many(record.fields for record in read_jsonl(listed))

    assert memory.get("1").predicted == {"importance"}
    assert memory.get("1").importance == predicting.get("1").importance


def test_a_new_text_for_a_model_without_heads_drops_what_another_predicted(memory):
    memory.add_many([{"text": "a", "id": "1", "importance": 0.8, "predicted": ["importance"]}])
    changed = memory.update("1", text="b")
    assert (changed.importance, changed.predicted) == (0.5, frozenset())
