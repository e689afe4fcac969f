"""From a fused score to a probability."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.errors import ModelError
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.loading import load_embedder
from ekphory.models.reranker import TINY_RERANKER, bundled_reranker, model_id
from ekphory.retrieval.calibration import (
    GATE_FILE,
    LEAST_EVIDENCE,
    MEANING_CURVES,
    PROBABILITIES_FILE,
    PROBABILITIES_KIND,
    WORD_CURVES,
    AnswerCurve,
    Calibration,
    FittedFile,
    FittedGate,
    FusionCalibration,
    GateBand,
    HitCurves,
    LexicalCalibration,
    LexicalCurve,
    fitted_probabilities,
    make_descending,
    probabilities_of,
    read_fitted,
    read_gate,
    write_fitted,
)
from ekphory.retrieval.gate import GateThresholds
from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.stages.rerank import GateReranker
from ekphory.testing.models import OverlapReranker
from ekphory_lab.evaluation.metrics import best_hit_error
from retrieval.states import records, state_of, with_candidates

CURVE = Calibration(slope=1.0, steepening=0.5, weight=-0.25, intercept=-1.0)
TWO = exp(2) - 1
"""The evidence whose logarithm counts 2: the curve is 1 / (1 + exp(-(2·s - 1.5)))."""


def scores(*values):
    return np.array(values, np.float32)


def test_the_logistic_curve_is_that_of_its_formula():
    probabilities = CURVE.probabilities(scores(0.75, 1.25, -2.0), evidence=TWO)
    assert probabilities.tolist() == pytest.approx([0.5, 0.731059, 0.004070], abs=1e-6)


def test_a_score_without_limits_gives_a_probability_without_a_warning():
    probabilities = CURVE.probabilities(scores(-np.inf, -1e4, 1e4), evidence=TWO)
    assert probabilities.tolist() == [0.0, 0.0, 1.0]


def test_a_query_that_could_tell_nothing_counts_as_one_of_the_least_evidence():
    nothing, least = (
        CURVE.probabilities(scores(0.5), evidence=evidence) for evidence in (0.0, LEAST_EVIDENCE)
    )
    assert nothing.tolist() == least.tolist()


def test_a_scope_of_documents_and_turns_takes_a_curve_between():
    turns = Calibration(slope=3.0, steepening=0.5, weight=0.25, intercept=-2.0)
    curves = FusionCalibration(documents=CURVE, turns=turns)

    assert curves.among(0.0) == CURVE
    assert curves.among(1.0) == turns
    assert curves.among(0.25) == Calibration(
        slope=1.5, steepening=0.5, weight=-0.125, intercept=-1.25
    )


@pytest.mark.parametrize("turns", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("evidence", [0.0, 6.0, 30.0, 1_000.0])
def test_the_fitted_curves_grow_with_the_score(evidence, turns):
    probabilities = MEANING_CURVES.among(turns).probabilities(
        np.linspace(-1, 2, 50, dtype=np.float32), evidence=evidence
    )
    assert np.all(np.diff(probabilities) >= 0)
    assert probabilities[-1] > probabilities[0]


WORDS = LexicalCurve(slope=2.0, weight=0.5, intercept=-1.0)
"""At `TWO` the logit is 2·ln(s + .02)."""


def test_the_curve_of_words_is_logistic_over_the_logarithm():
    probabilities = WORDS.probabilities(scores(0.98, 0.48), evidence=TWO)
    assert probabilities.tolist() == pytest.approx([0.5, 1 / (1 + exp(-2 * log(0.5)))], abs=1e-6)


def test_a_passage_without_a_word_of_the_query_has_the_least_probability():
    none, few = WORDS.probabilities(scores(0.0, 0.01), evidence=TWO)
    assert 0 < none < few


def test_among_words_too_a_scope_of_both_takes_a_curve_between():
    turns = LexicalCurve(slope=4.0, weight=1.5, intercept=-2.0)
    curves = LexicalCalibration(documents=WORDS, turns=turns)

    assert curves.among(0.0) == WORDS
    assert curves.among(1.0) == turns
    assert curves.among(0.25) == LexicalCurve(slope=2.5, weight=0.75, intercept=-1.25)


@pytest.mark.parametrize("turns", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("evidence", [0.0, 6.0, 30.0, 1_000.0])
def test_a_better_match_is_always_the_more_probable_one(evidence, turns):
    probabilities = WORD_CURVES.among(turns).probabilities(
        np.linspace(0, 0.75, 50, dtype=np.float32), evidence=evidence
    )
    assert np.all(np.diff(probabilities) > 0)


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


EMBEDDER = EmbedderIdentity("ekphory-small", "1f", 384)


class NamedReranker(OverlapReranker):
    """States a revision, as rerankers of a directory do."""

    model_id = "tiny@2e"


FILE = FittedFile(
    kind="gate",
    command="ekphory train gate --data DIR",
    models={"embedder": "ekphory-small@1f", "reranker": "tiny@2e"},
    data={"sgd.jsonl": "ab12"},
    seed=0,
    values={"feature": "best_probability", "low": 0.0, "high": 0.9},
)
BAND = GateBand("best_probability", GateThresholds(low=0.0, high=0.9))


def test_a_gate_is_read_from_its_file(tmp_path):
    write_fitted(tmp_path / "gate.json", FILE)
    assert read_gate(tmp_path / "gate.json") == FittedGate(FILE, BAND)


def test_a_gate_holds_for_the_models_that_its_file_names():
    assert FittedGate(FILE, BAND).band_for(EMBEDDER, NamedReranker()) == BAND


def test_a_gate_of_another_revision_of_the_embedder_is_refused():
    with pytest.raises(ModelError, match=r"ekphory-small@1f, and ekphory-small@9d is in use"):
        FittedGate(FILE, BAND).band_for(replace(EMBEDDER, revision="9d"), NamedReranker())


def test_a_search_with_another_revision_than_the_gates_is_refused():
    file = replace(FILE, models={"embedder": "hash-embedder@0", "reranker": "tiny@2e"})
    given = state_of(*records("a", "b"), reranker=NamedReranker())
    given = with_candidates(given, [0.6, 0.4], cosine=[0.6, 0.4])
    with pytest.raises(ModelError, match="hash-embedder@0, and hash-embedder@"):
        GateReranker(mode="auto", learned=FittedGate(file, BAND)).skip_reason(given)


def test_models_of_other_names_have_no_gate():
    assert (
        FittedGate(FILE, BAND).band_for(replace(EMBEDDER, name="my-own"), NamedReranker()) is None
    )


def test_a_model_that_states_no_revision_has_no_gate():
    assert FittedGate(FILE, BAND).band_for(EMBEDDER, OverlapReranker()) is None


@pytest.mark.parametrize(
    "values", [{}, {"feature": "length", "low": 0, "high": 1}, {**FILE.values, "low": "x"}]
)
def test_a_file_without_a_band_is_refused_by_its_name(tmp_path, values):
    write_fitted(tmp_path / "gate.json", replace(FILE, values=values))
    with pytest.raises(ModelError, match=r"gate\.json: must have the values feature, low and high"):
        read_gate(tmp_path / "gate.json")


def test_the_packages_gate_is_that_of_the_bundled_models():
    file = read_fitted(GATE_FILE, kind="gate")
    reranker = bundled_reranker(TINY_RERANKER)
    assert file.models == {
        "embedder": load_embedder(None).identity.model_id,
        "reranker": model_id(reranker),
    }


def test_balanced_uses_the_packages_gate():
    (gate,) = (stage for stage in BALANCED.stages if isinstance(stage, GateReranker))
    band = read_gate().band_for(load_embedder(None).identity, bundled_reranker(TINY_RERANKER))
    assert (gate.mode, gate.learned) == ("auto", None)
    assert (band.feature, band.thresholds.high) == (
        read_fitted(GATE_FILE, kind="gate").values["feature"],
        read_fitted(GATE_FILE, kind="gate").values["high"],
    )


def test_right_probabilities_have_no_error_and_wrong_ones_theirs():
    generator = np.random.default_rng(1)
    said = generator.random(4_000)
    right = (generator.random(4_000) < said).astype(np.float64)
    assert best_hit_error(said, right) < 0.01
    assert best_hit_error(np.full(4_000, 0.9), np.full(4_000, 0.0)) == pytest.approx(0.9, abs=0.02)
