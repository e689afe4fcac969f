"""Texts so long that only some of their windows are embedded."""

import itertools

import pytest

from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder
from ekphory.write import LONGEST_WHOLE, SAMPLED_WINDOWS


def long_text(characters):
    """Numbered sentences, so that every window says something else."""
    numbers = range(characters // 25)
    return "".join(f"Station {number} lies behind hill {number}. " for number in numbers)[
        :characters
    ]


class CountingEmbedder:
    """Counts the passages that another one embeds."""

    def __init__(self, embedder):
        self._embedder = embedder
        self.passages = []

    def __getattr__(self, name):
        return getattr(self._embedder, name)

    def encode(self, texts):
        self.passages += texts
        return self._embedder.encode(texts)


@pytest.fixture
def counting(store_path):
    embedder = CountingEmbedder(HashEmbedder())
    with Memory(store_path, embedder=embedder) as memory:
        yield embedder, memory


def test_of_a_very_long_text_some_windows_are_embedded_and_the_report_says_so(counting):
    embedder, memory = counting
    text = long_text(LONGEST_WHOLE + 1)
    report = memory.add(text)
    assert report.sampled == report.ids
    assert len(embedder.passages) == SAMPLED_WINDOWS
    assert text.startswith(embedder.passages[0])
    assert text.rstrip().endswith(embedder.passages[-1])
    assert memory.get(report.ids[0]).text == text


def test_the_windows_are_spread_over_the_text(counting):
    embedder, memory = counting
    text = long_text(1_000_000)
    memory.add(text)
    places = [text.index(passage) for passage in embedder.passages]
    gaps = [later - earlier for earlier, later in itertools.pairwise(places)]
    assert (min(gaps), max(gaps)) == (
        pytest.approx(15_800, rel=0.1),
        pytest.approx(15_800, rel=0.3),
    )


def test_a_shorter_text_is_embedded_whole(counting):
    _, memory = counting
    assert memory.add(long_text(LONGEST_WHOLE)).sampled == ()


def test_words_are_found_wherever_they_stand(counting):
    _, memory = counting
    half = long_text(400_000)
    report = memory.add(f"{half} The heron nests at Grebe Sluice. {half}")
    memory.add("A short note about something else")
    assert memory.search("heron Grebe Sluice").hits[0].id == report.ids[0]


def test_many_texts_are_reported_by_their_ids(counting):
    _, memory = counting
    report = memory.add_many(
        [{"id": "short", "text": "tea"}, {"id": "long", "text": long_text(LONGEST_WHOLE + 1)}]
    )
    assert report.sampled == ("long",)
