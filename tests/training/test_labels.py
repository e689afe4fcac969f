"""When a label fits a text is fitted on the topics of written scenarios."""

import json

import pytest

from ekphory.capture.services import LABELS_FILE
from ekphory.models.onnx_models import load_bundled
from ekphory_lab.training.changes import read_scenarios
from ekphory_lab.training.labels import OTHER_LABELS, learn_labels, read_labelled


def test_a_text_has_the_topic_of_its_scenario_and_those_of_others_of_its_part():
    scenarios = read_scenarios()
    held_back, fitting = (read_labelled(part, scenarios) for part in ("held back", "fitting"))
    assert len(held_back) > 50
    for each in held_back:
        assert len(each.others) == OTHER_LABELS
        assert each.label not in each.others
    assert {each.text for each in held_back} & {each.text for each in fitting} == set()


@pytest.mark.slow
def test_what_the_package_has_is_what_the_command_fits():
    learned = learn_labels(read_scenarios(), load_bundled())
    written = json.loads(LABELS_FILE.read_text(encoding="utf-8"))
    # The last digits follow the number of threads that other tests left to the linear algebra.
    assert written["values"] == pytest.approx(learned.values, rel=1e-3)
    assert written["measured"] == learned.measured
    assert (written["data"], written["models"]) == (learned.data, learned.models)
    assert learned.measured["precision"] > 0.85
