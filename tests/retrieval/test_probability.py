"""The probability that a hit answers, and how it is kept in order."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import ModelError
from ekphory.models.embedder import EmbedderIdentity
from ekphory.retrieval.calibration import (
    PROBABILITIES_FILE,
    PROBABILITIES_KIND,
    AnswerCurve,
    FittedFile,
    HitCurves,
    fitted_probabilities,
    make_descending,
    probabilities_of,
    read_fitted,
    write_fitted,
)
from ekphory_lab.evaluation.metrics import best_hit_error

PROBABILITIES = st.lists(st.floats(0, 1), max_size=30)


def test_neighbours_in_the_wrong_order_get_their_mean():
    assert make_descending(np.array([0.9, 0.4, 0.6, 0.1])).tolist() == [0.9, 0.5, 0.5, 0.1]


def test_a_late_high_value_is_shared_with_all_before_it_that_are_lower():
    assert make_descending(np.array([0.2, 0.2, 0.8])).tolist() == pytest.approx([0.4, 0.4, 0.4])


@given(PROBABILITIES)
def test_what_is_put_in_order_never_rises_and_keeps_its_sum(values):
    found = make_descending(np.array(values, np.float64))
    assert len(found) == len(values)
    assert np.all(np.diff(found) <= 1e-12)
    assert found.sum() == pytest.approx(sum(values))


@given(PROBABILITIES)
def test_what_is_in_order_stays(values):
    ordered = np.array(sorted(values, reverse=True), np.float64)
    assert make_descending(ordered).tolist() == pytest.approx(ordered.tolist())


def curves(*, least):
    return HitCurves(
        answers=AnswerCurve(-1.0, {"lead": 2.0}),
        answerable=AnswerCurve(0.5, {"sum": 1.0}),
        least=AnswerCurve(least, {}),
        sharpness=2.0,
    )


NAMES = ("sum", "lead")
FEATURES = np.array([[0.5, 1.0], [0.2, 0.0]])


def test_a_curve_is_logistic_over_the_features_that_it_names():
    found = curves(least=0.0).probabilities(FEATURES, NAMES)
    assert found.tolist() == pytest.approx([1 / (1 + exp(-1)), 1 / (1 + exp(1))])


def test_where_the_best_hit_says_that_nothing_answers_all_are_lowered_alike():
    # The best hit's log odds are 1, which is 2 below the least.
    believed = curves(least=0.0).probabilities(FEATURES, NAMES)
    doubted = curves(least=3.0).probabilities(FEATURES, NAMES)
    assert doubted.tolist() == pytest.approx((believed * exp(-4)).tolist())


def test_how_little_evidence_is_little_depends_on_the_scope():
    by_size = HitCurves(
        answers=AnswerCurve(0.0, {}),
        answerable=AnswerCurve(0.0, {"sum": 1.0}),
        least=AnswerCurve(0.0, {"scope": 0.5}),
        sharpness=2.0,
    )
    small, large = np.array([[1.0, 1.0]]), np.array([[1.0, 3.0]])
    assert by_size.probabilities(small, ("sum", "scope")).tolist() == pytest.approx([0.5])
    assert by_size.probabilities(large, ("sum", "scope")).tolist() == pytest.approx([exp(-1) / 2])


def test_no_candidates_have_no_probabilities():
    assert curves(least=0.0).probabilities(np.empty((0, 2)), NAMES).tolist() == []


def identity(name, revision):
    return EmbedderIdentity(name=name, revision=revision, dimension=8)


def test_an_embedder_of_another_name_has_no_curve():
    assert fitted_probabilities().curve_for(identity("another", "1"), words_alone=False) is None


def test_words_alone_have_a_curve_whatever_the_embedder():
    assert fitted_probabilities().curve_for(identity("another", "1"), words_alone=True) is not None


def test_another_revision_of_the_embedder_is_refused():
    name = fitted_probabilities().file.models["embedder"].partition("@")[0]
    with pytest.raises(ModelError, match=r"fitted for the embedder .* `ekphory train calib"):
        fitted_probabilities().curve_for(identity(name, "other"), words_alone=False)


def test_a_file_of_other_constants_is_refused(tmp_path):
    path = tmp_path / "probabilities.json"
    write_fitted(path, FittedFile(kind="gate", command="", models={}, data={}, seed=0))
    with pytest.raises(ModelError, match="kind 'probabilities'"):
        fitted_probabilities(path)


def test_a_file_without_curves_is_refused(tmp_path):
    path = tmp_path / "probabilities.json"
    file = FittedFile(kind=PROBABILITIES_KIND, command="fit", models={}, data={}, seed=0)
    write_fitted(path, file)
    with pytest.raises(ModelError, match=r"holds no curves .*Write it anew with `fit`"):
        fitted_probabilities(path)


def test_the_packages_own_file_says_what_it_was_fitted_on_and_how_well():
    file = read_fitted(PROBABILITIES_FILE, kind=PROBABILITIES_KIND)
    assert set(file.data) >= {"squad_sentences.jsonl.gz", "timeqa_train.jsonl.gz", "statements"}
    assert file.command.startswith("ekphory train calibration")
    assert set(probabilities_of(file).hits) == {"words", "meaning", "ekphory-rerank-small"}
    errors = [name for name in file.measured if name.endswith("error of the best hit")]
    assert len(errors) == 20


def test_right_probabilities_have_no_error_and_wrong_ones_theirs():
    generator = np.random.default_rng(1)
    said = generator.random(4_000)
    right = (generator.random(4_000) < said).astype(np.float64)
    assert best_hit_error(said, right) < 0.01
    assert best_hit_error(np.full(4_000, 0.9), np.full(4_000, 0.0)) == pytest.approx(0.9, abs=0.02)
