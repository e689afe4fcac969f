"""Adapters on a tiny Qwen3 with random weights."""

import pytest
from tests.models.tiny_rerankers import write_yes_no_model
from tests.training.reranker.tiny_reranker import word_examples

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
# peft asks transformers by the old name.
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning"),
]

if torch:
    from ekphory_lab.training.reranker.config import HeldBack, LoraShape, RerankerConfig
    from ekphory_lab.training.reranker.examples import write_examples
    from ekphory_lab.training.reranker.models import load_yes_no_model, trained_weights
    from ekphory_lab.training.reranker.preparation import (
        HELD_BACK_FILE,
        TRAINED_FILE,
        ExampleMaking,
    )
    from ekphory_lab.training.reranker.run import (
        pair_batches,
        score_batches,
        train_reranker,
    )
    from ekphory_lab.training.run_files import RunPlaces

SHAPE = LoraShape(rank=2, scale=4, most_tokens=700) if torch else None


def silent(*_):
    pass


@pytest.fixture
def base(tmp_path):
    # On a busy machine the threads of one product wait for each other.
    torch.set_num_threads(1)
    return write_yes_no_model(tmp_path / "base", seed=1)


def run(base, target):
    target.mkdir()
    write_examples(word_examples(6, 1), target / TRAINED_FILE)
    write_examples(word_examples(2, 2), target / HELD_BACK_FILE)
    named = {"name": "tiny", "base": "made here", "architecture": "yes_no", "mix": {}}
    sizes = {"questions": 6, "questions_per_step": 2, "chunk_pairs": 2}
    rates = {"learning_rate": 1e-2, "averaged": 0.0}
    held_back = HeldBack(measured=2, every_steps=100)
    return train_reranker(
        RerankerConfig(**named, **sizes, **rates, held_back=held_back, lora=SHAPE),
        ExampleMaking(folder=target, base=None, base_name="none"),
        places=RunPlaces(base=base, target=target),
        progress=silent,
        report=silent,
    )


def test_only_adapters_are_trained(base):
    model = load_yes_no_model(base, SHAPE)

    assert trained_weights(model)
    assert all("lora_" in name for name in trained_weights(model))
    # A score does not depend on the prompts beside it.
    with torch.no_grad():
        pairs = model.pairs(word_examples(1, 4)[0])
        together = model.logits(model.batch(pairs))
        alone = torch.cat([model.logits(model.batch([pair])) for pair in pairs])

    assert (together - alone).abs().max() < 1e-3


def test_a_new_adapter_changes_nothing(base):
    from transformers import AutoModelForCausalLM

    model = load_yes_no_model(base, SHAPE)
    batch = model.batch(model.pairs(word_examples(1, 5)[0]))
    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)

    with torch.no_grad():
        logits = plain(input_ids=batch.ids, attention_mask=batch.mask).logits[:, -1]
        expected = logits[:, model.prompt.yes] - logits[:, model.prompt.no]
        assert (model.logits(batch) - expected).abs().max() < 1e-4


def test_a_run_writes_adapters_and_a_whole_model_that_scores_alike(base, tmp_path):
    directory = run(base, tmp_path / "run")

    assert (directory / "adapter" / "adapter_model.safetensors").is_file()
    examples = word_examples(2, 6)
    before, after = (
        score_batches(model, pair_batches(model, examples, chunk_pairs=6))
        for model in (load_yes_no_model(place, SHAPE) for place in (base, directory))
    )
    assert (before - after).abs().max() > 1e-2
