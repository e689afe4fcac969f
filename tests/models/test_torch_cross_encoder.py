"""A `CrossEncoder` gives here what it gives in sentence-transformers."""

from functools import partial

import numpy as np
import pytest
from tests.models.tiny_rerankers import first_seed, write_cross_encoder, write_yes_no_model

from ekphory.errors import ModelError
from ekphory.models.agent_reranker import Reranker
from ekphory.models.reranker import RerankPassage, RerankQuery
from ekphory.models.torch_reranker import TorchCrossEncoder

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
QUESTION = "What is the capital of China?"
TEXTS = ["The capital is Beijing.", "", "Python is popular", "A programming language. " * 50]


@pytest.fixture(scope="module")
def seed(tmp_path_factory):
    return first_seed(tmp_path_factory.mktemp("seeds"), write_cross_encoder, TorchCrossEncoder)


@pytest.fixture(scope="module")
def directory(tmp_path_factory, seed):
    return write_cross_encoder(tmp_path_factory.mktemp("cross"), seed=seed)


@pytest.fixture(scope="module")
def original(directory):
    from sentence_transformers import CrossEncoder

    return CrossEncoder(str(directory), device="cpu")


@pytest.fixture(scope="module")
def reranker(directory):
    return Reranker.from_pretrained(directory)


def test_raw_scores_are_what_predict_gives(reranker, original):
    expected = original.predict([(QUESTION, text) for text in TEXTS])
    assert np.abs(reranker.raw_scores(QUESTION, TEXTS) - expected).max() < 1e-4


def test_a_model_without_an_activation_gives_its_logits_and_their_probabilities(directory):
    import torch
    from sentence_transformers import CrossEncoder

    plain = CrossEncoder(str(directory), device="cpu", activation_fn=torch.nn.Identity())
    plain.save(str(directory.parent / "plain"))
    expected = plain.predict([(QUESTION, text) for text in TEXTS])
    sigmoid = plain.predict([(QUESTION, text) for text in TEXTS], activation_fn=torch.nn.Sigmoid())
    reranker = Reranker.from_pretrained(directory.parent / "plain")
    assert np.abs(reranker.raw_scores(QUESTION, TEXTS) - expected).max() < 1e-4
    assert np.abs(reranker.score(QUESTION, TEXTS) - sigmoid).max() < 1e-4


def test_the_ranking_is_that_of_rank(reranker, original):
    expected = original.rank(QUESTION, TEXTS, top_k=3)
    found = reranker.rank(QUESTION, TEXTS, top_n=3)
    assert [each.index for each in found] == [each["corpus_id"] for each in expected]
    assert [each.raw_score for each in found] == pytest.approx(
        [each["score"] for each in expected], abs=1e-4
    )


def test_an_instruction_takes_the_place_of_the_models_prompt(tmp_path):
    prompted = partial(write_cross_encoder, prompts={"query": "Answer: ", "other": "Popular: "})
    seed = first_seed(tmp_path, prompted, TorchCrossEncoder)
    reranker = TorchCrossEncoder(str(prompted(tmp_path, seed=seed)))
    from sentence_transformers import CrossEncoder

    original = CrossEncoder(str(tmp_path / "model"), device="cpu")
    pairs = [(QUESTION, text) for text in TEXTS]
    passages = [RerankPassage(text) for text in TEXTS]
    by_default = reranker.judge(RerankQuery(QUESTION), passages).raw
    told = reranker.judge(RerankQuery(QUESTION, instruction="Popular: "), passages).raw
    assert np.abs(by_default - original.predict(pairs)).max() < 1e-4
    assert np.abs(told - original.predict(pairs, prompt_name="other")).max() < 1e-4
    assert np.abs(told - by_default).max() > 1e-3


def test_what_is_known_is_read_in_words(reranker, original):
    documents = [{"text": "A language.", "producer": "Ben", "at": "2023-05-08", "type": "semantic"}]
    expected = original.predict(
        [
            (
                "The dialogue so far:\nAnna: Python\nAsked on 9 May 2023: What is it?",
                "[8 May 2023, semantic memory] Ben: A language.",
            )
        ]
    )
    found = reranker.raw_scores(
        "What is it?", documents, context=[{"role": "Anna", "content": "Python"}], now="2023-05-09"
    )
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_score_does_not_depend_on_its_batch(reranker):
    together = reranker.raw_scores(QUESTION, TEXTS)
    alone = [reranker.raw_scores(QUESTION, [text])[0] for text in TEXTS]
    assert np.abs(together - alone).max() < 1e-4


def test_no_document_gives_no_score(reranker):
    assert reranker.score(QUESTION, []).shape == (0,)


def test_a_model_that_ranks_the_probes_wrongly_is_refused(tmp_path):
    wrong = first_seed(tmp_path, write_cross_encoder, TorchCrossEncoder, ranks_rightly=False)
    directory = write_cross_encoder(tmp_path / "wrong", seed=wrong)
    with pytest.raises(ModelError, match=r"failed the check at loading: for '.*' it scores"):
        Reranker.from_pretrained(directory)


def test_a_classifier_of_several_classes_is_no_reranker(tmp_path):
    with pytest.raises(ModelError, match="has 3 labels"):
        TorchCrossEncoder(str(write_cross_encoder(tmp_path, seed=0, labels=3)))


def test_a_directory_without_a_model_is_told(tmp_path):
    with pytest.raises(ModelError, match="cannot read the model's configuration"):
        Reranker.from_pretrained(tmp_path)


def write_causal(directory, *, seed):
    """Write a `CrossEncoder` made of a language model, which answers `the` or `no`."""
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.cross_encoder.modules import LogitScore

    plain = write_yes_no_model(directory / "plain", seed=seed)
    language_model = Transformer(str(plain), transformer_task="text-generation")
    yes, no = language_model.tokenizer.convert_tokens_to_ids(["the", "no"])
    CrossEncoder(modules=[language_model, LogitScore(yes, no)], device="cpu").save(
        str(directory / "model")
    )
    return directory / "model"


def test_a_language_model_that_is_a_cross_encoder_gives_what_its_own_predict_gives(tmp_path):
    from sentence_transformers import CrossEncoder

    seed = first_seed(tmp_path, write_causal, TorchCrossEncoder)
    directory = write_causal(tmp_path / "chosen", seed=seed)
    texts = [text for text in TEXTS if text]
    expected = CrossEncoder(str(directory), device="cpu").predict([(QUESTION, t) for t in texts])

    found = Reranker.from_pretrained(directory).raw_scores(QUESTION, texts)

    assert np.abs(found - expected).max() < 1e-4
