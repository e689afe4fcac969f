"""`search`: what is found, in which order, and what is told about it."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.errors import InvalidInput
from ekphory.memory import Memory
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import PRESETS as ALL_PRESETS
from ekphory.retrieval.query import ClassifyQuery, CleanQuery
from ekphory.retrieval.stages.find import Fuse, SearchPools
from ekphory.retrieval.stages.shape import Cut
from ekphory.testing import HashEmbedder

CASES = read_cases(__file__)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PRESETS = [None, "fast", "balanced", "accurate", "rrf"]
FACTS = CASES["facts"]


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Four memories that are only read."""
    with Memory(tmp_path_factory.mktemp("facts"), embedder=HashEmbedder()) as memory:
        memory.add_many(FACTS)
        yield memory


@pytest.fixture(scope="module")
def twenty_five_rows(tmp_path_factory):
    """Memories in three pools that are only read."""
    with Memory(tmp_path_factory.mktemp("rows"), embedder=HashEmbedder()) as memory:
        memory.add_many({"text": f"row {n}", "pool": f"pool{n % 3}"} for n in range(25))
        yield memory


@pytest.fixture(scope="module")
def near_and_exact(tmp_path_factory):
    """A query of eighty words, and memories that are only read, two of them near it."""
    words = [f"word{n}" for n in range(80)]
    with Memory(tmp_path_factory.mktemp("near"), embedder=HashEmbedder()) as memory:
        memory.add_many({"text": f"something else {n}", "at": "2026-05-01"} for n in range(200))
        memory.add(" ".join([*words[:-1], "other"]), id="near", at="2026-05-01")
        memory.add(" ".join(words), id="exact", at="2026-05-01")
        yield " ".join(words), memory


def ids(result):
    return [hit.id for hit in result.hits]


@pytest.mark.parametrize("preset", PRESETS)
def test_the_memory_that_answers_comes_first(facts, preset):
    assert ids(facts.search("Who has a dog?", preset=preset))[0] == "dog"


def test_a_hit_holds_the_memory_and_its_scores(facts):
    # A hit holds the whole memory.
    hit = facts.search("dog").hits[0]
    assert (hit.id, hit.text) == ("dog", "Ben has a dog")
    assert hit.memory == facts.get("dog")
    # A hit holds a probability and the scores behind it.
    assert 0 < hit.score == hit.scores["probability"] < 1
    assert {"cosine", "bm25", "lexical", "fused", "probability"} <= set(hit.scores)
    # A result can be counted and walked through.
    result = facts.search("dog", k=3)
    assert len(result) == 3
    assert [hit.id for hit in result] == ids(result)


@pytest.mark.parametrize("preset", PRESETS)
def test_of_two_near_certain_matches_the_exact_one_comes_first(near_and_exact, preset):
    query, memory = near_and_exact
    assert ids(memory.search(query, k=2, preset=preset)) == ["exact", "near"]


def test_the_producer_is_part_of_what_is_searched(memory):
    memory.add_many([*FACTS, {"id": "like", "text": "I like it", "producer": "Zebediah"}])
    assert ids(memory.search("Zebediah"))[0] == "like"


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("query", ["row", "nothing in common", "😀", "the of and", "row 7"])
def test_k_hits_come_whenever_the_scope_holds_k(twenty_five_rows, preset, query):
    for k in (1, 10, 25, 26, 1_000):
        found = ids(twenty_five_rows.search(query, k=k, preset=preset))
        assert len(found) == len(set(found)) == min(k, 25)


def test_a_thousand_hits_come_out_of_more(memory):
    memory.add_many({"text": f"row {n}"} for n in range(1_200))
    for query in ("row 5", "nothing in common", ""):
        assert len(set(ids(memory.search(query, k=1_000)))) == 1_000


def test_a_search_in_an_empty_scope_finds_nothing_and_does_not_abstain(memory):
    result = memory.search("anything", min_score=0.5)
    assert (result.hits, result.abstained) == ((), False)


def test_the_empty_query_lists_the_newest(facts):
    # The empty query lists the newest.
    for query in ("", "  \n"):
        result = facts.search(query, k=3)
        assert (ids(result), result.trace.preset) == (["rule", "trip", "dog"], "newest")
    # The empty query obeys pools and filter.
    assert ids(facts.search("", pools=["shared_rules"])) == ["rule"]
    assert ids(facts.search("", filter="at < date('2026-05-03')")) == ["dog", "tea"]


def test_the_empty_query_gives_every_hit_the_score_zero(facts):
    assert ids(facts.search("", k=1, min_score=0.0)) == ["rule"]
    assert ids(facts.search("", k=1, min_score=0.01)) == []


def test_hits_below_min_score_are_left_out(facts):
    # Hits below min score are left out.
    every = facts.search("Ben has a dog")
    least = (every.hits[0].score + every.hits[1].score) / 2
    result = facts.search("Ben has a dog", min_score=least)
    assert (ids(result), result.abstained) == (["dog"], False)
    # With nothing above min score the result is empty and says so.
    result = facts.search("unrelated", min_score=1.0)
    assert (result.hits, result.abstained) == ((), True)
    assert facts.search("unrelated").abstained is False


def test_only_the_given_pools_are_searched_and_an_overlong_querys_end(facts):
    # Only the given pools are searched.
    assert ids(facts.search("dog", pools=["shared_rules"])) == ["rule"]
    assert len(facts.search("dog", pools=["shared_rules", "agent_memory"])) == 4
    assert facts.search("dog", pools=["reference_code"]).hits == ()
    # An overlong query is answered by its end.
    assert ids(facts.search("blah " * 100_000 + "Who has a dog?"))[0] == "dog"


def test_a_pool_of_the_users_own_can_be_searched(memory):
    memory.add_many([*FACTS, {"id": "own", "text": "Ben has a dog at work", "pool": "my.pool-1"}])
    assert ids(memory.search("dog", pools=["my.pool-1"])) == ["own"]


@pytest.mark.parametrize("preset", PRESETS)
def test_only_what_the_filter_lets_through_is_found(facts, preset):
    condition = "producer = 'Ben' OR session = 's1'"
    assert sorted(ids(facts.search("tea", filter=condition, preset=preset))) == ["dog", "trip"]


def test_the_older_of_two_equal_events_comes_second(memory):
    for day in (3, 9, 6):
        memory.add("went for a run", id=f"d{day}", at=f"2026-05-0{day}")
    assert ids(memory.search("run", now=NOW)) == ["d9", "d6", "d3"]


@pytest.mark.parametrize("now", ["0001-01-01", "9998-12-31"])
def test_now_may_be_any_moment(facts, now):
    assert len(facts.search("dog", now=now)) == 4


def test_the_more_important_of_two_equal_memories_comes_first(memory):
    memory.add("the code is blue", id="low", importance=0.1, at="2026-05-01")
    memory.add("the code is blue", id="high", importance=0.9, at="2026-05-01")
    assert ids(memory.search("code")) == ["high", "low"]


def test_importance_age_and_pool_change_no_score(memory):
    memory.add("the code is blue", id="1", importance=0.1, at="2001-05-01")
    memory.add("the code is blue", id="2", importance=0.9, at="2026-05-01", pool="shared_mistakes")
    first, second = memory.search("code", now=NOW).hits
    assert first.score == second.score


@pytest.mark.parametrize(("text", "query"), CASES["chinese and japanese text is found"])
def test_chinese_and_japanese_text_is_found(store_path, text, query):
    with Memory(store_path) as memory:
        memory.add(text, id="wanted")
        memory.add_many({"text": f"今天天氣很好 {n} 号"} for n in range(30))
        hit = memory.search(query, k=1).hits[0]
    assert hit.id == "wanted"
    assert hit.scores["bm25"] > 0


def test_a_long_text_is_found_by_its_last_window(memory):
    ending = "the kangaroo jumped over the piano at midnight"
    memory.add("filler " * 300 + ending, id="long")
    memory.add_many({"text": f"a note about topic {n}"} for n in range(30))
    hit = memory.search(ending, k=1).hits[0]
    assert hit.id == "long"
    # A window after the first counts .05 less than its cosine, and their number takes more.
    assert hit.scores["cosine"] > 0.9


# Two windows: .03 times ln 2 of a document, and .1 times ln 2 of a turn.
@pytest.mark.parametrize(("sequence", "loss"), [(None, 0.0208), (1, 0.0693)])
def test_a_memory_scores_by_its_best_window_less_a_little_for_their_number(memory, sequence, loss):
    memory.add("kangaroo piano " * 50 + "filler " * 100, id="long", sequence=sequence)
    memory.add("kangaroo piano", id="short", sequence=sequence)
    scores = {hit.id: hit.scores["cosine"] for hit in memory.search("kangaroo piano").hits}
    assert scores["short"] - scores["long"] == pytest.approx(loss, abs=1e-4)


def test_a_score_depends_neither_on_k_nor_on_a_filter(facts):
    # The score of a memory does not depend on k.
    one = facts.search("dog", k=1, now=NOW).hits[0]
    assert one == facts.search("dog", k=1_000, now=NOW).hits[0]
    # The same search gives the same result.
    first, second = (facts.search("dog tea Oslo", now=now) for now in (NOW, "2026-06-01T00:00Z"))
    assert first.hits == second.hits
    # A filter hides hits and changes no score.
    every = {hit.id: hit.scores for hit in facts.search("dog tea", now=NOW).hits}
    for hit in facts.search("dog tea", now=NOW, filter="producer = 'Ben'").hits:
        assert hit.scores == every[hit.id]


def test_the_trace_tells_every_stage(facts):
    # The trace tells every stage.
    trace = facts.search("dog", k=2).trace
    assert trace.preset == "balanced"
    assert [stage.name for stage in trace.stages] == [
        "open scope", "clean query", "classify query", "read time", "search time", "search pools",
        "fuse", "weigh", "decay", "favour time", "list time", "rerank",
        "calibrate", "follow links", "order revisions", "pin rules", "cut",
    ]  # fmt: skip
    assert (trace.stages[0].candidates_out, trace.stages[-1].candidates_out) == (4, 2)
    assert not trace.degraded
    # The trace counts time.
    trace = facts.search("dog").trace
    assert all(stage.milliseconds >= 0 for stage in trace.stages)
    assert trace.milliseconds == sum(stage.milliseconds for stage in trace.stages)
    # The trace is plain data without the text of memories.
    shown = json.dumps(facts.search("who is it?").trace.to_dict())
    assert "green tea" not in shown
    assert "Oslo" not in shown


UNUSABLE = {
    "query": [None, 5],
    "k": [0, -1, 1_001, 2.0, True],
    "pools": [["nosuch"], [], (), "agent_memory", 5, [5]],
    "min_score": [1.5, float("nan"), "high"],
    "preset": ["fastest", 5],
    "now": ["tomorrow", 5],
    "filter": ["text ="],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in UNUSABLE for value in UNUSABLE[name]]
)
def test_an_argument_that_cannot_be_used_is_named(facts, name, value):
    for query in ("dog", ""):
        with pytest.raises(InvalidInput, match=f"^{name}=") as caught:
            facts.search(**({"query": query} | {name: value}))
        assert caught.value.remedy


def test_what_expires_later_than_now_is_found(memory):
    memory.add("short", expires_at=datetime.now(UTC) + timedelta(hours=1))
    assert len(memory.search("short")) == 1
    assert memory.search("short", now=datetime.now(UTC) + timedelta(hours=2)).hits == ()


# The time in a query's words.

WEDNESDAY = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)  # a Wednesday
TURNS = CASES["turns"]
TIMED_PRESETS = ["fast", "balanced", "accurate", "memory_spark"]


@pytest.fixture(scope="module")
def turns(tmp_path_factory):
    """Four sessions that are only read."""
    with Memory(tmp_path_factory.mktemp("turns")) as opened:
        opened.add_many(TURNS)
        yield opened


def found(turns, query, **options):
    return [hit.id for hit in turns.search(query, now=WEDNESDAY, **options)]


@pytest.mark.parametrize("preset", TIMED_PRESETS)
@pytest.mark.parametrize(("query", "first"), CASES["queries for a time"])
def test_a_query_for_a_time_alone_lists_it_in_order(turns, preset, query, first):
    assert found(turns, query, preset=preset)[: len(first)] == first


def test_what_lies_in_the_time_asked_for_comes_first(turns):
    # A query with more in it finds the best in that time first.
    assert found(turns, "Who had a kayak on June 2nd?")[0] == "b1"
    assert sorted(found(turns, "Who had a kayak on May 4th?", k=2)) == ["a1", "a2"]
    # There are still k hits.
    assert len(found(turns, "What did we talk about on May 4th?", k=6)) == 6
    # The timezone says where a day begins.
    assert found(turns, "What happened on June 3rd?", timezone="Asia/Tokyo")[:2] == ["b1", "b2"]
    # A filter of the caller holds within the time.
    assert found(turns, "What happened in May?", filter="at >= date('2026-06-01')")[0] != "a1"


def test_time_can_filter(turns):
    # Time can filter.
    assert sorted(found(turns, "kayak in June", time="filter")) == ["b1", "b2", "c1", "d1"]
    # A filter by a time without memories finds nothing.
    assert found(turns, "kayak in March 2020", time="filter") == []
    # A filter without a time in the query hides nothing.
    assert len(found(turns, "kayak", time="filter")) == 6


def test_the_trace_says_which_time_was_read(turns):
    # Time can be ignored.
    trace = turns.search("kayak in May", now=WEDNESDAY, time="ignore").trace
    (stage,) = (each for each in trace.stages if each.name == "read time")
    assert (stage.status, stage.reason) == ("skipped", "time is ignored on request")
    # The trace says what was read and how much was found.
    trace = turns.search("What did we do on May 4th?", now=WEDNESDAY).trace
    detail = {stage.name: stage.detail for stage in trace.stages}
    (read,) = detail["read time"]["found"]
    assert (read["text"], read["from"]) == ("May 4th", "2026-05-04T00:00:00+00:00")
    assert detail["search time"]["inside"] == 2
    # The trace says that an event without a time filters nothing.
    result = turns.search("Who had a kayak before we moved?", now=WEDNESDAY, time="filter")
    stages = {stage.name: stage for stage in result.trace.stages}
    (read,) = stages["read time"].detail["found"]
    assert read["unknown"] == "when that was; nothing is filtered or lifted by it"
    assert stages["search time"].reason == (
        "the query names an event and no time, so nothing is filtered"
    )
    assert len(result.hits) == 6


def test_a_memory_in_the_time_is_as_probable_as_the_reading_is_sure(turns):
    # A memory in the time asked for is as probable as the reading is sure.
    hits = turns.search("What did we talk about on 2026-05-04?", now=WEDNESDAY).hits
    assert [round(hit.score, 2) for hit in hits[:2]] == [0.97, 0.97]
    assert all(hit.score < 0.03 for hit in hits[2:])
    # Nothing in the time asked for is nothing likely.
    result = turns.search("What did we talk about on March 3rd 2020?", now=WEDNESDAY, min_score=0.1)
    assert (result.hits, result.abstained) == ((), True)


@pytest.mark.parametrize(("options", "message"), CASES["what cannot be used is named"])
def test_what_cannot_be_used_is_named(turns, options, message):
    with pytest.raises(InvalidInput, match=message):
        turns.search("kayak", **options)


# What a result is ordered by.

WORDS = ("garden", "tulip", "bread", "oven", "train", "delay", "Rome", "spring", "important", "how")
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
MEMORIES = st.lists(
    st.fixed_dictionaries(
        {
            "text": QUERIES,
            "importance": st.sampled_from([0.0, 0.5, 1.0]),
            "pool": st.sampled_from(["agent_memory", "agent_mistakes", "shared_knowledge"]),
            "at": st.sampled_from(["2020-01-01", "2026-03-01", "2026-11-20"]),
        }
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.long
@pytest.mark.parametrize("preset", ALL_PRESETS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(memories=MEMORIES, query=QUERIES, least=st.sampled_from([0.01, 0.1, 0.2, 0.5]))
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
    ("query", "options", "order"), CASES["a result says what it is ordered by"]
)
def test_a_result_says_what_it_is_ordered_by(filled, query, options, order):
    assert filled.search(query, **options).order == order


def test_a_pipeline_that_calibrates_nothing_leaves_the_order_to_its_stages(filled):
    own = Pipeline("own", [CleanQuery(), ClassifyQuery(), SearchPools(), Fuse(), Cut()])
    assert filled.search("tulips", preset=own).order == "stages"


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
