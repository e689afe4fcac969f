"""Fitted constants lie in files that say which models they hold for."""

import json

import pytest

from ekphory.errors import ModelError
from ekphory.retrieval.calibration import FittedFile, read_fitted, require_models, write_fitted

CURVE = FittedFile(
    kind="probabilities",
    command="ekphory train calibration",
    models={"embedder": "ekphory-small@1f"},
    data={"sentences.jsonl": "ab12"},
    seed=5,
    measured={"best hit": 0.02},
    values={"slope": 1.5},
)


def test_what_was_written_is_read_back(tmp_path):
    write_fitted(tmp_path / "fitted" / "curve.json", CURVE)
    assert read_fitted(tmp_path / "fitted" / "curve.json", kind="probabilities") == CURVE


def test_a_file_is_replaced_and_leaves_no_part_behind(tmp_path):
    write_fitted(tmp_path / "curve.json", CURVE)
    write_fitted(tmp_path / "curve.json", CURVE)
    assert [path.name for path in tmp_path.iterdir()] == ["curve.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "kind": "gate"}'])
def test_what_is_no_such_file_is_refused_by_its_name(tmp_path, text):
    (tmp_path / "curve.json").write_text(text)
    with pytest.raises(ModelError, match=r"curve\.json: must be a file of fitted constants"):
        read_fitted(tmp_path / "curve.json", kind="probabilities")


def test_a_missing_file_is_refused_by_its_name(tmp_path):
    with pytest.raises(ModelError, match=r"curve\.json: must be a file"):
        read_fitted(tmp_path / "curve.json", kind="probabilities")


def test_constants_of_another_kind_are_refused(tmp_path):
    write_fitted(tmp_path / "curve.json", CURVE)
    with pytest.raises(ModelError, match="kind 'gate'"):
        read_fitted(tmp_path / "curve.json", kind="gate")


def test_constants_of_another_format_are_refused(tmp_path):
    write_fitted(tmp_path / "curve.json", CURVE)
    content = json.loads((tmp_path / "curve.json").read_text())
    (tmp_path / "curve.json").write_text(json.dumps({**content, "format": 2}))
    with pytest.raises(ModelError, match="must be of format 1"):
        read_fitted(tmp_path / "curve.json", kind="probabilities")


def test_constants_of_another_model_are_refused_with_both_names():
    with pytest.raises(
        ModelError,
        match=r"ekphory-small@1f, and ekphory-small@2e .*`ekphory train calibration`",
    ):
        require_models(CURVE, {"embedder": "ekphory-small@2e"})


def test_constants_of_this_model_pass():
    require_models(CURVE, {"embedder": "ekphory-small@1f"})
