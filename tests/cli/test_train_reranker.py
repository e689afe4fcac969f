import importlib.util

import pytest

INSTALLED = importlib.util.find_spec("torch") is not None
PLACES = ("--data", "data", "--base", "base", "--target", "target")


@pytest.mark.skipif(INSTALLED, reason="the [torch] extra is installed")
def test_without_torch_the_extra_is_named(ekphory):
    assert "ekphory[torch]" in ekphory.failure("train", "reranker", *PLACES)


@pytest.mark.torch
def test_an_unknown_configuration_is_named(ekphory):
    sentence = ekphory.failure("train", "reranker", *PLACES, "--config", "huge")

    assert "huge" in sentence
    assert "small, tiny, refined" in sentence


@pytest.mark.torch
def test_a_chat_teacher_needs_a_configured_model(ekphory, monkeypatch):
    monkeypatch.delenv("EKPHORY_CHAT_URL", raising=False)

    sentence = ekphory.failure("train", "reranker", *PLACES, "--teacher", "chat")

    assert "EKPHORY_CHAT_URL" in sentence


def test_a_bundled_reranker_is_unpacked_by_its_name(ekphory, tmp_path):
    target = tmp_path / "weights"

    told = ekphory.run(
        "train", "unpack", "--source", "ekphory-rerank-tiny", "--target", str(target)
    ).stdout

    assert "unpacked from ekphory-rerank-tiny" in told
    assert sorted(path.name for path in target.iterdir()) == [
        "config.json",
        "ekphory_reranker.safetensors",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_what_is_no_model_to_unpack_is_named(ekphory, tmp_path):
    sentence = ekphory.failure(
        "train", "unpack", "--source", "ekphory-rerank-huge", "--target", str(tmp_path / "out")
    )

    assert "source='ekphory-rerank-huge': no such directory" in sentence
    assert "ekphory-rerank-small, ekphory-rerank-tiny" in sentence


def test_an_export_without_a_model_says_what_is_missing(ekphory, tmp_path):
    from tests.training.reranker.tiny_reranker import word_examples

    from ekphory_lab.training.reranker.examples import write_examples

    write_examples(word_examples(8, 1), tmp_path / "held_back.jsonl.gz")
    sentence = ekphory.failure(
        "train", "export-reranker", "--source", str(tmp_path), "--target", str(tmp_path / "out"),
        "--calibration", str(tmp_path / "held_back.jsonl.gz"),
    )  # fmt: skip

    assert "tokenizer.json: no such file" in sentence
