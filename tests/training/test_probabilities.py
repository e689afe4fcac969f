"""Curves of probabilities, fitted on what searches show."""

import gzip
import itertools
import json

import numpy as np
import pytest

from ekphory.errors import DatasetError, InvalidInput
from ekphory.retrieval.calibration import FEATURES, fitted_probabilities
from ekphory.retrieval.presets import FAST
from ekphory.testing.models import HashEmbedder
from ekphory_lab.evaluation.stated_probabilities import AskedScope
from ekphory_lab.evaluation.stated_probabilities import statement_scopes as held_out_scopes
from ekphory_lab.training.probabilities import (
    Asked,
    Searching,
    fit_fusion_calibration,
    fit_hits,
    most_likely,
    observed,
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


CHAT = """kind: texting
## 1 | 2024-05-03 18:02
1.1 Ann: the roof leaks, number {number}
1.2 Ben: the roof leaks as well, number {number}
## 2 | 2024-05-09 08:15
2.1 Ben: the roof holds
2.2 Ann: the roof leaks again
? single | {answer} | When does roof {number} leak? | then
"""


@pytest.fixture
def squad(tmp_path):
    def write(sentences):
        rows = (
            {"sentence": f"the river {number} runs", "query": f"Which river runs {number % 15}?"}
            for number in range(sentences)
        )
        with gzip.open(tmp_path / "squad_sentences.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        return tmp_path

    return write


@pytest.fixture
def chats(tmp_path):
    def write(files):
        folder = tmp_path / "chats"
        folder.mkdir()
        for number in range(files):
            text = CHAT.format(number=number, answer=("1.1", "1.2", "2.1", "2.2")[number % 4])
            (folder / f"{number:02}.txt").write_text(text)
        return folder

    return write


def test_each_kind_of_scope_and_of_search_has_a_curve_of_its_own(squad, chats):
    fits = fit_fusion_calibration(
        squad(2400), scopes=4, conversations=chats(24), embedder=HashEmbedder()
    )
    found, by_words = fits["balanced"], fits["fast"]

    # Three scopes are fitted on, of 50 hits for 5 questions, and of 24 turns for 6 questions.
    assert found.documents.observations == 3 * 5 * 50
    assert found.turns.observations == 3 * 6 * 24
    curves = [curve for each in (found, by_words) for curve in (each.documents, each.turns)]
    assert all(one.curve != other.curve for one, other in itertools.combinations(curves, 2))
    for each in (found.documents, found.turns):
        assert 0 <= each.expected_calibration_error < 0.5


def test_fewer_than_four_scopes_are_refused_before_anything_is_read(tmp_path):
    with pytest.raises(InvalidInput, match=r"scopes.*Give 4 or more"):
        fit_fusion_calibration(tmp_path, scopes=3)


def test_too_little_data_is_named(squad, chats):
    with pytest.raises(DatasetError, match=r"squad_sentences.*: 3 scopes, so none is held out"):
        fit_fusion_calibration(
            squad(1800), scopes=4, conversations=chats(24), embedder=HashEmbedder()
        )


def test_a_missing_file_is_named(tmp_path, chats):
    with pytest.raises(DatasetError, match=r"squad_sentences\.jsonl\.gz: no such file"):
        fit_fusion_calibration(tmp_path, conversations=chats(6))
