import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.errors import ModelError
from ekphory.models.onnx_models import OnnxEmbedder, load_bundled

CASES = read_cases(__file__)

# reference_vectors.npy: the trained model in 32-bit float by sentence-transformers, of these
SENTENCES = CASES["sentences"]
REFERENCE = np.load(Path(__file__).parent / "reference_vectors.npy")
BUNDLED = Path(__file__).parents[2] / "src/ekphory/models/bundled/ekphory-small"


@pytest.fixture
def embedder():
    return load_bundled()


@pytest.fixture
def copied_model(tmp_path):
    return shutil.copytree(BUNDLED, tmp_path / "model")


def test_the_bundled_model_gives_nearly_the_vectors_of_the_float_model(embedder):
    # The bundled model gives nearly the vectors of the float model.
    cosines = (embedder.encode(SENTENCES) * REFERENCE).sum(axis=1)

    assert cosines.mean() >= 0.998
    assert cosines.min() >= 0.996
    # Vectors have length one and the recorded dimension.
    vectors = embedder.encode(SENTENCES)

    assert vectors.dtype == np.float32
    assert vectors.shape == (7, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(7), abs=1e-5)
    assert embedder.encode([]).shape == embedder.encode_query([]).shape == (0, 384)
    assert str(embedder.identity) == f"ekphory-small@{embedder.record.revision} (384-d)"
    # The bundled files are small enough for a wheel.
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) <= 35_000_000


def test_a_vector_is_the_same_in_any_batch_and_with_any_threads(embedder):
    # A vector is the same alone in any batch and with any threads.
    alone = np.concatenate([embedder.encode([text]) for text in SENTENCES])

    together = embedder.encode(SENTENCES * 40)
    one_thread = OnnxEmbedder(BUNDLED, threads=1).encode(SENTENCES)

    assert np.abs(together - np.tile(alone, (40, 1))).max() <= 1e-4
    assert np.abs(one_thread - alone).max() <= 1e-4
    # Threads that share the embedder get the vectors of their texts.
    expected = embedder.encode(SENTENCES)

    with ThreadPoolExecutor(7) as threads:
        found = list(threads.map(lambda text: embedder.encode([text])[0], SENTENCES * 5))

    assert np.abs(np.array(found) - np.tile(expected, (5, 1))).max() <= 1e-4


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "a\0b", "\ud800", "x\udfffy", "\u200b", "\U0010ffff"]
)
def test_odd_characters_give_a_finite_vector(embedder, text):
    assert np.isfinite(embedder.encode([text])).all()
    assert embedder.windows(text) == [text]


def test_a_text_of_ten_megabytes_is_embedded_by_its_beginning(embedder):
    beginning = "The cat sleeps on the mat. " * 400

    huge = embedder.encode([beginning + "x" * 10_000_000])

    assert np.abs(huge - embedder.encode([beginning])).max() <= 1e-4


def change_record(model, old, new):
    record = model / "model.json"
    record.write_text(record.read_text().replace(old, new))


def test_prompts_of_the_record_stand_before_queries_and_passages(embedder, copied_model):
    for name, prompt in (("query", "q: "), ("passage", "p: ")):
        change_record(copied_model, f'"{name}": ""', f'"{name}": "{prompt}"')

    prompted = OnnxEmbedder(copied_model)

    plain = embedder.encode(["q: tea", "p: tea"])
    assert np.array_equal(prompted.encode_query(["tea"])[0], plain[0])
    assert np.array_equal(prompted.encode(["tea"])[0], plain[1])
    assert np.array_equal(embedder.encode_query(["tea"]), embedder.encode(["tea"]))


def test_a_record_without_normalisation_gives_the_plain_mean(copied_model):
    change_record(copied_model, '"normalise": true', '"normalise": false')

    pooled = OnnxEmbedder(copied_model).encode(SENTENCES)

    lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
    assert lengths.min() > 1.5
    # The projection that the mean has not gone through is next to the identity.
    assert (pooled / lengths * load_bundled().encode(SENTENCES)).sum(axis=1).min() >= 0.997


def test_a_long_text_is_split_into_pieces_that_start_with_the_prefix(embedder):
    # A long text is split into pieces that fit and start with the prefix.
    text = "".join(f"Sentence number {number} is about a walk. " for number in range(300))

    pieces = embedder.windows(text, prefix="Anna: ")

    assert all(piece.startswith("Anna: Sentence number ") for piece in pieces)
    assert all(piece.endswith("walk. ") for piece in pieces)
    assert all(token_count(embedder, piece) <= 256 for piece in pieces)
    assert all(any(f"number {number} is" in piece for piece in pieces) for number in range(300))
    # A prefix longer than the window is cut and the text is kept.
    text = "one two three four five six seven. " * 30

    pieces = embedder.windows(text, prefix="very " * 500)

    assert all(piece.startswith("very very ") for piece in pieces)
    assert all(token_count(embedder, piece) <= 256 for piece in pieces)
    assert pieces[-1].endswith("six seven. ")
    assert embedder.windows("I like tea.", prefix="Anna: ") == ["Anna: I like tea."]


def test_a_text_of_a_token_for_each_character_is_split_where_it_no_longer_fits(embedder):
    for length, count in ((252, 1), (253, 1), (254, 1), (255, 2)):
        pieces = embedder.windows("!" * length)
        assert len(pieces) == count
        assert all(token_count(embedder, piece) <= 256 for piece in pieces)


@given(st.text(max_size=3000), st.text(max_size=30))
@settings(max_examples=40, deadline=None)
def test_every_piece_of_any_text_fits_the_model(text, prefix):
    embedder = load_bundled()

    for piece in embedder.windows(text * 3, prefix=prefix):
        assert piece.startswith(prefix)
        assert token_count(embedder, piece) <= 256


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "model.json"])
def test_a_file_cut_short_or_missing_is_refused_with_the_remedy(copied_model, name):
    path = copied_model / name
    path.write_bytes(path.read_bytes()[:1000])

    problem = rf"{name}: (1000 bytes|not the record).*einstall the package"
    with pytest.raises(ModelError, match=problem):
        OnnxEmbedder(copied_model)
    path.unlink()
    with pytest.raises(ModelError, match=name):
        OnnxEmbedder(copied_model)


def test_importing_the_protocol_does_not_import_onnxruntime():
    code = "import sys, ekphory.models.embedder, ekphory.models.loading; "
    code += "sys.exit('onnxruntime' in sys.modules or 'tokenizers' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def token_count(embedder, text):
    return len(embedder._tokenizer.encode(text.encode("utf-8", "replace").decode()).ids)
