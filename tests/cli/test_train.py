import json

from tests.training.tiny_encoder import TEXTS, write_tiny_encoder

from ekphory.models.onnx_embedder import OnnxEmbedder


def test_the_exported_model_loads(ekphory, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    write_tiny_encoder(source)
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    result = ekphory.run(
        "train", "export", "--source", str(source), "--target", str(target), "--name", "tiny",
        "--calibration", str(texts),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{target}: tiny@")
    assert OnnxEmbedder(target).encode(["the cat"]).shape == (1, 32)


def test_a_missing_model_is_named(ekphory, tmp_path):
    sentence = ekphory.failure(
        "train", "export", "--source", str(tmp_path / "nowhere"), "--target", str(tmp_path / "out")
    )
    assert "nowhere" in sentence
    assert not (tmp_path / "out").exists()
