"""A catalog of the test's own."""

import pytest

from ekphory.catalog.database import Database


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "catalog.sqlite3"


@pytest.fixture
def database(path):
    one = Database(path)
    yield one
    one.close()
