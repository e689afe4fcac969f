"""`search`: what is found, in which order, and what is told about it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from ekphory.errors import InvalidInput
from ekphory.memory import Memory
from ekphory.testing.models import HashEmbedder

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PRESETS = [None, "fast", "balanced", "accurate", "rrf"]
FACTS = [
    {"id": "tea", "text": "Anna drinks green tea", "at": "2026-05-01", "type": "semantic"},
    {"id": "dog", "text": "Ben has a dog", "at": "2026-05-02", "producer": "Ben"},
    {"id": "trip", "text": "They travelled to Oslo", "at": "2026-05-03", "session": "s1"},
    {"id": "rule", "text": "Never push on Friday", "at": "2026-05-04", "pool": "shared_rules"},
]


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


def test_a_hit_holds_the_whole_memory(facts):
    hit = facts.search("dog").hits[0]
    assert (hit.id, hit.text) == ("dog", "Ben has a dog")
    assert hit.memory == facts.get("dog")


def test_a_hit_holds_a_probability_and_the_scores_behind_it(facts):
    hit = facts.search("dog").hits[0]
    assert 0 < hit.score == hit.scores["probability"] < 1
    assert {"cosine", "bm25", "lexical", "fused", "probability"} <= set(hit.scores)


def test_a_result_can_be_counted_and_walked_through(facts):
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
    for query in ("", "  \n"):
        assert ids(facts.search(query, k=3)) == ["rule", "trip", "dog"]


def test_the_empty_query_obeys_pools_and_filter(facts):
    assert ids(facts.search("", pools=["shared_rules"])) == ["rule"]
    assert ids(facts.search("", filter="at < date('2026-05-03')")) == ["dog", "tea"]


def test_hits_below_min_score_are_left_out(facts):
    every = facts.search("Ben has a dog")
    least = (every.hits[0].score + every.hits[1].score) / 2
    result = facts.search("Ben has a dog", min_score=least)
    assert (ids(result), result.abstained) == (["dog"], False)


def test_with_nothing_above_min_score_the_result_is_empty_and_says_so(facts):
    result = facts.search("unrelated", min_score=1.0)
    assert (result.hits, result.abstained) == ((), True)


def test_without_min_score_a_result_never_abstains(facts):
    assert facts.search("unrelated").abstained is False


def test_only_the_given_pools_are_searched(facts):
    assert ids(facts.search("dog", pools=["shared_rules"])) == ["rule"]
    assert len(facts.search("dog", pools=["shared_rules", "agent_memory"])) == 4


def test_a_standard_pool_without_memories_finds_nothing(facts):
    assert facts.search("dog", pools=["reference_code"]).hits == ()


def test_a_pool_of_the_users_own_can_be_searched(memory):
    memory.add_many([*FACTS, {"id": "own", "text": "Ben has a dog at work", "pool": "my.pool-1"}])
    assert ids(memory.search("dog", pools=["my.pool-1"])) == ["own"]


@pytest.mark.parametrize("preset", PRESETS)
def test_only_what_the_filter_lets_through_is_found(facts, preset):
    condition = "producer = 'Ben' OR session = 's1'"
    assert sorted(ids(facts.search("tea", filter=condition, preset=preset))) == ["dog", "trip"]


def test_a_filter_hides_hits_and_changes_no_score(facts):
    every = {hit.id: hit.scores for hit in facts.search("dog tea", now=NOW).hits}
    for hit in facts.search("dog tea", now=NOW, filter="producer = 'Ben'").hits:
        assert hit.scores == every[hit.id]


def test_the_older_of_two_equal_events_comes_second(memory):
    for day in (3, 9, 6):
        memory.add("went for a run", id=f"d{day}", at=f"2026-05-0{day}")
    assert ids(memory.search("run", now=NOW)) == ["d9", "d6", "d3"]


def test_now_may_be_an_iso_text(facts):
    early = facts.search("dog", now="2026-06-01T00:00:00Z")
    assert ids(early) == ids(facts.search("dog", now=NOW))


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


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("昨日、友達と東京タワーに行きました", "東京タワー"),
        ("我喜歡貓，不喜歡狗", "喜歡貓"),
        ("我的生日是五月八日", "生日是哪天"),
    ],
)
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


def test_a_memory_scores_by_its_best_window_less_a_little_for_their_number(memory):
    memory.add("kangaroo piano " * 50 + "filler " * 100, id="long")
    memory.add("kangaroo piano", id="short")
    scores = {hit.id: hit.scores["cosine"] for hit in memory.search("kangaroo piano").hits}
    # Two windows: .03 times ln 2.
    assert scores["short"] - scores["long"] == pytest.approx(0.0208, abs=1e-4)


def test_a_long_turn_of_a_conversation_loses_more_for_its_windows_than_a_document(memory):
    memory.add("kangaroo piano " * 50 + "filler " * 100, id="long", sequence=1)
    memory.add("kangaroo piano", id="short", sequence=2)
    scores = {hit.id: hit.scores["cosine"] for hit in memory.search("kangaroo piano").hits}
    # Two windows: .1 times ln 2.
    assert scores["short"] - scores["long"] == pytest.approx(0.0693, abs=1e-4)


def test_the_score_of_a_memory_does_not_depend_on_k(facts):
    one = facts.search("dog", k=1, now=NOW).hits[0]
    assert one == facts.search("dog", k=1_000, now=NOW).hits[0]


def test_the_same_search_gives_the_same_result(facts):
    first, second = (facts.search("dog tea Oslo", now=NOW) for _ in range(2))
    assert first.hits == second.hits


def test_the_trace_tells_every_stage(facts):
    trace = facts.search("dog", k=2).trace
    assert trace.preset == "balanced"
    assert [stage.name for stage in trace.stages] == [
        "open scope", "clean query", "classify query", "read time", "search time", "search pools",
        "fuse", "weigh", "decay", "favour time", "list time", "reranker gate", "rerank",
        "calibrate", "pin rules", "cut",
    ]  # fmt: skip
    assert (trace.stages[0].candidates_out, trace.stages[-1].candidates_out) == (4, 2)
    assert not trace.degraded


def test_the_trace_counts_time(facts):
    trace = facts.search("dog").trace
    assert all(stage.milliseconds >= 0 for stage in trace.stages)
    assert trace.milliseconds == sum(stage.milliseconds for stage in trace.stages)


def test_the_trace_is_plain_data_without_the_text_of_memories(facts):
    shown = json.dumps(facts.search("who is it?").trace.to_dict())
    assert "green tea" not in shown
    assert "Oslo" not in shown


def test_the_trace_names_the_chosen_preset(facts):
    assert facts.search("dog", preset="rrf").trace.preset == "rrf"
    assert facts.search("").trace.preset == "newest"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"query": None}, "query"),
        ({"query": 5}, "query"),
        ({"k": 0}, "k"),
        ({"k": -1}, "k"),
        ({"k": 1_001}, "k"),
        ({"k": 2.0}, "k"),
        ({"k": True}, "k"),
        ({"pools": ["nosuch"]}, "pools"),
        ({"pools": []}, "pools"),
        ({"pools": ()}, "pools"),
        ({"pools": "agent_memory"}, "pools"),
        ({"pools": 5}, "pools"),
        ({"pools": [5]}, "pools"),
        ({"min_score": 1.5}, "min_score"),
        ({"min_score": float("nan")}, "min_score"),
        ({"min_score": "high"}, "min_score"),
        ({"preset": "fastest"}, "preset"),
        ({"preset": 5}, "preset"),
        ({"now": "tomorrow"}, "now"),
        ({"now": 5}, "now"),
        ({"filter": "text ="}, "filter"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(facts, arguments, field):
    with pytest.raises(InvalidInput, match=f"^{field}=") as caught:
        facts.search(**({"query": "dog"} | arguments))
    assert caught.value.remedy


def test_an_overlong_query_is_answered_by_its_end(facts):
    assert ids(facts.search("blah " * 100_000 + "Who has a dog?"))[0] == "dog"


def test_a_preset_is_checked_before_the_empty_query(facts):
    with pytest.raises(InvalidInput, match="preset"):
        facts.search("", preset="fastest")


def test_what_expires_later_than_now_is_found(memory):
    memory.add("short", expires_at=datetime.now(UTC) + timedelta(hours=1))
    assert len(memory.search("short")) == 1
    assert memory.search("short", now=datetime.now(UTC) + timedelta(hours=2)).hits == ()
