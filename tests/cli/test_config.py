from pathlib import Path

import pytest

from ekphory.config import Settings, default_store, read_settings

NAMED = {
    "store": "/data/memories",
    "embedder": "http://127.0.0.1:8080/v1",
    "org": "acme",
    "project": "kitchen",
    "agent": "cook",
    "user": "anna",
    "session": "monday",
    "embedder_model": "large",
    "reranker": "https://rerank.example/v2",
    "reranker_protocol": "cohere",
    "reranker_model": "rerank-v3.5",
    "reranker_scores": "logit",
    "reranker_calibration": "card.json",
    "preset": "accurate",
    "chat_url": "http://127.0.0.1:8080/v1",
    "chat_model": "small",
}


def test_the_environment_names_the_store_the_scope_and_the_model_services():
    environment = {f"EKPHORY_{name.upper()}": value for name, value in NAMED.items()}
    assert read_settings(environment) == Settings(**NAMED)


@pytest.mark.parametrize(
    "key", ["EMBEDDER_API_KEY", "RERANKER_API_KEY", "CHAT_API_KEY", "SERVE_KEY"]
)
def test_a_key_is_read_without_its_line_end_and_is_not_in_the_repr(key):
    settings = read_settings({f"EKPHORY_{key}": "geheim\n"})
    assert getattr(settings, key.lower()) == "geheim"
    assert "geheim" not in repr(settings)


def test_an_empty_variable_counts_as_none():
    settings = read_settings({"EKPHORY_STORE": "", "EKPHORY_USER": ""})
    assert (settings.store, settings.user) == (default_store(), None)
    assert Path(default_store()).parts[-2:] == ("ekphory", "memories")
