"""Short runs of a tiny encoder over literal groups."""

import itertools
import json

import numpy as np
import pytest
from tests.training.tiny_encoder import WORDS
from tests.training.trainable_encoder import (
    Stopped,
    losses,
    silent,
    stop_after,
    write_modern_encoder,
    write_trainable_encoder,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

if torch:
    from ekphory.errors import DatasetError, InvalidInput, ModelError
    from ekphory.models.onnx_export import Prompts
    from ekphory_lab.training.embedder_config import (
        CONFIGS,
        EmbedderConfig,
        LossWeights,
        MemoryPart,
        WrittenPart,
    )
    from ekphory_lab.training.embedder_run import StepBatch, lay_out, train_embedder
    from ekphory_lab.training.encoder import load_agent_encoder, new_optimizer
    from ekphory_lab.training.memories import (
        GeneratedMemory,
        HardNegative,
        MemorySample,
        generate,
        read_samples,
        write_samples,
    )
    from ekphory_lab.training.question_groups import Question, QuestionGroup
    from ekphory_lab.training.run_files import RunPlaces
    from ekphory_lab.training.sources import TrainingData, WrittenPassages, samples_alone
    from ekphory_lab.training.texts import sha256_of

CONFIG_FIELDS = {
    "name": "tiny",
    "base": "made here",
    "mix": {"words": 1.0},
    "groups_per_step": 1,
    "steps": 8,
    "learning_rate": 3e-3,
    "chunk_texts": 4,
}


class WordVectors:
    """A base model: counts of words."""

    def encode(self, texts):
        counts = np.array([[text.split().count(word) for word in WORDS] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    encode_query = encode


class OneDirection:
    """A base model of the encoder's dimension for which all texts are alike."""

    def encode(self, texts):
        return np.eye(1, 32, dtype=np.float32).repeat(len(texts), axis=0)

    encode_query = encode


def word_groups(random):
    for _ in range(4):
        words = random.sample(WORDS, 6)
        passages = tuple(f"the {first} {second}" for first, second in itertools.pairwise(words))
        questions = tuple(Question(word, (row,)) for row, word in enumerate(words[:5]))
        yield QuestionGroup("words", passages, questions)


DATA = {"epochs": {"words": word_groups}, "hashes": {"words.jsonl.gz": "0" * 64}}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_trainable_encoder(tmp_path_factory.mktemp("tiny") / "base")


@pytest.fixture(scope="module")
def short(base):
    """The model of a run of two steps."""
    return run(base, base.parent / "short", steps=2)


def run(base, target, *, progress=silent, teacher=None, samples=None, **changes):
    config = EmbedderConfig(**CONFIG_FIELDS | changes)
    return train_embedder(
        config.with_samples_alone() if samples else config,
        samples_alone(samples) if samples else TrainingData(**DATA),
        teacher or WordVectors(),
        places=RunPlaces(base=base, target=target),
        progress=progress,
    )


def weights_of(model, part=None):
    parts = load_agent_encoder(model).parts
    return (parts[part] if part else parts).state_dict()


def names_of_changed(old, new):
    return {name for name in old if not torch.equal(old[name], new[name])}


def test_a_few_steps_lower_the_loss(base, tmp_path):
    found = losses(run(base, tmp_path / "run", steps=24))

    assert np.mean(found[-4:]) < 0.8 * np.mean(found[:4])


def test_written_passages_are_pulled_to_the_vectors_of_the_base_model(base, tmp_path):
    before = load_agent_encoder(base)
    part = WrittenPart(passages_per_step=4, weight=50.0, mix={"words": 1.0})
    model = run(base, tmp_path / "run", steps=24, written=part, teacher=OneDirection())

    text = " ".join(WORDS[:6])
    first, second = (
        encoder.vectors(encoder.tokens([text], max_tokens=32))[0, 0]
        for encoder in (before, load_agent_encoder(model))
    )
    assert second > first + 0.3


def test_large_steps_take_the_same_way_with_cached_gradients(base, short, tmp_path):
    cached = run(base, tmp_path / "cached", steps=2, cached_gradients=1)

    first, second = (weights_of(model, "projection")["weight"] for model in (short, cached))
    assert (first - second).abs().max() <= 1e-4


def test_frozen_layers_and_word_vectors_stay(base, tmp_path):
    model = run(base, tmp_path / "run", steps=2, frozen_layers=1)

    changed = names_of_changed(weights_of(base, "encoder"), weights_of(model, "encoder"))
    trained = {name for name in changed if not name.startswith("pooler.")}
    assert trained
    assert all(name.startswith("encoder.layer.1.") for name in trained)

    # ModernBERT is trained, and its frozen layers stay.
    modern = write_modern_encoder(tmp_path / "modern")
    model = run(modern, tmp_path / "modern run", steps=2, frozen_layers=1)
    changed = names_of_changed(weights_of(modern, "encoder"), weights_of(model, "encoder"))
    assert {name.partition(".")[0] for name in changed} == {"layers", "final_norm"}
    assert not any(name.startswith("layers.0.") for name in changed)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_takes_nearly_the_steps_of_the_processor(base, tmp_path, monkeypatch):
    changes = {"steps": 2, "memories": MemoryPart(samples_per_step=2)}
    on_gpu = run(base, tmp_path / "gpu", **changes)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_processor = run(base, tmp_path / "cpu", **changes)

    first, second = (weights_of(each, "projection")["weight"] for each in (on_gpu, on_processor))
    assert (first - second).abs().max() <= 1e-2


def test_generated_memories_train_age_type_and_heads(base, short, tmp_path):
    memories = MemoryPart(samples_per_step=3, learning_rate=1e-2)
    taught = run(base, tmp_path / "taught", steps=2, memories=memories)

    names = names_of_changed(weights_of(short), weights_of(taught))
    changed = {name.split(".")[0] for name in names}
    assert changed == {"encoder", "projection", "age", "kind", "importance", "memory_type"}


def test_a_run_learns_from_a_file_of_samples_alone_and_reads_it_again(base, tmp_path):
    file = tmp_path / "samples.jsonl"
    write_samples(generate("train", seed=3, count=5), file, progress=silent)

    memories = MemoryPart(samples_per_step=2)
    model = run(base, tmp_path / "run", samples=file, memories=memories, steps=4)

    assert len(losses(model)) == 4
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["data"] == {"samples": sha256_of(file)}
    names = names_of_changed(weights_of(base), weights_of(model))
    assert {"age.weight", "kind.weight", "projection.weight"} <= names


def test_a_file_that_holds_no_samples_is_named_with_its_line(base, tmp_path):
    file = tmp_path / "samples.jsonl"
    file.write_text('{"query": "who?"}\n')

    with pytest.raises(DatasetError, match=r"samples.jsonl, line 1: not a sample"):
        list(read_samples(file))
    file.write_text("")
    with pytest.raises(InvalidInput, match="holds no sample"):
        samples_alone(file)


@pytest.mark.parametrize(("precision", "most"), [("bfloat16", 2e-2), ("float16", 5e-3)])
def test_sixteen_bits_take_nearly_the_steps_of_float(base, tmp_path, precision, most):
    changes = {"steps": 2, "memories": MemoryPart(samples_per_step=2), "learning_rate": 1e-4}
    short = run(base, tmp_path / "short", precision=precision, **changes)
    full = run(base, tmp_path / "full", precision="float32", **changes)

    first, second = (weights_of(each, "projection")["weight"] for each in (short, full))
    assert not torch.equal(first, second)
    assert (first - second).abs().max() <= most


def test_a_step_whose_gradients_overflow_is_left_out():
    weight = torch.nn.Parameter(torch.ones(2))
    config = EmbedderConfig(**CONFIG_FIELDS)
    optimizer = new_optimizer(config, 2, {"weight": weight}, {"params": []})
    weight.grad = torch.tensor([float("inf"), 1.0])

    optimizer.step()

    assert weight.tolist() == [1.0, 1.0]


def test_a_stopped_run_with_generated_memories_goes_on_to_the_same_weights(base, tmp_path):
    changes = {
        "memories": MemoryPart(samples_per_step=2),
        "long_messages": 0.5,
        "checkpoint_seconds": 0.0,
    }
    whole = run(base, tmp_path / "whole", **changes)
    with pytest.raises(Stopped):
        run(base, tmp_path / "parts", progress=stop_after(3), **changes)
    resumed = run(base, tmp_path / "parts", **changes)

    for name in ("model.safetensors", "ekphory_components.safetensors"):
        assert sha256_of(resumed / name) == sha256_of(whole / name)


def test_the_manifest_says_what_the_run_was_made_from(base, tmp_path):
    run(base, tmp_path / "run", steps=1, seed=5)

    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["config"]["steps"] == 1
    assert manifest["seed"] == 5
    assert manifest["data"] == {"words.jsonl.gz": "0" * 64}
    assert manifest["base"]["sha256"] == sha256_of(base / "model.safetensors")
    assert manifest["libraries"]["torch"] == torch.__version__
    # A run with other settings is not gone on with.
    with pytest.raises(InvalidInput, match="another config"):
        run(base, tmp_path / "run", steps=1, seed=5, learning_rate=1e-5)


def test_a_base_of_other_dimensions_than_the_configuration_is_for_is_refused(base, tmp_path):
    with pytest.raises(InvalidInput, match="has vectors of 32 numbers, and 'tiny' is for 768"):
        run(base, tmp_path / "run", dimension=768)
    assert not (tmp_path / "run").exists()
    assert CONFIGS["base"].dimension == 768


def test_base_weights_that_cannot_be_loaded_leave_no_target(tmp_path):
    base = write_trainable_encoder(tmp_path / "base")
    (base / "config.json").write_text("{")

    with pytest.raises(ModelError, match="base"):
        run(base, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_the_anchor_keeps_vectors_near_those_of_the_base_model(base, tmp_path):
    class Itself:
        def encode(self, texts):
            encoder = load_agent_encoder(base)
            with torch.no_grad():
                return encoder.vectors(encoder.tokens(texts, max_tokens=24)).numpy()

        encode_query = encode

    def moved(weight):
        loss = LossWeights(anchor=weight)
        model = run(base, tmp_path / f"run{weight}", teacher=Itself(), loss=loss)
        encoder = load_agent_encoder(model)
        with torch.no_grad():
            after = encoder.vectors(encoder.tokens(WORDS, max_tokens=24)).numpy()
        return 1 - (after * Itself().encode(WORDS)).sum(axis=1).mean()

    assert moved(20.0) < 0.5 * moved(0.0)


GROUP = QuestionGroup("words", ("the cat", "the dog"), (Question("who ran?", (1,)),))
SAMPLE = MemorySample(
    "who sat?",
    GeneratedMemory("the cat sat", 1.0, "episodic", 0.5),
    (HardNegative("temporal", GeneratedMemory("the dog sat", 9.0, "episodic", 0.5)),),
)


def test_each_text_is_encoded_after_the_prompt_of_its_side():
    written = WrittenPassages(("a house",), base=None, given=None)
    batch = StepBatch([GROUP], [], [], lay_out([SAMPLE]), written)

    assert batch.prompted(Prompts(query="Q: ", passage="P: ")) == [
        "P: the cat",
        "P: the dog",
        "Q: who ran?",
        "Q: who sat?",
        "P: the cat sat",
        "P: the dog sat",
        "P: a house",
    ]
