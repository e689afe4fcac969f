"""The pages in docs/reference are what the code says."""

from __future__ import annotations

import pytest
from scripts.make_reference import (
    PAGES,
    REFERENCE,
    variables_in_code,
    variables_on_the_page,
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name):
    written = (REFERENCE / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run python -m scripts.make_reference"


def test_every_variable_in_the_code_is_on_the_page():
    assert variables_in_code() - variables_on_the_page() == set()
