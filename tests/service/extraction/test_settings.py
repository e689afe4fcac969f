import pytest

from ekphory.errors import InvalidInput
from ekphory.service.learning import ExtractionSettings, read_learnt


@pytest.mark.parametrize(
    ("text", "learnt"), [(None, "profile"), ("off", "off"), ("categories", "categories")]
)
def test_what_is_learnt_is_read(text, learnt):
    assert read_learnt(text) == learnt


def test_what_cannot_be_learnt_is_refused_with_what_can():
    with pytest.raises(InvalidInput, match=r"extraction='all'.*Give off, categories, profile"):
        read_learnt("all")


def test_the_wait_doubles_up_to_the_longest():
    settings = ExtractionSettings(backoff=2.0, longest_wait=10.0)
    assert [settings.wait(failures) for failures in (1, 2, 3, 4, 1000)] == [2, 4, 8, 10, 10]
