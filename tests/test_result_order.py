"""What a result is ordered by: by probability scores never rise, and `min_score` cuts the end."""

import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekphory.memory import Memory
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.stages.find import Fuse, SearchPools
from ekphory.retrieval.stages.query import ClassifyQuery, CleanQuery
from ekphory.retrieval.stages.shape import Cut
from ekphory.testing.models import HashEmbedder

WORDS = ("garden", "tulip", "bread", "oven", "train", "delay", "Rome", "spring", "important", "how")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
MEMORIES = st.lists(
    st.fixed_dictionaries(
        {
            "text": TEXTS,
            "importance": st.sampled_from([0.0, 0.5, 1.0]),
            "pool": st.sampled_from(["agent_memory", "agent_mistakes", "shared_knowledge"]),
            "at": st.sampled_from(["2020-01-01", "2026-03-01", "2026-11-20"]),
        }
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(memories=MEMORIES, query=TEXTS, least=st.sampled_from([0.01, 0.1, 0.2, 0.5]))
def test_by_probability_scores_never_rise_and_a_least_score_cuts_the_end(
    preset, memories, query, least, tmp_path_factory
):
    with Memory(tmp_path_factory.mktemp("store")) as memory:
        memory.add_many(memories)
        whole = memory.search(query, k=20, preset=preset)
        cut = memory.search(query, k=20, preset=preset, min_score=least)
    scores = [hit.score for hit in whole]
    assert all(0 <= score <= 1 for score in scores)
    if preset in ("memory_spark", "rrf"):
        assert whole.order in ("ranks", "diversity", "time")
    if whole.order == "score":
        assert scores == sorted(scores, reverse=True)
        assert [hit.id for hit in cut] == [hit.id for hit in whole if hit.score >= least]
        assert [hit.id for hit in cut] == [hit.id for hit in whole][: len(cut)]


@pytest.fixture
def filled(tmp_path):
    with Memory(tmp_path, embedder=HashEmbedder()) as memory:
        memory.add("the tulips came up", at="2026-11-19")
        memory.add("the bread was burnt", at="2026-11-20")
        yield memory


@pytest.mark.parametrize(
    ("query", "options", "order"),
    [
        ("tulips", {}, "score"),
        ("tulips", {"preset": "fast"}, "score"),
        ("tulips", {"preset": "rrf"}, "ranks"),
        ("tulips", {"preset": "memory_spark"}, "diversity"),
        ("", {}, "newest"),
        ("yesterday", {"now": "2026-11-21T12:00Z"}, "time"),
    ],
)
def test_a_result_says_what_it_is_ordered_by(filled, query, options, order):
    assert filled.search(query, **options).order == order


def test_a_pinned_rule_comes_first_whatever_its_score(tmp_path):
    with Memory(tmp_path, embedder=HashEmbedder()) as memory:
        memory.add("never water at noon", pool="shared_rules", metadata={"pinned": True})
        memory.add("the tulips came up")
        result = memory.search("tulips", k=5)
    assert result.order == "pins"
    assert result.hits[0].text == "never water at noon"


def test_a_pipeline_that_calibrates_nothing_leaves_the_order_to_its_stages(filled):
    own = Pipeline("own", [CleanQuery(), ClassifyQuery(), SearchPools(), Fuse(), Cut()])
    assert filled.search("tulips", preset=own).order == "stages"


def test_names_of_orders_are_plain_words():
    from typing import get_args

    from ekphory.types import ResultOrder

    assert all(set(name) <= set(string.ascii_lowercase) for name in get_args(ResultOrder))


def test_with_words_alone_a_score_does_not_depend_on_how_many_hits_are_asked_for(tmp_path):
    with Memory(tmp_path / "few") as memory:
        memory.add_many(
            {"id": str(number), "text": text}
            for number, text in enumerate(
                ["Trains are late in the city.", *(f"Note {each} on bread." for each in range(30))]
            )
        )
        said = {memory.search("city delay?", k=k, preset="fast").hits[0].score for k in (1, 5, 20)}
    assert len(said) == 1
