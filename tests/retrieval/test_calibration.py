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
from ekphory.models.reranker import SMALL_RERANKER, TINY_RERANKER, bundled_reranker, model_id
from ekphory.retrieval import calibration
from ekphory.retrieval.gate import GateThresholds
from ekphory.retrieval.stages.rerank import GateReranker
from ekphory.testing import HashEmbedder, OverlapReranker
from ekphory_lab.evaluation.metrics import best_hit_error
from retrieval.states import records, state_of, with_candidates

CURVE = calibration.Calibration(slope=1.0, steepening=0.5, weight=-0.25, intercept=-1.0)
TWO = exp(2) - 1
"""The evidence whose logarithm counts 2: the curve is 1 / (1 + exp(-(2·s - 1.5)))."""


def scores(*values):
    return np.array(values, np.float32)


WORDS = calibration.LexicalCurve(slope=2.0, weight=0.5, intercept=-1.0)
"""At `TWO` the logit is 2·ln(s + .02)."""


@pytest.mark.parametrize(
    ("curve", "given", "expected"),
    [
        (CURVE, (0.75, 1.25, -2.0), [0.5, 0.731059, 0.004070]),
        (CURVE, (-np.inf, -1e4, 1e4), [0.0, 0.0, 1.0]),
        (WORDS, (0.98, 0.48), [0.5, 1 / (1 + exp(-2 * log(0.5)))]),
    ],
)
def test_a_logistic_curve_is_that_of_its_formula(curve, given, expected):
    found = curve.probabilities(scores(*given), evidence=TWO).tolist()
    assert found == pytest.approx(expected, abs=1e-6)


def test_what_tells_nothing_counts_as_the_least():
    nothing, least = (
        CURVE.probabilities(scores(0.5), evidence=evidence)
        for evidence in (0.0, calibration.LEAST_EVIDENCE)
    )
    assert nothing.tolist() == least.tolist()
    none, few = WORDS.probabilities(scores(0.0, 0.01), evidence=TWO)
    assert 0 < none < few


@pytest.mark.parametrize("turns", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("evidence", [0.0, 6.0, 30.0, 1_000.0])
def test_the_fitted_curves_grow_with_the_score(evidence, turns):
    by_meaning = calibration.MEANING_CURVES.among(turns).probabilities(
        np.linspace(-1, 2, 50, dtype=np.float32), evidence=evidence
    )
    by_words = calibration.WORD_CURVES.among(turns).probabilities(
        np.linspace(0, 0.75, 50, dtype=np.float32), evidence=evidence
    )
    assert np.all(np.diff(by_meaning) >= 0)
    assert by_meaning[-1] > by_meaning[0]
    assert np.all(np.diff(by_words) > 0)


@pytest.mark.parametrize(
    ("make", "documents", "turns", "a_quarter"),
    [
        (
            calibration.FusionCalibration,
            CURVE,
            calibration.Calibration(slope=3.0, steepening=0.5, weight=0.25, intercept=-2.0),
            calibration.Calibration(slope=1.5, steepening=0.5, weight=-0.125, intercept=-1.25),
        ),
        (
            calibration.LexicalCalibration,
            WORDS,
            calibration.LexicalCurve(slope=4.0, weight=1.5, intercept=-2.0),
            calibration.LexicalCurve(slope=2.5, weight=0.75, intercept=-1.25),
        ),
    ],
)
def test_a_scope_of_documents_and_turns_takes_a_curve_between(make, documents, turns, a_quarter):
    curves = make(documents=documents, turns=turns)
    assert [curves.among(share) for share in (0.0, 1.0, 0.25)] == [documents, turns, a_quarter]


PROBABILITIES = st.lists(st.floats(0, 1), max_size=30)


def test_values_in_the_wrong_order_get_their_mean():
    assert calibration.make_descending(np.array([0.9, 0.4, 0.6, 0.1])).tolist() == [
        0.9,
        0.5,
        0.5,
        0.1,
    ]
    assert calibration.make_descending(np.array([0.2, 0.2, 0.8])).tolist() == pytest.approx(
        [0.4, 0.4, 0.4]
    )


@given(PROBABILITIES)
def test_what_is_put_in_order_never_rises_and_keeps_its_sum(values):
    found = calibration.make_descending(np.array(values, np.float64))
    assert len(found) == len(values)
    assert np.all(np.diff(found) <= 1e-12)
    assert found.sum() == pytest.approx(sum(values))


@given(PROBABILITIES)
def test_what_is_in_order_stays(values):
    ordered = np.array(sorted(values, reverse=True), np.float64)
    assert calibration.make_descending(ordered).tolist() == pytest.approx(ordered.tolist())


def curves(*, least):
    return calibration.HitCurves(
        answers=calibration.AnswerCurve(-1.0, {"lead": 2.0}),
        answerable=calibration.AnswerCurve(0.5, {"sum": 1.0}),
        least=calibration.AnswerCurve(least, {}),
        sharpness=2.0,
    )


NAMES = ("sum", "lead")
FEATURES = np.array([[0.5, 1.0], [0.2, 0.0]])


def test_the_curve_of_a_hit_is_that_of_its_formula():
    # A curve is logistic over the features that it names.
    found = curves(least=0.0).probabilities(FEATURES, NAMES)
    assert found.tolist() == pytest.approx([1 / (1 + exp(-1)), 1 / (1 + exp(1))])
    assert curves(least=0.0).probabilities(np.empty((0, 2)), NAMES).tolist() == []
    # The best hit's log odds are 1, which is 2 below the least.
    believed = curves(least=0.0).probabilities(FEATURES, NAMES)
    doubted = curves(least=3.0).probabilities(FEATURES, NAMES)
    assert doubted.tolist() == pytest.approx((believed * exp(-4)).tolist())
    # How little evidence is little depends on the scope.
    by_size = calibration.HitCurves(
        answers=calibration.AnswerCurve(0.0, {}),
        answerable=calibration.AnswerCurve(0.0, {"sum": 1.0}),
        least=calibration.AnswerCurve(0.0, {"scope": 0.5}),
        sharpness=2.0,
    )
    small, large = np.array([[1.0, 1.0]]), np.array([[1.0, 3.0]])
    assert by_size.probabilities(small, ("sum", "scope")).tolist() == pytest.approx([0.5])
    assert by_size.probabilities(large, ("sum", "scope")).tolist() == pytest.approx([exp(-1) / 2])


EMBEDDER = EmbedderIdentity("ekphory-small", "1f", 384)


def test_words_alone_have_a_curve_for_every_embedder_and_meaning_for_that_of_one_name():
    another = replace(EMBEDDER, name="another")
    assert calibration.fitted_probabilities().curve_for(another, words_alone=False) is None
    assert calibration.fitted_probabilities().curve_for(another, words_alone=True) is not None


def test_another_revision_of_the_embedder_has_no_curve_of_meaning():
    name = calibration.fitted_probabilities().file.models["embedder"].partition("@")[0]
    another = replace(EMBEDDER, name=name)
    assert calibration.fitted_probabilities().curve_for(another, words_alone=False) is None


def test_the_fitted_constants_are_those_of_the_bundled_embedder():
    bundled = load_embedder().identity.model_id
    assert calibration.fitted_probabilities().file.models["embedder"] == bundled


def test_a_file_of_other_constants_or_without_curves_is_refused(tmp_path):
    path = tmp_path / "probabilities.json"
    for kind, problem in (
        ("gate", "kind 'probabilities'"),
        (
            calibration.PROBABILITIES_KIND,
            r"holds no curves .*Write it anew with `ekphory train gate",
        ),
    ):
        calibration.write_fitted(path, replace(FILE, kind=kind, values={}))
        with pytest.raises(ModelError, match=problem):
            calibration.fitted_probabilities(path)


def test_the_packages_own_file_says_what_it_was_fitted_on_and_how_well():
    file = calibration.read_fitted(
        calibration.PROBABILITIES_FILE, kind=calibration.PROBABILITIES_KIND
    )
    assert set(file.data) >= {"squad_sentences.jsonl.gz", "timeqa_train.jsonl.gz", "statements"}
    assert file.command.startswith("ekphory train calibration")
    rerankers = {"ekphory-rerank-small", "ekphory-rerank-tiny"}
    assert set(calibration.probabilities_of(file).hits) == {"words", "meaning", *rerankers}
    errors = [name for name in file.measured if name.endswith("error of the best hit")]
    assert len(errors) == 22


class NamedReranker(OverlapReranker):
    """States a revision, as rerankers of a directory do."""

    model_id = "tiny@2e"


FILE = calibration.FittedFile(
    kind="gate",
    command="ekphory train gate --data DIR",
    models={"embedder": "ekphory-small@1f", "reranker": "tiny@2e"},
    data={"sgd.jsonl": "ab12"},
    seed=0,
    values={"feature": "best_probability", "low": 0.0, "high": 0.9},
)
BAND = calibration.GateBand("best_probability", GateThresholds(low=0.0, high=0.9))


def test_a_gate_holds_for_the_models_that_its_file_names(tmp_path):
    calibration.write_fitted(tmp_path / "gate.json", FILE)
    gate = calibration.read_gate(tmp_path / "gate.json")
    assert gate == calibration.FittedGate(FILE, BAND)
    assert gate.band_for(EMBEDDER, NamedReranker()) == BAND
    assert gate.band_for(replace(EMBEDDER, name="my-own"), NamedReranker()) is None
    # A model that states no revision.
    assert gate.band_for(EMBEDDER, OverlapReranker()) is None
    assert gate.band_for(replace(EMBEDDER, revision="9d"), NamedReranker()) is None


def test_a_search_with_another_revision_of_the_reranker_than_the_gates_is_refused():
    embedder = HashEmbedder().identity.model_id
    file = replace(FILE, models={"embedder": embedder, "reranker": "tiny@9d"})
    given = state_of(*records("a", "b"), reranker=NamedReranker())
    given = with_candidates(given, [0.6, 0.4], cosine=[0.6, 0.4])
    with pytest.raises(ModelError, match="tiny@9d, and tiny@2e is in use"):
        GateReranker(mode="auto", learned=calibration.FittedGate(file, BAND)).skip_reason(given)


@pytest.mark.parametrize(
    "values", [{}, {"feature": "length", "low": 0, "high": 1}, {**FILE.values, "low": "x"}]
)
def test_a_file_without_a_band_is_refused_by_its_name(tmp_path, values):
    calibration.write_fitted(tmp_path / "gate.json", replace(FILE, values=values))
    with pytest.raises(ModelError, match=r"gate\.json: must have the values feature, low and high"):
        calibration.read_gate(tmp_path / "gate.json")


@pytest.mark.parametrize("name", [SMALL_RERANKER, TINY_RERANKER])
def test_each_bundled_reranker_has_a_gate_of_its_own(name):
    file = calibration.read_fitted(calibration.GATE_FILES[name], kind="gate")
    embedder, reranker = load_embedder(None).identity, bundled_reranker(name)
    assert file.models == {"embedder": embedder.model_id, "reranker": model_id(reranker)}
    band = calibration.bundled_gate(reranker).band_for(embedder, reranker)
    assert (band.feature, band.thresholds.high) == (file.values["feature"], file.values["high"])
    assert calibration.bundled_gate(NamedReranker()) is None


def test_right_probabilities_have_no_error_and_wrong_ones_theirs():
    generator = np.random.default_rng(1)
    said = generator.random(4_000)
    right = (generator.random(4_000) < said).astype(np.float64)
    assert best_hit_error(said, right) < 0.01
    assert best_hit_error(np.full(4_000, 0.9), np.full(4_000, 0.0)) == pytest.approx(0.9, abs=0.02)


# Fitted constants lie in files that say which models they hold for.


def test_what_was_written_is_read_back_and_leaves_no_part_behind(tmp_path):
    path = tmp_path / "fitted" / "gate.json"
    for _ in range(2):
        calibration.write_fitted(path, FILE)
    assert calibration.read_fitted(path, kind="gate") == FILE
    assert list(path.parent.iterdir()) == [path]


WRITTEN = '{"format": %d, "kind": "%s", "command": "", "models": {}, "data": {}, "seed": 0}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "must be a file of fitted constants"),
        ("", "must be a file of fitted constants"),
        ("[]", "must be a file of fitted constants"),
        ("{}", "must be a file of fitted constants"),
        ('{"format": 1, "kind": "gate"}', "must be a file of fitted constants"),
        (WRITTEN % (1, "probabilities"), ".*must be of .*kind 'gate'"),
        (WRITTEN % (2, "gate"), ".*must be of .*format 1"),
    ],
)
def test_what_is_no_such_file_is_refused_by_its_name(tmp_path, text, problem):
    if text is not None:
        (tmp_path / "gate.json").write_text(text)
    with pytest.raises(ModelError, match=rf"gate\.json: {problem}"):
        calibration.read_fitted(tmp_path / "gate.json", kind="gate")


def test_constants_of_another_model_are_refused_with_both_names():
    calibration.require_models(FILE, FILE.models)
    problem = r"ekphory-small@1f, and ekphory-small@2e .*`ekphory train gate --data DIR`"
    with pytest.raises(ModelError, match=problem):
        calibration.require_models(FILE, FILE.models | {"embedder": "ekphory-small@2e"})
