from pathlib import Path

import pytest
from tests.cases import read_tables

from ekphory.config import Settings, default_store, read_settings


def test_the_environment_names_the_store_the_scope_and_the_model_services():
    named = read_tables(__file__)["named"]
    environment = {f"EKPHORY_{name.upper()}": value for name, value in named.items()}
    assert read_settings(environment) == Settings(**named)


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
