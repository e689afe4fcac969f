"""Homes with a resident process of their own."""

import pytest
from tests.resident.home import temporary_home


@pytest.fixture
def home():
    with temporary_home() as made:
        yield made


@pytest.fixture
def running(home):
    """A home whose resident process answers, with one memory in the store."""
    home.add("The spare key is under the pot")
    home.wait_until_running()
    return home
