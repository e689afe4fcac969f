"""AgentRank's names and its own layout, read by the package that AgentRank publishes."""

import numpy as np
import pytest
from tests.models.tiny_components import TEXTS, write_tiny_embedder

from ekphory.errors import InvalidInput
from ekphory.models import AgentRankEmbedder, AgentRankReranker, Embedder
from ekphory.models.loading import load_local_embedder, load_reranker
from ekphory.models.reranker import model_id

AGES, TYPES = [0, 20, 400], ["semantic", "unknown", "episodic"]
FILE = "agentrank_components.pt"


@pytest.fixture
def model(tmp_path):
    return AgentRankEmbedder.from_pretrained(write_tiny_embedder(tmp_path / "source"))


def load_published(directory):
    return pytest.importorskip("agentrank").AgentRankEmbedder.from_pretrained(str(directory))


@pytest.mark.torch
def test_the_published_package_loads_what_is_saved_and_gives_the_same_vectors(model, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    theirs = load_published(tmp_path / "saved")
    # With an age and without a type ours predicts one.
    for given in ({}, {"temporal_info": AGES, "memory_types": TYPES}):
        expected = theirs.encode(TEXTS, show_progress=False, **given).numpy()
        assert np.abs(model.encode(TEXTS, **given) - expected).max() <= 1e-5


@pytest.mark.torch
def test_the_published_importance_head_says_what_the_model_says(model, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    theirs = load_published(tmp_path / "saved").eval()

    tokens = theirs.tokenizer(TEXTS, padding=True, return_tensors="pt")
    found = theirs(tokens["input_ids"], tokens["attention_mask"], return_importance=True)

    expected = model.importance(TEXTS)
    assert np.abs(found["importance"].detach().numpy()[:, 0] - expected).max() <= 1e-6


@pytest.mark.torch
def test_what_agentrank_saves_over_it_is_loaded_in_its_place(model, tmp_path):
    import torch

    model.save_pretrained(tmp_path)
    theirs = load_published(tmp_path)
    with torch.no_grad():
        theirs.projection.weight.mul_(-1)
        theirs.projection.bias.zero_()
    theirs.save_pretrained(str(tmp_path))

    loaded = AgentRankEmbedder.from_pretrained(tmp_path)

    expected = theirs.encode(TEXTS, show_progress=False).numpy()
    assert np.abs(loaded.encode(TEXTS) - expected).max() <= 1e-5


@pytest.mark.torch
def test_a_directory_of_both_layouts_keeps_the_type_head(model, tmp_path):
    model.save_pretrained(tmp_path)

    loaded = Embedder.from_pretrained(tmp_path)

    assert (tmp_path / FILE).is_file()
    assert loaded.memory_type(TEXTS) == model.memory_type(TEXTS)
    # It is saved over itself, and is then of one layout again only where it is asked for.
    AgentRankEmbedder.from_pretrained(tmp_path).save_pretrained(tmp_path)
    with pytest.raises(InvalidInput, match="would be loaded instead"):
        loaded.save_pretrained(tmp_path)


@pytest.mark.torch
def test_a_model_without_age_and_type_has_no_agentrank_layout(model, tmp_path):
    plain = write_tiny_embedder(tmp_path / "plain")
    (plain / "ekphory_components.safetensors").unlink()

    with pytest.raises(InvalidInput, match="an importance head"):
        AgentRankEmbedder.from_pretrained(plain).save_pretrained(tmp_path / "saved")


@pytest.mark.torch
@pytest.mark.slow
def test_the_bundled_model_is_saved_for_the_published_package(tmp_path):
    bundled = AgentRankEmbedder.from_pretrained("bundled")
    bundled.save_pretrained(tmp_path)

    theirs = load_published(tmp_path)
    found = theirs.encode(["I prefer tea"], [3], ["semantic"], show_progress=False).numpy()

    ours = bundled.encode("I prefer tea", days_ago=3, memory_type="semantic")
    assert float((found * ours).sum()) > 0.99  # 8 bits against float


def test_ages_and_types_are_given_by_either_name():
    model = AgentRankEmbedder.from_pretrained("bundled")

    by_package = model.encode(["I prefer tea"], temporal_info=[3], memory_types=["semantic"])
    by_card = model.encode("I prefer tea", days_ago=3, memory_type="semantic")

    assert np.array_equal(by_package, by_card)


@pytest.mark.torch
def test_it_is_asked_with_all_that_the_published_package_takes(model, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    asked = {"batch_size": 2, "show_progress": False, "max_length": 4}

    expected = load_published(tmp_path / "saved").encode(TEXTS, AGES, TYPES, **asked).numpy()

    assert np.abs(model.encode(TEXTS, AGES, TYPES, **asked) - expected).max() <= 1e-5
    assert np.abs(model.encode(TEXTS, AGES, TYPES) - expected).max() > 1e-3
    named = AgentRankEmbedder(model_name=str(tmp_path / "saved"))
    assert np.array_equal(named.encode(TEXTS), model.encode(TEXTS))


def test_what_cannot_be_used_is_told_by_the_name_that_it_was_given():
    model = AgentRankEmbedder.from_pretrained("bundled")
    with pytest.raises(InvalidInput, match=r"^temporal_info=\[1\]: 1 for 2 texts"):
        model.encode(["tea", "milk"], temporal_info=[1])
    with pytest.raises(InvalidInput, match=r"^memory_types='seasonal'"):
        model.encode(["tea"], memory_types=["seasonal"])
    with pytest.raises(InvalidInput, match=r"^days_ago='soon'"):
        model.encode(["tea"], days_ago="soon")
    with pytest.raises(InvalidInput, match=r"^texts="):
        model.encode([None], max_length=8)
    with pytest.raises(InvalidInput, match=r"^max_length=0"):
        model.encode(["tea"], max_length=0)
    with pytest.raises(InvalidInput, match=r"^temporal_info=\[1\]: is given beside days_ago"):
        model.encode(["tea"], temporal_info=[1], days_ago=2)


def test_a_saved_model_has_a_card_whose_metadata_hubs_read(tmp_path):
    results = {"AgentMem": {"MRR": 0.6375, "NDCG@10": 0.6797}}

    Embedder.from_pretrained("bundled").save_pretrained(tmp_path, formats=["onnx"], results=results)

    yaml = pytest.importorskip("yaml")
    card = (tmp_path / "README.md").read_text()
    data = yaml.safe_load(card.split("---\n")[1])
    assert data["license"] == "apache-2.0"
    assert data["library_name"] == "sentence-transformers"
    (entry,) = data["model-index"]
    assert entry["name"] == "ekphory-small"
    assert entry["results"][0]["dataset"] == {"type": "agentmem", "name": "AgentMem"}
    told = {"type": "ndcg@10", "value": 0.6797, "name": "NDCG@10"}
    assert entry["results"][0]["metrics"][1] == told
    assert "| AgentMem | MRR | 0.6375 |" in card


@pytest.mark.torch
def test_the_hubs_own_library_reads_the_results(tmp_path):
    from huggingface_hub import ModelCard

    results = {"LoCoMo": {"MAP": 0.5}}
    Embedder.from_pretrained("bundled").save_pretrained(tmp_path, formats=["onnx"], results=results)

    (result,) = ModelCard.load(tmp_path / "README.md").data.eval_results
    assert (result.dataset_name, result.metric_type, result.metric_value) == ("LoCoMo", "map", 0.5)


@pytest.mark.parametrize("row", [{"MAP": float("nan")}, {"MAP": "high"}, 0.5])
def test_a_result_that_is_not_a_number_is_refused(tmp_path, row):
    model, results = Embedder.from_pretrained("bundled"), {"LoCoMo": row}
    with pytest.raises(InvalidInput, match="results"):
        model.save_pretrained(tmp_path, formats=["onnx"], results=results)


def test_a_reranker_gives_the_best_candidates_with_their_probabilities():
    reranker = AgentRankReranker.from_pretrained("bundled")
    memories = ["The sky was grey", "I prefer Python for backends", "Lunch was late"]

    ranked = reranker.rerank("What language does the user prefer?", memories, top_k=2)

    assert len(ranked) == 2
    assert ranked[0][1] == "I prefer Python for backends"
    assert 1 >= ranked[0][0] > ranked[1][0] >= 0


def test_both_are_constructed_by_a_name_or_around_a_model_that_is_loaded():
    embedders = (AgentRankEmbedder("bundled"), AgentRankEmbedder(load_local_embedder("bundled")))
    rerankers = (AgentRankReranker("bundled"), AgentRankReranker(load_reranker("bundled")))

    for embedder in embedders:
        assert embedder.encode("I prefer tea").shape == (1, 384)
    for reranker in rerankers:
        ranked = reranker.rerank("Which drink do I prefer?", ["It rained", "I prefer tea"])
        assert ranked[0][1] == "I prefer tea"


def test_both_are_constructed_by_the_path_of_a_directory():
    embedder, reranker = load_local_embedder("bundled"), load_reranker("ekphory-rerank-tiny")

    assert AgentRankEmbedder(embedder.directory).identity == embedder.identity
    assert AgentRankReranker(reranker.directory).model_id == model_id(reranker)


@pytest.mark.parametrize("made", [AgentRankEmbedder, AgentRankReranker])
@pytest.mark.parametrize("value", [None, 5, "", "/no/such/folder"])
def test_what_names_no_model_is_refused(made, value):
    with pytest.raises(InvalidInput):
        made(value)
