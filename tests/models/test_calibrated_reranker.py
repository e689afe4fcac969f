"""A reranker of one's own with scores that were fitted to be probabilities."""

import numpy as np
import pytest
from tests.models.tiny_rerankers import write_overlap_reranker
from tests.services.wire import running_service, says

from ekphory.config import Settings, read_settings
from ekphory.errors import InvalidInput, ModelError
from ekphory.memory import Memory
from ekphory.models.agent_reranker import Reranker
from ekphory.models.loading import (
    CalibratedReranker,
    FittedCalibration,
    load_configured_reranker,
    read_calibration,
    write_calibration,
)
from ekphory.models.model_record import CalibrationCard, RerankerRecord
from ekphory.models.reranker import BundledReranker, bundled_name, log_odds
from ekphory.testing import HashEmbedder, OverlapReranker

CARD = CalibrationCard(slope=2.0, intercept=-1.0, data="some", thresholds={"0.9": 0.7})


@pytest.fixture
def file(tmp_path):
    write_calibration(tmp_path / "card.json", FittedCalibration("overlap-reranker", CARD))
    return tmp_path / "card.json"


def test_the_curve_goes_over_the_log_odds_of_the_scores(file):
    # Log odds undo the sigmoid and stay finite.
    scores = np.array([0.5, 0.0, 1.0])
    assert log_odds(scores).tolist() == pytest.approx([0.0, -16.118, 16.118], abs=1e-3)
    # The curve goes over the log odds of the scores.
    fitted = read_calibration(file)
    reranker = Reranker(CalibratedReranker(OverlapReranker(), fitted))
    assert fitted == FittedCalibration("overlap-reranker", CARD)

    # One word of two: a score of .5, of which the log-odds are 0.
    assert reranker.score("red dog", ["a dog"]).tolist() == pytest.approx([1 / (1 + np.exp(1))])
    assert reranker.raw_scores("red dog", ["a dog"]).tolist() == [0.5]
    assert reranker.is_calibrated
    assert reranker.calibration == CARD


KIND = '{"kind": "reranker calibration"'
FALLING = KIND + ', "format": 1, "reranker": "a", "slope": %s, "intercept": 0}'


def test_a_file_that_is_no_calibration_is_refused_with_the_command_that_makes_one(tmp_path):
    for content in ("", "[]", "{}", KIND + "}", FALLING % "-1", FALLING % "NaN"):
        (tmp_path / "card.json").write_text(content)
        with pytest.raises(InvalidInput, match="must be a calibration of a reranker"):
            read_calibration(tmp_path / "card.json")


def test_a_calibration_is_of_one_reranker_which_stays_known(file, tmp_path):
    # A calibration of another reranker is refused.
    directory = write_overlap_reranker(tmp_path / "model", RerankerRecord(name="other"))
    with pytest.raises(InvalidInput, match="must have been fitted for 'other'"):
        Reranker.from_pretrained(directory, calibration=file)
    # A bundled reranker stays known behind a calibration.
    model = BundledReranker(file.parent, name="overlap-reranker")
    assert bundled_name(CalibratedReranker(model, read_calibration(file))) == "overlap-reranker"
    calibrated = CalibratedReranker(OverlapReranker(), read_calibration(file))
    assert bundled_name(Reranker(calibrated)) is None


def test_scores_outside_0_and_1_are_told_and_not_clipped(file):
    class Overrating(OverlapReranker):
        def score(self, _query, passages):
            return np.full(len(passages), 12.0, np.float32)

    reranker = Reranker(CalibratedReranker(Overrating(), read_calibration(file)))
    with pytest.raises(ModelError, match="gave the score 12"):
        reranker.score("red", ["a dog"])


def test_the_settings_name_the_file(tmp_path):
    # A calibration without a reranker is refused.
    with pytest.raises(InvalidInput, match="names a calibration and no reranker"):
        read_settings({"EKPHORY_RERANKER_CALIBRATION": "card.json"})
    # A scale that there is not is refused for local rerankers too.
    directory = write_overlap_reranker(tmp_path / "model")
    settings = Settings(store="s", reranker=str(directory), reranker_scores="foo")
    with pytest.raises(InvalidInput, match="EKPHORY_RERANKER_SCORES='foo'"):
        load_configured_reranker(settings)
    # The settings name the file.
    directory = write_overlap_reranker(tmp_path / "model", RerankerRecord(name="own"))
    write_calibration(tmp_path / "card.json", FittedCalibration("own", CARD))
    card = str(tmp_path / "card.json")
    settings = Settings(store="s", reranker=str(directory), reranker_calibration=card)
    assert load_configured_reranker(settings).calibration == CARD


def test_a_search_shows_the_probabilities_of_a_service_that_was_calibrated(tmp_path):
    rows = [{"index": place, "relevance_score": 0.5} for place in range(2)]
    with running_service(lambda _: says({"results": rows})) as service:
        name = Reranker.from_pretrained(service.host).name
        write_calibration(tmp_path / "card.json", FittedCalibration(name, CARD))
        reranker = Reranker.from_pretrained(service.host, calibration=tmp_path / "card.json")
        with Memory(tmp_path / "store", embedder=HashEmbedder(), reranker=reranker) as memory:
            memory.add_many([{"text": "tea is warm"}, {"text": "it rained"}])
            hits = memory.search("tea", preset="accurate").hits

    assert [hit.score for hit in hits] == pytest.approx([0.2689, 0.2689], abs=1e-4)
