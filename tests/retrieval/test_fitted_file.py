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


def test_what_was_written_is_read_back_and_leaves_no_part_behind(tmp_path):
    path = tmp_path / "fitted" / "curve.json"
    for _ in range(2):
        write_fitted(path, CURVE)
    assert read_fitted(path, kind="probabilities") == CURVE
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"format": 1, "kind": "gate"}'])
def test_what_is_no_such_file_is_refused_by_its_name(tmp_path, text):
    if text is not None:
        (tmp_path / "curve.json").write_text(text)
    with pytest.raises(ModelError, match=r"curve\.json: must be a file of fitted constants"):
        read_fitted(tmp_path / "curve.json", kind="probabilities")


@pytest.mark.parametrize(
    ("change", "problem"), [({"kind": "gate"}, "kind 'probabilities'"), ({"format": 2}, "format 1")]
)
def test_constants_of_another_kind_or_format_are_refused(tmp_path, change, problem):
    write_fitted(tmp_path / "curve.json", CURVE)
    content = json.loads((tmp_path / "curve.json").read_text())
    (tmp_path / "curve.json").write_text(json.dumps(content | change))
    with pytest.raises(ModelError, match=f"must be of .*{problem}"):
        read_fitted(tmp_path / "curve.json", kind="probabilities")


def test_constants_of_another_model_are_refused_with_both_names():
    require_models(CURVE, {"embedder": "ekphory-small@1f"})
    problem = r"ekphory-small@1f, and ekphory-small@2e .*`ekphory train calibration`"
    with pytest.raises(ModelError, match=problem):
        require_models(CURVE, {"embedder": "ekphory-small@2e"})
