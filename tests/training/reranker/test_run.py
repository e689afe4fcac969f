"""Losses of a reranker, and short runs of a tiny encoder over literal examples."""

import json
import math

import numpy as np
import pytest
from tests.training.reranker.tiny_reranker import word_examples
from tests.training.trainable_encoder import write_trainable_encoder

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.torch


if torch:
    from ekphory_lab.training.reranker.config import RerankLossWeights
    from ekphory_lab.training.reranker.run import (
        RerankTargets,
        info_nce,
        rerank_loss,
        soft_cross_entropy,
    )


def targets(relevant, labels=None, present=None):
    table = torch.tensor(relevant)
    return RerankTargets(
        torch.ones_like(table).bool() if present is None else torch.tensor(present).bool(),
        table.bool(),
        torch.tensor(labels or relevant).float(),
    )


def test_an_answer_competes_with_the_wrong_and_not_with_other_answers():
    logits = torch.tensor([[2.0, 1.0, 0.0]])

    loss = info_nce(logits, targets([[1, 1, 0]]), temperature=1.0)

    first, second = (-math.log(math.exp(s) / (math.exp(s) + 1)) for s in (2.0, 1.0))
    assert float(loss) == pytest.approx((first + second) / 2)


def test_what_is_absent_does_not_compete():
    logits = torch.tensor([[0.0, 0.0, 9.0], [0.0, 0.0, 0.0]])
    known = targets([[1, 0, 0], [1, 0, 0]], present=[[1, 1, 0], [1, 1, 0]])

    assert float(info_nce(logits, known, temperature=1.0)) == pytest.approx(math.log(2))


def test_soft_labels_are_reached_by_their_own_logits():
    labels = [[0.9, 0.3]]
    exact = torch.tensor([[math.log(9), math.log(3 / 7)]])

    best = soft_cross_entropy(exact, targets([[1, 0]], labels))
    assert float(best) < float(soft_cross_entropy(exact + 0.2, targets([[1, 0]], labels)))
    assert float(best) < float(soft_cross_entropy(exact - 0.2, targets([[1, 0]], labels)))


def test_following_costs_nothing_where_the_two_agree_up_to_a_shift():
    logits = torch.tensor([[2.0, 1.0, 5.0]])
    known = targets([[1, 0, 0]], present=[[1, 1, 0]])
    weights = RerankLossWeights(contrast=0.0, soft=0.0, following=1.0)

    assert float(rerank_loss(logits, known, weights, logits + 3)) == pytest.approx(0, abs=1e-6)
    assert float(rerank_loss(logits, known, weights, logits.flip(1))) > 0.1


if torch:
    from ekphory.errors import InvalidInput
    from ekphory_lab.training.reranker.config import (
        HeldBack,
        RerankerConfig,
        RerankLossWeights,
    )
    from ekphory_lab.training.reranker.examples import write_examples
    from ekphory_lab.training.reranker.models import (
        load_cross_encoder,
        with_layers,
    )
    from ekphory_lab.training.reranker.preparation import (
        HELD_BACK_FILE,
        TRAINED_FILE,
        ExampleMaking,
    )
    from ekphory_lab.training.reranker.run import (
        Listener,
        pair_batches,
        score_batches,
        train_reranker,
    )
    from ekphory_lab.training.run_files import RunPlaces
    from ekphory_lab.training.texts import sha256_of


CONFIG_FIELDS = {
    "name": "tiny",
    "base": "made here",
    "mix": {},
    "questions": 64,
    "questions_per_step": 8,
    "chunk_pairs": 8,
    "learning_rate": 2e-3,
    "averaged": 0.25,
}


class Stopped(Exception):
    pass


def stop_after(step):
    def progress(activity, done, total):
        if activity == "training" and done == step:
            raise Stopped

    return progress


def silent(*_):
    pass


@pytest.fixture
def base(tmp_path):
    return write_trainable_encoder(tmp_path / "base")


def run(base, target, *, followed=None, progress=silent, report=silent, **changes):
    fields = CONFIG_FIELDS | {"held_back": HeldBack(measured=20, every_steps=4)} | changes
    target.mkdir(exist_ok=True)
    if not (target / TRAINED_FILE).is_file():
        write_examples(word_examples(fields["questions"], 1), target / TRAINED_FILE)
        write_examples(word_examples(20, 2), target / HELD_BACK_FILE)
    return train_reranker(
        RerankerConfig(**fields),
        ExampleMaking(folder=target, base=None, base_name="none"),
        places=RunPlaces(base=base, target=target, followed=followed),
        listener=Listener(progress=progress, report=report),
    )


def losses(target):
    return [json.loads(line)["loss"] for line in (target / "losses.jsonl").read_text().splitlines()]


def scores(directory, examples):
    model = load_cross_encoder(directory)
    return score_batches(model, pair_batches(model, examples, chunk_pairs=8))


def distance(scores, wanted):
    """How far two tables differ beyond what a shift of each list can mend."""
    difference = (scores - wanted).nan_to_num()
    return (difference - difference.mean(dim=1, keepdim=True)).square().mean().sqrt().item()


def test_a_few_steps_lower_the_loss_and_raise_the_rank(base, tmp_path):
    found = []

    run(base, tmp_path / "run", questions=240, report=found.append)

    taken = losses(tmp_path / "run")
    assert np.mean(taken[-4:]) < 0.7 * np.mean(taken[:4])
    assert [each.step for each in found[:3]] == [-1, 0, 4]
    assert found[-1].ranks["words"] > found[1].ranks["words"]


def test_a_stopped_run_goes_on_to_the_weights_of_one_that_was_not(base, tmp_path):
    whole = run(base, tmp_path / "whole", checkpoint_seconds=0.0)
    with pytest.raises(Stopped):
        run(base, tmp_path / "parts", checkpoint_seconds=0.0, progress=stop_after(7))
    resumed = run(base, tmp_path / "parts", checkpoint_seconds=0.0)

    for name in ("model.safetensors", "ekphory_reranker.safetensors"):
        assert sha256_of(resumed / name) == sha256_of(whole / name)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_the_finished_weights_are_the_mean_of_the_last_steps(base, tmp_path):
    last, mean = (
        load_cross_encoder(run(base, tmp_path / str(share), averaged=share)).parts["match"].bias
        for share in (0.0, 0.5)
    )

    assert float((last - mean).abs().detach()) > 1e-5


def test_a_saved_model_scores_as_before(base, tmp_path):
    model = load_cross_encoder(base)
    examples = word_examples(4, 3)
    model.save(tmp_path / "saved")

    batches = pair_batches(model, examples, chunk_pairs=5)
    before, after = score_batches(model, batches), scores(tmp_path / "saved", examples)
    # In float the last digit depends on how many pairs are multiplied at a time.
    assert torch.allclose(before, after, rtol=0, atol=1e-5)


def test_a_score_stays_with_its_pair_whatever_the_chunks(base):
    model = load_cross_encoder(base)
    examples = word_examples(6, 4)

    whole = score_batches(model, pair_batches(model, examples, chunk_pairs=64))
    small = score_batches(model, pair_batches(model, examples, chunk_pairs=3))

    assert (whole - small).abs().max() < 0.05  # bfloat16


def test_a_new_model_ranks_by_the_cosine_of_its_base(base):
    model = load_cross_encoder(base)

    assert model.parts["match"].weight.item() == 10.0
    assert torch.equal(model.parts["projection"].weight, torch.eye(32))


def test_a_model_of_some_layers_follows_the_whole_one(base, tmp_path):
    loss = RerankLossWeights(contrast=0.0, soft=0.0, following=1.0)

    model = run(base, tmp_path / "run", layers=(1,), loss=loss, questions=160)

    assert json.loads((model / "config.json").read_text())["num_hidden_layers"] == 1
    taken = losses(tmp_path / "run")
    assert np.mean(taken[-4:]) < np.mean(taken[:4])


def test_a_model_goes_on_following_another_one(base, tmp_path):
    loss = RerankLossWeights(contrast=0.0, soft=0.0, following=1.0)
    larger = run(base, tmp_path / "larger", questions=240)

    model = run(base, tmp_path / "run", followed=larger, loss=loss, questions=240)

    examples = word_examples(20, 3)
    wanted, before, after = (scores(each, examples) for each in (larger, base, model))
    assert distance(after, wanted) < 0.7 * distance(before, wanted)


def test_a_configuration_that_follows_asks_for_a_model(base, tmp_path):
    loss = RerankLossWeights(following=1.0)

    with pytest.raises(InvalidInput, match="Give its directory as `--followed`"):
        run(base, tmp_path / "run", loss=loss)
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_a_refused_run_leaves_no_target(base, tmp_path):
    with pytest.raises(InvalidInput, match="follows no model"):
        train_reranker(
            RerankerConfig(**CONFIG_FIELDS),
            ExampleMaking(folder=tmp_path, base=None, base_name="none"),
            places=RunPlaces(base=base, target=tmp_path / "run", followed=base),
            listener=Listener(progress=silent, report=silent),
        )
    assert not (tmp_path / "run").exists()


def test_a_model_without_a_head_is_not_followed(base, tmp_path):
    loss = RerankLossWeights(following=1.0)

    with pytest.raises(InvalidInput, match=r"has no ekphory_reranker\.safetensors"):
        run(base, tmp_path / "run", followed=base, loss=loss)


def test_a_model_that_reads_other_tokens_is_not_followed(base, tmp_path):
    loss = RerankLossWeights(following=1.0)
    other = run(base, tmp_path / "other")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    last = max(vocabulary, key=vocabulary.get)
    tokenizer["model"]["vocab"] = {
        f"{word}s" if word == last else word: number for word, number in vocabulary.items()
    }
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))

    with pytest.raises(InvalidInput, match="reads other tokens than the base"):
        run(base, tmp_path / "run", followed=other, loss=loss)


def test_a_run_that_followed_another_model_is_refused(base, tmp_path):
    loss = RerankLossWeights(following=1.0)
    larger = run(base, tmp_path / "larger")
    run(base, tmp_path / "run", followed=larger, loss=loss)
    other = run(base, tmp_path / "other", questions=240)

    with pytest.raises(InvalidInput, match="holds a run with another data"):
        run(base, tmp_path / "run", followed=other, loss=loss)


def test_a_layer_that_is_not_there_is_refused(base):
    with pytest.raises(InvalidInput, match="the base has 2"):
        with_layers(load_cross_encoder(base), [0, 2])


def test_word_vectors_stay(base, tmp_path):
    model = run(base, tmp_path / "run")

    before, after = (load_cross_encoder(each).parts["encoder"].embeddings for each in (base, model))
    assert torch.equal(before.word_embeddings.weight, after.word_embeddings.weight)
    assert not torch.equal(before.token_type_embeddings.weight, after.token_type_embeddings.weight)


def test_a_run_with_other_settings_is_not_gone_on_with(base, tmp_path):
    run(base, tmp_path / "run")

    with pytest.raises(InvalidInput, match="another config"):
        run(base, tmp_path / "run", learning_rate=1e-5)
