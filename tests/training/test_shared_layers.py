"""The lower layers that readers share, cut out of an exported reranker."""

from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from onnx import load_from_string

from ekphory.errors import ModelError
from ekphory.models.model_record import read_reranker_record, seal_reranker
from ekphory.models.onnx_models import OnnxSession, PairTokens
from ekphory.models.reranker import SMALL_RERANKER, bundled_directory
from ekphory.models.shared_layers import HIDDEN, SharedLayers, cut_graph
from ekphory_lab.training.reader_export import export_shared_layers

PAIRS = [PairTokens([101, 2073, 102, 4199, 102], [0, 0, 0, 1, 1]), PairTokens([101, 102], [0, 0])]


@pytest.mark.slow
def test_exported_layers_give_what_the_reranker_gives_in_its_second_layer(tmp_path):
    source = bundled_directory(SMALL_RERANKER)
    revision = export_shared_layers(source, tmp_path)

    shared = SharedLayers(tmp_path)
    assert (shared.name, shared.revision) == ("ekphory-shared-layers", revision)
    second = "LayerNormalization_54_0"
    whole = OnnxSession(cut_graph((source / "model.onnx").read_bytes(), second), name="whole")
    ids, type_ids = [pair.ids for pair in PAIRS], [pair.type_ids for pair in PAIRS]
    (wanted,) = whole.run([second], ids, type_ids=type_ids)
    found = shared.run(PAIRS)
    assert np.array_equal(found[HIDDEN], wanted)
    assert found["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]


def test_layers_whose_file_was_changed_are_refused(tmp_path):
    export_shared_layers(bundled_directory(SMALL_RERANKER), tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"other")
    with pytest.raises(ModelError, match="its record says"):
        SharedLayers(tmp_path)


@pytest.fixture
def reranker(tmp_path):
    return Path(copytree(bundled_directory(SMALL_RERANKER), tmp_path / "reranker"))


def test_a_damaged_reranker_is_refused(reranker, tmp_path):
    (reranker / "model.onnx").write_bytes(b"other")
    with pytest.raises(ModelError, match="its record says"):
        export_shared_layers(reranker, tmp_path / "layers")
    assert not (tmp_path / "layers").exists()


def test_a_reranker_with_other_vectors_of_words_is_refused(reranker, tmp_path):
    path = reranker / "model.onnx"
    content = path.read_bytes()
    tables = {each.name: each.raw_data for each in load_from_string(content).graph.initializer}
    words = tables["constant_1"]
    path.write_bytes(content.replace(words, words[1:] + words[:1]))
    seal_reranker(read_reranker_record(reranker), reranker)
    with pytest.raises(ModelError, match="has other vectors of words than the bundled"):
        export_shared_layers(reranker, tmp_path / "layers")
    assert not (tmp_path / "layers").exists()
