"""Curves of probabilities, fitted on what searches show."""

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from tests.training.small_files import text_of

from ekphory.errors import DatasetError, InvalidInput
from ekphory.retrieval.calibration import FEATURES, PROBABILITIES_FILE, fitted_probabilities
from ekphory.retrieval.presets import FAST
from ekphory.testing import HashEmbedder
from ekphory_lab.evaluation.stated_probabilities import AskedScope
from ekphory_lab.evaluation.stated_probabilities import statement_scopes as held_out_scopes
from ekphory_lab.training.probabilities import (
    Asked,
    Searching,
    fit_fusion_calibration,
    fit_hits,
    fit_probabilities,
    most_likely,
    observed,
    read_kept_fits,
)
from ekphory_lab.training.probability_scopes import statement_scopes

SCOPE = AskedScope(
    "statements",
    [{"id": "0", "text": "The bakery opens at six."}, {"id": "1", "text": "Tram nine is late."}],
    {"when does the bakery open": frozenset({"0"}), "price of a ticket": frozenset()},
)


def test_every_question_is_observed_with_its_hits_and_whether_the_scope_answers_it():
    told = []
    searching = Searching(preset=FAST, first_stage=fitted_probabilities().words, embedder=None)
    asked = observed([SCOPE], searching, on_progress=told.append)
    assert [each.is_answered for each in asked] == [True, False]
    assert asked[0].relevant.tolist() == [1.0, 0.0]
    assert asked[0].features.shape == (2, len(FEATURES))
    assert told == ["1 scopes, 2 questions"]


def test_a_curve_that_is_multiplied_is_the_higher_for_it():
    ones = np.ones((8, 1))
    labels = np.array([1, 1, 0, 0, 0, 0, 0, 0], np.float64)
    (plain,) = most_likely(ones, labels)
    (halved,) = most_likely(ones, labels, factors=np.full(8, 0.5))
    assert 1 / (1 + np.exp(-plain)) == pytest.approx(0.25, abs=1e-3)
    assert 1 / (1 + np.exp(-halved)) == pytest.approx(0.5, abs=1e-3)


def asked_questions(*, count, seed):
    """Questions whose best hit is right with the probability 1 / (1 + exp(-3·lead))."""
    generator = np.random.default_rng(seed)
    for number in range(count):
        features = np.zeros((2, len(FEATURES)))
        answered = generator.random() < 0.8
        lead = generator.normal()
        features[0, FEATURES.index("lead")] = lead
        features[1, FEATURES.index("lead")] = -abs(lead)
        features[:, FEATURES.index("best")] = (1.0, 0.0)
        features[0, FEATURES.index("sum")] = generator.normal() + (3.0 if answered else -3.0)
        right = answered and generator.random() < 1 / (1 + np.exp(-3 * lead))
        yield Asked(number, "statements", features, np.array([right, False], float), answered)


def test_curves_are_right_on_scopes_that_they_were_not_fitted_on():
    fit = fit_hits(list(asked_questions(count=4_000, seed=5)), reads=False)
    assert fit.errors["statements"] < 0.02
    assert fit.empty["statements"] > 0.9


def test_nothing_that_is_fitted_on_stands_in_what_is_held_out():
    assert not eight_words(statement_scopes()) & eight_words(held_out_scopes())


def eight_words(scopes):
    found = set()
    for scope in scopes:
        for text in [*(passage["text"] for passage in scope.passages), *scope.questions]:
            words = text.lower().split()
            found |= {" ".join(words[start : start + 8]) for start in range(len(words) - 7)}
    return found


CHAT = text_of("numbered_roof.txt")


@pytest.fixture
def fitted(tmp_path):
    """Fits four scopes on 24 conversations and this many sentences, or on none."""
    chats = tmp_path / "chats"
    chats.mkdir()
    for number in range(24):
        text = CHAT.format(number=number, answer=("1.1", "1.2", "2.1", "2.2")[number % 4])
        (chats / f"{number:02}.txt").write_text(text)

    def fit(sentences, *, scopes=4):
        rows = (
            {"sentence": f"the river {number} runs", "query": f"Which river runs {number % 15}?"}
            for number in range(sentences)
        )
        if sentences:
            with gzip.open(tmp_path / "squad_sentences.jsonl.gz", "wt") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        models = {"embedder": HashEmbedder()}
        return fit_fusion_calibration(tmp_path, scopes=scopes, conversations=chats, **models)

    return fit


@pytest.mark.slow
def test_each_kind_of_scope_and_of_search_has_a_curve_of_its_own(fitted):
    fits = fitted(2400)
    found, by_words = fits["balanced"], fits["fast"]

    # Three scopes are fitted on, of 50 hits for 5 questions, and of 24 turns for 6 questions.
    assert found["documents"].observations == 3 * 5 * 50
    assert found["turns"].observations == 3 * 6 * 24
    curves = [*found.values(), *by_words.values()]
    assert all(one.curve != other.curve for one, other in itertools.combinations(curves, 2))
    for each in found.values():
        assert 0 <= each.expected_calibration_error < 0.5


def test_too_little_data_is_named(fitted):
    with pytest.raises(DatasetError, match=r"squad_sentences\.jsonl\.gz: no such file"):
        fitted(0)
    with pytest.raises(DatasetError, match=r"squad_sentences.*: 3 scopes, so none is held out"):
        fitted(1800)
    # Fewer than four scopes are refused before anything is read.
    with pytest.raises(InvalidInput, match=r"scopes.*Give 4 or more"):
        fit_fusion_calibration(Path("nowhere"), scopes=3)


def test_curves_are_kept_only_of_the_same_data_and_models():
    known = fitted_probabilities().file
    tiny, small = "ekphory-rerank-tiny", "ekphory-rerank-small"
    kept = read_kept_fits(
        PROBABILITIES_FILE, [tiny], data=known.data, models={**known.models, tiny: "another"}
    )
    assert kept.values["first_stage"] == known.values["first_stage"]
    assert kept.values["hits"] == {
        name: curves for name, curves in known.values["hits"].items() if name != tiny
    }
    assert not [name for name in kept.measured if name.startswith(tiny)]
    # Another model than the one whose curve is fitted must be the same.
    for data, models in ((known.data, {**known.models, small: "another"}), ({}, known.models)):
        with pytest.raises(InvalidInput, match="is of other data or models"):
            read_kept_fits(PROBABILITIES_FILE, [tiny], data=data, models=models)
    # A curve that is no reranker's is refused before anything is read.
    with pytest.raises(InvalidInput, match="Known are ekphory-rerank-small, ekphory-rerank-tiny"):
        fit_probabilities(Path("nowhere"), on_progress=print, only=["meaning"])
