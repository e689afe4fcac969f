"""Stage 6 makes one list of all pools."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.store_contract import contract_record

from ekphory.retrieval.pipeline import Candidates, QueryClass, QueryHints
from ekphory.retrieval.query import classify_query
from ekphory.retrieval.stages import weigh
from ekphory.retrieval.time_arm import find_timed_rows
from ekphory.store.ledger import FOREVER, RevisionLink, RevisionLinks
from ekphory.time_words.parse import read_time
from ekphory.types import MEMORY_TYPES, to_microseconds
from retrieval.states import records, rows, state_of, with_candidates


def test_a_memory_stands_once_with_its_best_ranking_and_the_trace_counts_by_pool():
    # A memory stands once with its best ranking.
    ranking = np.array([0.2, 0.9, 0.5], np.float32)
    twice = Candidates(np.array([0, 1, 0]), ranking, {"probability": ranking})
    merged = weigh.MergePools().run(replace(state_of(*records("a", "b")), candidates=twice))
    assert rows(merged) == [1, 0]
    assert merged.candidates.ranking.tolist() == [np.float32(0.9), np.float32(0.5)]
    # The trace counts by pool.
    given = [*records("a", "b"), *records("c", pool="shared_rules")]
    merged = weigh.MergePools().run(with_candidates(state_of(*given), [0.9, 0.5, 0.7]))
    assert (rows(merged), merged.notes) == ([0, 2, 1], {"agent_memory": 2, "shared_rules": 1})


def kept(*texts, groups=None, threshold=0.85):
    given_groups = groups or ["doc"] * len(texts)
    return weigh.drop_near_duplicates(
        given_groups, [weigh.words(text) for text in texts], threshold=threshold
    )


def test_the_similarity_is_the_share_of_common_words_of_three_letters():
    # Words are distinct folded and of three letters at least.
    assert weigh.words("The cat, the CAT is at 042!") == {"the", "cat", "042"}
    # The similarity is the share of common words.
    assert weigh.jaccard(
        weigh.words("red green blue"), weigh.words("green blue black")
    ) == pytest.approx(2 / 4)
    # Texts without words are alike.
    assert weigh.jaccard(weigh.words("!"), weigh.words("?")) == 1.0


def test_the_later_of_two_near_duplicates_goes_beyond_the_threshold():
    # The later of two near duplicates goes.
    common = "one two three four five six seven eight nine ten"
    assert kept(common, f"{common} eleven", "something else entirely") == [0, 2]
    # At the threshold both stay.
    assert kept("aaa bbb ccc", "aaa bbb ccc ddd", threshold=0.75) == [0, 1]


@given(st.lists(st.frozensets(st.sampled_from("abcdef")), max_size=8), st.floats(0, 1))
def test_what_is_kept_is_like_nothing_that_was_kept_before(texts, threshold):
    expected = []
    for place, text in enumerate(texts):
        if all(weigh.jaccard(text, texts[before]) <= threshold for before in expected):
            expected.append(place)
    assert weigh.drop_near_duplicates(["doc"] * len(texts), texts, threshold=threshold) == expected


SAME = "the backup runs every night at two and takes ten minutes"


def deduplicated(*given, **settings):
    state = with_candidates(state_of(*given), [0.9 - place / 10 for place in range(len(given))])
    return weigh.SourceDedup(**settings).run(state)


def test_of_near_duplicates_of_one_source_the_better_is_kept():
    # A parent counts before a path.
    one, two = (
        records(SAME, parent_id="p1", path="a.md")[0],
        records(SAME, parent_id="p2", path="a.md")[0],
    )
    assert rows(deduplicated(one, two)) == [0, 1]
    # Two users may have the same file.
    anna, ben = (
        records(SAME, path="a.md", user="anna")[0],
        records(SAME, path="a.md", user="ben")[0],
    )
    assert rows(deduplicated(anna, ben)) == [0, 1]
    # The source counts where there is no path.
    assert rows(deduplicated(*records(SAME, SAME, source="capture"))) == [0]
    # What is said twice without a source happened twice.
    assert rows(deduplicated(*records(SAME, SAME))) == [0, 1]
    # The better of two near duplicates is kept.
    found = deduplicated(*records(SAME, f"{SAME}!", "another passage", path="backup.md"))
    assert (rows(found), found.notes) == ([0, 2], {"dropped": 1})
    # Candidates that are not looked at are kept.
    assert rows(deduplicated(*records(SAME, SAME, SAME, path="a.md"), among=2)) == [0, 2]


TYPES = ["episodic", "semantic", "procedural", "unknown"]


def boosts(hints, types, importances):
    query_class = QueryClass("lookup", 0.0, hints=hints)
    return weigh.type_importance_boost(query_class, types, importances).tolist()


def test_a_hint_lifts_by_its_strength_and_together_they_multiply():
    # The most important lifts the important and lowers the rest.
    found = boosts(QueryHints(importance=1.0), ["unknown"] * 3, [0.0, 0.5, 1.0])
    assert found == pytest.approx([0.0497871, 1.0, 20.0855369])
    # A weaker hint lifts less.
    assert boosts(QueryHints(importance=0.5), ["unknown"], [1.0]) == pytest.approx([4.4816891])
    # Importance and type together multiply.
    hints = QueryHints(importance=0.5, semantic=1.0)
    assert boosts(hints, ["semantic"], [1.0]) == pytest.approx([1.03 * 4.4816891])


@pytest.mark.parametrize(
    ("query", "factors"),
    [
        ("What happened at the fair?", [1.024, 1, 1, 1]),
        ("What is my seat preference?", [1, 1.03, 1, 1]),
        ("How do I prune the vine?", [1, 1, 1.027, 1]),
        ("Where is the ladder?", [1, 1, 1, 1]),
    ],
)
def test_the_words_of_a_query_lift_one_type(query, factors):
    found = weigh.type_importance_boost(classify_query(query), TYPES, [0.5] * 4)
    assert found.tolist() == pytest.approx(factors)


@pytest.mark.parametrize("query_class", [None, QueryClass("lookup", 1.0)])
def test_without_hints_every_factor_is_exactly_one(query_class):
    found = weigh.type_importance_boost(query_class, TYPES, [0.0, 0.3, 0.9, 1.0])
    assert found.tolist() == [1.0, 1.0, 1.0, 1.0]


strengths = st.floats(0, 1)
hints = st.builds(
    QueryHints, importance=strengths, episodic=strengths, semantic=strengths, procedural=strengths
)
candidates = st.lists(st.tuples(st.sampled_from(MEMORY_TYPES), strengths), max_size=8)


@given(hints, candidates)
def test_no_factor_leaves_the_bounds(hint, found):
    types, importances = [kind for kind, _ in found], [value for _, value in found]
    factors = np.array(boosts(hint, types, importances))
    assert factors.shape == (len(found),)
    assert np.all(factors >= np.exp(-3) * 0.999)
    assert np.all(factors <= 1.03 * np.exp(3) * 1.001)


@given(hints, st.sampled_from(MEMORY_TYPES), strengths, strengths)
def test_of_one_type_the_more_important_is_never_lowered(hint, kind, one, other):
    low, high = boosts(hint, [kind, kind], sorted([one, other]))
    assert low <= high


def test_importance_lifts_by_a_tenth_and_a_predicted_one_only_where_it_is_asked_for():
    # Importance lifts and lowers by a tenth.
    records = [replace(contract_record(n), importance=n / 2) for n in (0, 1, 2)]
    state = with_candidates(state_of(*records), [0.5, 0.5, 0.5])
    weighed = weigh.Weigh(pool_weights={}).run(state).candidates
    assert weighed.rows.tolist() == [2, 1, 0]
    assert weighed.ranking.tolist() == pytest.approx([0.55, 0.5, 0.45])
    # A predicted importance neither lifts nor lowers.
    predicted = frozenset({"importance"})
    records = [
        replace(contract_record(n), importance=n / 2, predicted=predicted) for n in (0, 1, 2)
    ]
    state = with_candidates(state_of(*records), [0.5, 0.5, 0.5])
    assert weigh.Weigh(pool_weights={}).run(state).candidates.ranking.tolist() == [0.5, 0.5, 0.5]
    # A query for what is important lifts a predicted importance too.
    record = replace(contract_record(1), importance=1.0, predicted=frozenset({"importance"}))
    state = with_candidates(state_of(record), [0.5])
    asked = replace(state, query_class=QueryClass("lookup", 0.0, hints=QueryHints(importance=1.0)))
    lifted = weigh.Weigh(pool_weights={}).run(asked).candidates.ranking.tolist()
    assert lifted == pytest.approx([0.5 * 20.0855369])


def test_a_pool_lifts_by_a_tenth_at_most_which_a_later_stage_remembers():
    # A pool lifts by a tenth at most.
    record = replace(contract_record(1), pool="shared_mistakes")
    weighed = weigh.Weigh().run(with_candidates(state_of(record), [0.5])).candidates
    assert weighed.ranking.tolist() == pytest.approx([0.55])
    # Weighing changes no probability.
    assert weighed.scores["probability"].tolist() == [0.5]
    # The factors are remembered for a later stage.
    lifted = weigh.Weigh().run(with_candidates(state_of(record), [0.5])).candidates
    assert lifted.scores["boost"].tolist() == pytest.approx([1.1])


def weighed(record, **settings):
    stage = weigh.Weigh(pool_weights={}, importance=0.0, **settings)
    return stage.run(with_candidates(state_of(record), [0.5])).candidates.ranking.tolist()


def test_without_a_bound_the_published_pool_weights_hold():
    pools = [
        "agent_memory",
        "agent_mistakes",
        "shared_mistakes",
        "shared_knowledge",
        "shared_rules",
    ]
    given = [replace(contract_record(n), pool=pool) for n, pool in enumerate(pools, start=1)]
    lifted = weigh.Weigh(bound=None).run(with_candidates(state_of(*given), [0.5] * 5)).candidates
    by_row = dict(zip(lifted.rows.tolist(), lifted.ranking.tolist(), strict=True))
    assert [by_row[row] for row in range(5)] == pytest.approx([0.5, 0.8, 0.8, 0.4, 0.5])


@pytest.mark.parametrize(
    ("fields", "factor"),
    [
        ({"source": "capture"}, 1.5),
        ({"source": "codex", "metadata": {"class": "fact", "evidence": "0"}}, 1.5),
        ({"source": "sessions"}, 1.0),
        ({"path": "MEMORY.md"}, 1.4),
        ({"path": "memory/learnings.md"}, 0.1),
        ({"path": "notes/Mistakes/2026.md"}, 1.6),
        ({"path": "memory/archive/mistakes.md"}, 1.6),
        ({"path": "memory/archive/old.md"}, 0.4),
        ({"source": "capture", "path": "TOOLS.md"}, 1.5 * 1.3),
        ({"path": "elsewhere.md"}, 1.0),
        ({}, 1.0),
    ],
)
def test_source_and_path_weigh_as_published(fields, factor):
    (record,) = records("text", **fields)
    assert weigh.PUBLISHED_ORIGIN_WEIGHTS.of(record) == pytest.approx(factor)


def test_an_origin_lifts_by_the_bound_at_most():
    (record,) = records("text", source="capture")
    origins = weigh.OriginWeights(sources={"capture": 1.5})
    assert weighed(record, origin_weights=origins) == pytest.approx([0.55])
    assert weighed(record, origin_weights=origins, bound=None) == pytest.approx([0.75])


def test_what_a_query_asks_for_is_lifted():
    given = [
        replace(each, type=kind)
        for each, kind in zip(records("a", "b"), ("episodic", "procedural"), strict=True)
    ]
    state = with_candidates(state_of(*given), [0.5, 0.5])
    asked = QueryClass("procedural", 0.0, hints=QueryHints(procedural=0.9))
    lifted = weigh.Weigh().run(replace(state, query_class=asked))
    assert rows(lifted) == [1, 0]
    assert lifted.candidates.ranking.tolist() == pytest.approx([0.5 * 1.027, 0.5])


@pytest.mark.parametrize(
    ("days", "factor"),
    [(0, 1.0), (1, 0.994), (7, 0.962), (30, 0.881), (365, 0.800), (100_000, 0.800)],
)
def test_a_memory_fades_to_eight_tenths(days, factor):
    assert weigh.decay_factors(np.array([days], float))[0] == pytest.approx(factor, abs=5e-4)


def test_what_lies_ahead_does_not_fade_and_floor_and_rate_can_be_chosen():
    # What lies ahead does not fade.
    assert weigh.decay_factors(np.array([-5.0]))[0] == 1.0
    # Floor and rate can be chosen.
    assert weigh.decay_factors(np.array([10.0]), floor=0.5, rate=0.1)[0] == pytest.approx(
        0.684, abs=5e-4
    )


def test_facts_and_how_tos_do_not_fade_and_age_counts_from_when_it_happened():
    # Facts and how tos do not fade.
    kinds = ("episodic", "semantic", "procedural", "unknown")
    records = [replace(contract_record(n), type=kind) for n, kind in enumerate(kinds, start=1)]
    aged = weigh.Decay(floor=0.8).run(with_candidates(state_of(*records), [0.5] * 4)).candidates
    assert sorted(aged.rows[:2].tolist()) == [1, 2]
    assert aged.ranking.tolist() == pytest.approx([0.5, 0.5, 0.4, 0.4], abs=1e-3)
    # Every type can be made to fade.
    record = replace(contract_record(1), type="semantic")
    aged = weigh.Decay(floor=0.8, fading=MEMORY_TYPES).run(with_candidates(state_of(record), [0.5]))
    assert aged.candidates.ranking.tolist() == pytest.approx([0.4], abs=1e-3)
    # Age counts from when it happened not from when it was written.
    record = replace(contract_record(1), created_at=datetime(2027, 1, 15, tzinfo=UTC))
    aged = weigh.Decay(floor=0.8).run(with_candidates(state_of(record), [0.5]))
    assert aged.candidates.ranking.tolist() == pytest.approx([0.4], abs=1e-3)


def test_what_held_in_the_time_named_is_lifted_by_the_part_of_it_in_which_it_held():
    told = ("2024-03-01", "2025-04-16", "2026-02-01")
    moments = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in told]
    given = [replace(contract_record(n), at=at) for n, at in enumerate(moments)]
    state = with_candidates(state_of(*given), [0.4, 0.3, 0.2])
    reading = read_time("Where did we rehearse in April 2025?", now=moments[-1])
    timed = find_timed_rows(
        state.snapshot, reading, visible=np.ones(3, bool), now=state.request.now
    )
    state = replace(state, reading=reading, timed=timed)

    def lift(links):
        found = weigh.FavourTime().run(replace(state, links=links)).candidates
        return found.scores["boost_time"][np.argsort(found.rows)].tolist()

    # The reading is sure by .92, and inside the ranking is multiplied by 1 + 14 times that.
    assert lift(RevisionLinks()) == pytest.approx([1, 13.88, 1])
    since = to_microseconds(moments[1])
    link = RevisionLink(0, 1, "replaces", 0.8, since, FOREVER, "1", "r", acts=True)
    # The old state held in the first half of April, by four fifths.
    held = lift(RevisionLinks((link,), {0: [0], 1: [0]}))
    assert held == pytest.approx([1 + 12.88 * 0.8 / 2, 13.88, 1])
    asked = replace(state, request=replace(state.request, superseded="ignore"))
    ignoring = replace(asked, links=RevisionLinks((link,), {0: [0], 1: [0]}))
    lifted = weigh.FavourTime().run(ignoring).candidates.scores["boost_time"]
    assert sorted(lifted.tolist()) == pytest.approx([1, 1, 13.88])
    # What was never true did not hold then either.
    corrected = replace(link, kind="corrects")
    assert lift(RevisionLinks((corrected,), {0: [0], 1: [0]})) == pytest.approx([1, 13.88, 1])


def test_the_ranking_is_divided_by_its_largest_if_above_0():
    # The ranking is divided by its largest and no probability is.
    given = with_candidates(state_of(*records("a", "b")), [0.5, 0.2])
    scaled = weigh.Normalise().run(given).candidates
    assert scaled.ranking.tolist() == pytest.approx([1.0, 0.4])
    assert scaled.scores["probability"].tolist() == pytest.approx([0.5, 0.2])
    # A ranking of nothing is left alone.
    given = with_candidates(state_of(*records("a")), [0.0])
    assert weigh.Normalise().skip_reason(given) == "the best ranking is not above 0"
