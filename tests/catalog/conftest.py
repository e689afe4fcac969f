"""A catalog of the test's own."""

import pytest

from ekphory.catalog.database import Database


@pytest.fixture
def database(tmp_path):
    one = Database(tmp_path / "catalog.sqlite3")
    yield one
    one.close()
