"""`search` understands the time in a query's words."""

from datetime import UTC, datetime

import pytest

from ekphory.errors import InvalidInput
from ekphory.memory import Memory

NOW = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)  # a Wednesday
TURNS = [
    # The ids of the sessions say nothing of their order.
    {"id": "a1", "text": "Anna bought a green kayak", "at": "2026-05-04T09:00", "session": "z"},
    {"id": "a2", "text": "Ben likes the kayak", "at": "2026-05-04T09:01", "session": "z"},
    {"id": "b1", "text": "The kayak leaks", "at": "2026-06-02T18:00", "session": "m"},
    {"id": "b2", "text": "Anna mends it", "at": "2026-06-02T18:01", "session": "m"},
    {"id": "c1", "text": "Ben sold the kayak", "at": "2026-06-10T08:00", "session": "a"},
    {"id": "d1", "text": "What was that about?", "at": "2026-06-10T11:59", "session": "now"},
]
PRESETS = ["fast", "balanced", "accurate", "memory_spark"]


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """Four sessions that are only read."""
    with Memory(tmp_path_factory.mktemp("turns")) as opened:
        opened.add_many(TURNS)
        yield opened


def found(memory, query, **options):
    return [hit.id for hit in memory.search(query, now=NOW, **options)]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What did we talk about on May 4th?", ["a1", "a2"]),
        ("What did we talk about last Tuesday?", ["b1", "b2"]),
        ("What did we discuss in our second session?", ["b1", "b2"]),
        ("What did we discuss 3 sessions ago?", ["b1", "b2"]),
        ("Tell me about sessions 1 through 2", ["a1", "a2", "b1", "b2"]),
        ("What did we discuss in the last session before June 1st?", ["a1", "a2"]),
        ("What was said earlier today?", ["c1"]),
        ("What happened in May?", ["a1", "a2"]),
    ],
)
def test_a_query_for_a_time_alone_lists_it_in_order(memory, preset, query, first):
    assert found(memory, query, preset=preset)[: len(first)] == first


def test_a_query_with_more_in_it_finds_the_best_in_that_time_first(memory):
    assert found(memory, "Who had a kayak on June 2nd?")[0] == "b1"
    assert sorted(found(memory, "Who had a kayak on May 4th?", k=2)) == ["a1", "a2"]


def test_there_are_still_k_hits(memory):
    assert len(found(memory, "What did we talk about on May 4th?", k=6)) == 6


def test_time_can_filter(memory):
    assert sorted(found(memory, "kayak in June", time="filter")) == ["b1", "b2", "c1", "d1"]


def test_a_filter_by_a_time_without_memories_finds_nothing(memory):
    assert found(memory, "kayak in March 2020", time="filter") == []


def test_a_filter_without_a_time_in_the_query_hides_nothing(memory):
    assert len(found(memory, "kayak", time="filter")) == 6


def test_time_can_be_ignored(memory):
    trace = memory.search("kayak in May", now=NOW, time="ignore").trace
    (stage,) = (each for each in trace.stages if each.name == "read time")
    assert (stage.status, stage.reason) == ("skipped", "time is ignored on request")


def test_the_trace_says_what_was_read_and_how_much_was_found(memory):
    trace = memory.search("What did we do on May 4th?", now=NOW).trace
    detail = {stage.name: stage.detail for stage in trace.stages}
    (read,) = detail["read time"]["found"]
    assert (read["text"], read["from"]) == ("May 4th", "2026-05-04T00:00:00+00:00")
    assert detail["search time"]["inside"] == 2


def test_the_trace_says_that_an_event_without_a_time_filters_nothing(memory):
    result = memory.search("Who had a kayak before we moved?", now=NOW, time="filter")
    stages = {stage.name: stage for stage in result.trace.stages}
    (read,) = stages["read time"].detail["found"]
    assert read["unknown"] == "when that was; nothing is filtered or lifted by it"
    assert stages["search time"].reason == (
        "the query names an event and no time, so nothing is filtered"
    )
    assert len(result.hits) == 6


def test_the_timezone_says_where_a_day_begins(memory):
    assert found(memory, "What happened on June 3rd?", timezone="Asia/Tokyo")[:2] == ["b1", "b2"]


def test_a_memory_in_the_time_asked_for_is_as_probable_as_the_reading_is_sure(memory):
    hits = memory.search("What did we talk about on 2026-05-04?", now=NOW).hits
    assert [round(hit.score, 2) for hit in hits[:2]] == [0.97, 0.97]
    assert all(hit.score < 0.03 for hit in hits[2:])


def test_nothing_in_the_time_asked_for_is_nothing_likely(memory):
    result = memory.search("What did we talk about on March 3rd 2020?", now=NOW, min_score=0.1)
    assert (result.hits, result.abstained) == ((), True)


def test_a_filter_of_the_caller_holds_within_the_time(memory):
    assert found(memory, "What happened in May?", filter="at >= date('2026-06-01')")[0] != "a1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "sometimes"}, r"time='sometimes'.*'boost' or 'filter' or 'ignore'"),
        ({"timezone": "Mars"}, r"timezone='Mars'"),
        ({"time": "filter", "preset": "rrf"}, r"'rrf' reads no time"),
    ],
)
def test_what_cannot_be_used_is_named(memory, options, message):
    with pytest.raises(InvalidInput, match=message):
        memory.search("kayak", **options)
