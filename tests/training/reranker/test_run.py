"""Losses of a reranker, and short runs of a tiny encoder over literal examples."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.training.reranker.tiny_reranker import word_examples
from tests.training.trainable_encoder import (
    Stopped,
    losses,
    silent,
    stop_after,
    write_mpnet_encoder,
    write_trainable_encoder,
)

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.torch


if torch:
    from safetensors.torch import load_file, save_file

    from ekphory.errors import InvalidInput
    from ekphory_lab.training.reranker.config import HeldBack, RerankerConfig, RerankLossWeights
    from ekphory_lab.training.reranker.examples import log_loss, write_examples
    from ekphory_lab.training.reranker.models import load_cross_encoder, with_layers
    from ekphory_lab.training.reranker.preparation import (
        HELD_BACK_FILE,
        TRAINED_FILE,
        ExampleMaking,
    )
    from ekphory_lab.training.reranker.run import (
        RerankTargets,
        compare_sequence,
        compare_stages,
        info_nce,
        pair_batches,
        rerank_loss,
        score_batches,
        soft_cross_entropy,
        train_reranker,
    )
    from ekphory_lab.training.run_files import RunPlaces
    from ekphory_lab.training.texts import sha256_of

MAKING = ExampleMaking(folder=Path(), base=None, base_name="none") if torch else None
FOLLOWING = RerankLossWeights(contrast=0.0, soft=0.0, following=1.0) if torch else None


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
    # What is absent does not compete.
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

    assert float(rerank_loss(logits, known, FOLLOWING, logits + 3)) == pytest.approx(0, abs=1e-6)
    assert float(rerank_loss(logits, known, FOLLOWING, logits.flip(1))) > 0.1


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


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_trainable_encoder(tmp_path_factory.mktemp("tiny") / "base")


def run(base, target, *, followed=None, progress=silent, report=silent, **changes):
    fields = CONFIG_FIELDS | {"held_back": HeldBack(measured=20, every_steps=4)} | changes
    target.mkdir(exist_ok=True)
    if not (target / TRAINED_FILE).is_file():
        write_examples(word_examples(fields["questions"], 1), target / TRAINED_FILE)
        write_examples(word_examples(20, 2), target / HELD_BACK_FILE)
    return train_reranker(
        RerankerConfig(**fields),
        MAKING,
        places=RunPlaces(base=base, target=target, followed=followed),
        progress=progress,
        report=report,
    )


@pytest.fixture(scope="module")
def short(base):
    """The model of a run of eight steps."""
    return run(base, base.parent / "short")


@pytest.fixture(scope="module")
def longer(base):
    """The model of a run of thirty steps, and what was reported of it."""
    told = []
    return run(base, base.parent / "longer", questions=240, report=told.append), told


def scores(directory, examples):
    model = load_cross_encoder(directory)
    return score_batches(model, pair_batches(model, examples, chunk_pairs=8))


def distance(scores, wanted):
    """How far two tables differ beyond what a shift of each list can mend."""
    difference = (scores - wanted).nan_to_num()
    return (difference - difference.mean(dim=1, keepdim=True)).square().mean().sqrt().item()


def test_a_few_steps_lower_the_loss_and_raise_the_rank(longer):
    model, told = longer

    taken = losses(model)
    assert np.mean(taken[-4:]) < 0.7 * np.mean(taken[:4])
    assert [each.step for each in told[:3]] == [-1, 0, 4]
    assert told[-1].ranks["words"] > told[1].ranks["words"]


def test_a_stopped_run_goes_on_to_the_weights_of_one_that_was_not(base, short, tmp_path):
    with pytest.raises(Stopped):
        run(base, tmp_path / "parts", checkpoint_seconds=0.0, progress=stop_after(7))
    resumed = run(base, tmp_path / "parts", checkpoint_seconds=0.0)

    for name in ("model.safetensors", "ekphory_reranker.safetensors"):
        assert sha256_of(resumed / name) == sha256_of(short / name)
    assert losses(resumed) == losses(short)


def test_the_finished_weights_are_the_mean_of_the_last_steps(base, short, tmp_path):
    other = run(base, tmp_path / "run", averaged=0.0)

    last, mean = (load_cross_encoder(each).parts["match"].bias for each in (other, short))
    assert float((last - mean).abs().detach()) > 1e-5


def test_a_saved_model_scores_as_before(base, tmp_path):
    model = load_cross_encoder(base)
    examples = word_examples(4, 3)
    model.save(tmp_path / "saved")

    batches = pair_batches(model, examples, chunk_pairs=5)
    before, after = score_batches(model, batches), scores(tmp_path / "saved", examples)
    # In float the last digit depends on how many pairs are multiplied at a time.
    assert torch.allclose(before, after, rtol=0, atol=1e-5)
    # It says by which layout it reads; one that was saved before there were two has the first.
    assert load_cross_encoder(tmp_path / "saved").layout.name == "ekphory-turn-3"
    head = tmp_path / "saved" / "ekphory_reranker.safetensors"
    save_file(load_file(head), head)
    assert load_cross_encoder(tmp_path / "saved").layout.name == "ekphory-turn-2"


def test_a_new_model_ranks_by_the_cosine_of_its_base(base):
    model = load_cross_encoder(base)
    examples = word_examples(6, 4)

    assert model.parts["match"].weight.item() == 10.0
    assert torch.equal(model.parts["projection"].weight, torch.eye(32))
    # A score stays with its pair whatever the chunks.
    whole = score_batches(model, pair_batches(model, examples, chunk_pairs=64))
    small = score_batches(model, pair_batches(model, examples, chunk_pairs=3))
    assert (whole - small).abs().max() < 0.05  # bfloat16


def test_a_model_of_some_layers_follows_the_whole_one(base, tmp_path):
    model = run(base, tmp_path / "run", layers=(1,), loss=FOLLOWING, questions=160)

    assert json.loads((model / "config.json").read_text())["num_hidden_layers"] == 1
    taken = losses(model)
    assert np.mean(taken[-4:]) < np.mean(taken[:4])
    # A layer that is not there is refused.
    with pytest.raises(InvalidInput, match="the base has 2"):
        with_layers(load_cross_encoder(base), [0, 2])


def test_an_exit_leaves_the_first_layers_with_a_head_of_their_own(base, tmp_path):
    model = run(base, tmp_path / "run", exit_layer=1, questions=160)

    whole, early = (load_cross_encoder(each) for each in (model, model.parent / "early"))
    layers = [each.parts["encoder"].encoder.layer for each in (whole, early)]
    assert [len(each) for each in layers] == [2, 1]
    weights = [each[0].output.dense.weight for each in layers]
    assert torch.equal(*weights)
    assert not torch.equal(*(each.parts["match"].bias for each in (whole, early)))
    # An exit after the last layer is refused.
    with pytest.raises(InvalidInput, match="Give a number from 1 to 1"):
        run(base, tmp_path / "late", exit_layer=2)


def test_a_stopped_run_with_an_exit_goes_on_to_the_weights_of_both(base, short, tmp_path):
    how = {"exit_layer": 1, "questions": 32, "followed": short, "loss": FOLLOWING}
    whole = run(base, tmp_path / "whole", **how)
    with pytest.raises(Stopped):
        parts = {"checkpoint_seconds": 0.0, "progress": stop_after(3)}
        run(base, tmp_path / "parts", **how, **parts)
    resumed = run(base, tmp_path / "parts", **how, checkpoint_seconds=0.0)

    for folder in ("model", "early"):
        for name in ("model.safetensors", "ekphory_reranker.safetensors"):
            files = (each.parent / folder / name for each in (whole, resumed))
            assert len({sha256_of(file) for file in files}) == 1


def test_a_model_of_another_vocabulary_is_followed(base, tmp_path):
    larger = load_cross_encoder(write_mpnet_encoder(tmp_path / "mpnet"))
    words = larger.parts["encoder"].get_input_embeddings().weight
    known = larger.tokenizer.token_to_id
    # The layout's marks begin as those that the model knows.
    assert torch.equal(words[known("[SEP]")], words[known("</s>")])
    larger.save(tmp_path / "larger")

    model = run(base, tmp_path / "run", followed=tmp_path / "larger", loss=FOLLOWING, questions=160)

    assert np.mean(losses(model)[-4:]) < np.mean(losses(model)[:4])


@pytest.mark.long
def test_a_model_goes_on_following_another_one(base, short, longer, tmp_path):
    followed, _ = longer

    model = run(base, tmp_path / "run", followed=followed, loss=FOLLOWING, questions=240)

    examples = word_examples(20, 3)
    wanted, before, after = (scores(each, examples) for each in (followed, base, model))
    assert distance(after, wanted) < 0.7 * distance(before, wanted)
    # A run that followed another model is refused.
    with pytest.raises(InvalidInput, match="holds a run with another data"):
        run(base, tmp_path / "run", followed=short, loss=FOLLOWING, questions=240)


def test_what_cannot_be_followed_is_refused(base, tmp_path):
    # A configuration that follows asks for a model.
    with pytest.raises(InvalidInput, match="Give its directory as `--followed`"):
        run(base, tmp_path / "none", loss=FOLLOWING)
    assert not (tmp_path / "none" / "manifest.json").exists()
    # A model without a head is not followed.
    with pytest.raises(InvalidInput, match=r"has no ekphory_reranker\.safetensors"):
        run(base, tmp_path / "headless", followed=base, loss=FOLLOWING)


def test_stages_in_sequence_begin_with_soft_labels_and_end_with_contrast():
    config = RerankerConfig(**CONFIG_FIELDS, stages="sequence", first_stage=0.25)

    assert config.second_stage == 2
    before, after = (config.loss_at(step) for step in (1, 2))
    assert (before.soft, before.contrast) == (1.0, 0.0)
    assert (after.soft, after.contrast) == (0.0, 1.0)
    joint = RerankerConfig(**CONFIG_FIELDS)
    assert joint.loss_at(0) == joint.loss_at(7) == joint.loss


def test_both_ways_to_take_the_loss_are_compared_on_the_same_examples(base, tmp_path):
    (tmp_path / "joint").mkdir()
    write_examples(word_examples(16, 1), tmp_path / "joint" / TRAINED_FILE)
    write_examples(word_examples(8, 2), tmp_path / "joint" / HELD_BACK_FILE)

    found = compare_stages(
        RerankerConfig(**CONFIG_FIELDS | {"questions": 16}, held_back=HeldBack(measured=8)),
        MAKING,
        places=RunPlaces(base=base, target=tmp_path),
        progress=silent,
        report=silent,
    )

    names = ["first stage of retrieval", "joint", "soft labels alone", "sequence"]
    assert sorted(found) == sorted(names)
    assert [found[name].step for name in names] == [-1, 2, 1, 2]
    assert found["first stage of retrieval"].log_loss is None
    assert 0 < found["sequence"].log_loss < 5
    assert found["joint"].log_loss != found["soft labels alone"].log_loss
    one, two = ((tmp_path / name / TRAINED_FILE).read_bytes() for name in ("joint", "sequence"))
    assert one == two
    difference = compare_sequence(found)
    gained = found["sequence"].ranks["all"] - found["joint"].ranks["all"]
    assert difference.difference == pytest.approx(gained, abs=1e-3)
    assert difference.low <= difference.difference <= difference.high


def test_the_log_loss_is_the_mean_over_all_candidates():
    (single,) = word_examples(1, 5)
    logits = np.array([2.0 if each.relevant else -1.0 for each in single.candidates])

    wanted = (math.log1p(math.exp(-2)) + 2 * math.log1p(math.exp(-1))) / 3
    assert log_loss([single], [logits]) == pytest.approx(wanted)


def test_a_refused_run_leaves_no_target(base, tmp_path):
    with pytest.raises(InvalidInput, match="follows no model"):
        train_reranker(
            RerankerConfig(**CONFIG_FIELDS),
            MAKING,
            places=RunPlaces(base=base, target=tmp_path / "run", followed=base),
            progress=silent,
            report=silent,
        )
    assert not (tmp_path / "run").exists()


def test_word_vectors_stay(base, short):
    before, after = (load_cross_encoder(each).parts["encoder"].embeddings for each in (base, short))
    assert torch.equal(before.word_embeddings.weight, after.word_embeddings.weight)
    assert not torch.equal(before.token_type_embeddings.weight, after.token_type_embeddings.weight)


def test_a_run_with_other_settings_is_not_gone_on_with(base, short):
    with pytest.raises(InvalidInput, match="another config"):
        run(base, short.parent, learning_rate=1e-5)
