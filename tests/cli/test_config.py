from pathlib import Path

import pytest

from ekphory.config import Settings, default_store, read_settings


def test_the_environment_names_the_store_the_scope_and_the_embedder():
    environment = {
        "EKPHORY_STORE": "/data/memories",
        "EKPHORY_EMBEDDER": "http://127.0.0.1:8080/v1",
        "EKPHORY_ORG": "acme",
        "EKPHORY_PROJECT": "kitchen",
        "EKPHORY_AGENT": "cook",
        "EKPHORY_USER": "anna",
        "EKPHORY_SESSION": "monday",
    }
    assert read_settings(environment) == Settings(
        store="/data/memories",
        embedder="http://127.0.0.1:8080/v1",
        org="acme",
        project="kitchen",
        agent="cook",
        user="anna",
        session="monday",
    )


def test_the_environment_names_the_model_services():
    environment = {
        "EKPHORY_EMBEDDER_MODEL": "large",
        "EKPHORY_EMBEDDER_API_KEY": "k1",
        "EKPHORY_RERANKER": "https://rerank.example/v2",
        "EKPHORY_RERANKER_PROTOCOL": "cohere",
        "EKPHORY_RERANKER_MODEL": "rerank-v3.5",
        "EKPHORY_RERANKER_API_KEY": "k2",
        "EKPHORY_RERANKER_SCORES": "logit",
        "EKPHORY_RERANKER_CALIBRATION": "card.json",
        "EKPHORY_PRESET": "accurate",
        "EKPHORY_CHAT_URL": "http://127.0.0.1:8080/v1",
        "EKPHORY_CHAT_MODEL": "small",
        "EKPHORY_CHAT_API_KEY": "k3\n",
    }
    assert read_settings(environment) == Settings(
        store=default_store(),
        embedder_model="large",
        embedder_api_key="k1",
        reranker="https://rerank.example/v2",
        reranker_protocol="cohere",
        reranker_model="rerank-v3.5",
        reranker_api_key="k2",
        reranker_scores="logit",
        reranker_calibration="card.json",
        preset="accurate",
        chat_url="http://127.0.0.1:8080/v1",
        chat_model="small",
        chat_api_key="k3",
    )


@pytest.mark.parametrize(
    "key", ["EMBEDDER_API_KEY", "RERANKER_API_KEY", "CHAT_API_KEY", "SERVE_KEY"]
)
def test_a_key_is_not_in_the_repr(key):
    settings = read_settings({f"EKPHORY_{key}": "geheim"})
    assert getattr(settings, key.lower()) == "geheim"

    assert "geheim" not in repr(settings)


def test_an_empty_variable_counts_as_none():
    settings = read_settings({"EKPHORY_STORE": "", "EKPHORY_USER": ""})
    assert (settings.store, settings.user) == (default_store(), None)


def test_the_default_store_lies_in_a_folder_of_its_own():
    assert Path(default_store()).parts[-2:] == ("ekphory", "memories")
