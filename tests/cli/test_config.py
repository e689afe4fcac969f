from pathlib import Path

from recollect.config import Settings, default_store, read_settings


def test_the_environment_names_the_store_the_scope_and_the_embedder():
    environment = {
        "RECOLLECT_STORE": "/data/memories",
        "RECOLLECT_EMBEDDER": "http://127.0.0.1:8080/v1",
        "RECOLLECT_ORG": "acme",
        "RECOLLECT_PROJECT": "kitchen",
        "RECOLLECT_AGENT": "cook",
        "RECOLLECT_USER": "anna",
        "RECOLLECT_SESSION": "monday",
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


def test_an_empty_variable_counts_as_none():
    settings = read_settings({"RECOLLECT_STORE": "", "RECOLLECT_USER": ""})
    assert (settings.store, settings.user) == (default_store(), None)


def test_the_default_store_lies_in_a_folder_of_its_own():
    assert Path(default_store()).parts[-2:] == ("recollect", "memories")
