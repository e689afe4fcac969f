"""Where commands write what they fitted."""

import pytest

from ekphory.errors import InvalidInput
from ekphory.retrieval.calibration import FITTED
from ekphory_lab.cli.fit_commands import fitted_target


def test_in_a_checkout_the_packages_own_file_is_written():
    assert fitted_target(None, "gate.json") == FITTED / "gate.json"


def test_a_file_that_is_given_is_taken(tmp_path):
    assert fitted_target(tmp_path / "mine.json", "gate.json") == tmp_path / "mine.json"


def test_an_installed_package_is_not_written_to_unasked(tmp_path):
    folder = tmp_path / "lib" / "ekphory" / "fitted"
    with pytest.raises(InvalidInput, match=r"Give --target gate\.json"):
        fitted_target(None, "gate.json", folder=folder)
