"""Facts that changed: superseding, its undoing, conflicts, timelines and profiles."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import cycle
from threading import Event

import pytest
from tests.cases import read_cases

from ekphory.errors import InvalidInput, MemoryNotFound, ScopeError

ALSO_OVER_A_SERVER = True
NOW = "2026-03-01T00:00:00Z"


@pytest.fixture
def moved(memory):
    """Where somebody lives, told three times, beside somebody else's town."""
    for name, at, text in (
        ("rome", "2024-01-05", "Mara lives in Rome"),
        ("oslo", "2025-02-05", "Mara lives in Oslo"),
        ("bonn", "2025-09-05", "Mara lives in Bonn"),
        ("jan", "2025-10-05", "Jan lives in Rome"),
    ):
        memory.add(text, id=name, at=f"{at}T10:00:00Z", type="semantic", producer="note")
    return memory


def ids(result):
    return [hit.id for hit in result]


def test_what_is_superseded_stands_below_and_says_since_when(moved):
    moved.supersede("rome", by="oslo")
    moved.supersede("oslo", by="bonn", at="2025-08-01")
    found = {hit.id: hit for hit in moved.search("Mara lives in Rome", now=NOW)}
    order = list(found)
    assert order.index("bonn") < order.index("oslo")
    assert order.index("bonn") < order.index("rome")
    assert (found["rome"].superseded_by, found["oslo"].superseded_by) == ("oslo", "bonn")
    assert found["oslo"].since == datetime(2025, 8, 1, tzinfo=UTC)
    assert (found["bonn"].superseded_by, found["jan"].superseded_by) == (None, None)


@pytest.mark.parametrize("preset", ["fast", "balanced", "accurate", "rrf", "memory_spark"])
def test_the_states_of_a_topic_stand_in_order_newest_first_whatever_words_are_asked(moved, preset):
    moved.supersede("rome", by="oslo")
    moved.supersede("oslo", by="bonn")
    found = ids(moved.search("Mara lives in Rome", now=NOW, preset=preset))
    assert [name for name in found if name != "jan"] == ["bonn", "oslo", "rome"]


def test_what_would_supersede_itself_over_others_is_refused(moved):
    moved.supersede("rome", by="oslo")
    last = moved.supersede("oslo", by="bonn")
    remedy = f"by='rome': 'oslo' is superseded by 'bonn'. .* unsupersede the decision {last.id}"
    with pytest.raises(InvalidInput, match=remedy):
        moved.supersede("bonn", by="rome")


def test_what_is_superseded_lends_its_probability_to_what_came_of_it_alone(moved):
    moved.add("Mara sails", id="sails", at="2025-11-05T10:00:00Z")
    moved.add("Mara rows now", id="rows", at="2025-12-05T10:00:00Z")
    alone = {hit.id: hit.score for hit in moved.search("Mara lives in Rome", now=NOW)}
    moved.supersede("sails", by="rows")
    moved.supersede("rome", by="bonn")
    # Somebody took the two topics for one.
    moved.supersede("sails", by="bonn")
    found = {hit.id: hit.score for hit in moved.search("Mara lives in Rome", now=NOW)}
    assert found["bonn"] == pytest.approx(max(alone["rome"], alone["bonn"]), abs=1e-4)
    assert found["rows"] == pytest.approx(alone["rows"], abs=1e-4)


def test_scores_fall_along_the_list_after_a_revision(moved):
    moved.supersede("rome", by="bonn")
    result = moved.search("Mara lives in Rome", now=NOW)
    scores = [hit.score for hit in result]
    assert result.order == "score"
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("preset", ["fast", "balanced", "accurate", "rrf", "memory_spark"])
def test_every_preset_puts_the_state_that_holds_first(moved, preset):
    moved.supersede("rome", by="bonn")
    found = ids(moved.search("Mara lives in Rome", now=NOW, preset=preset))
    assert found.index("bonn") < found.index("rome")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Where does Mara live?", "bonn"),
        ("Where does Mara live now, after all the moves before?", "bonn"),
        ("Where did Mara live originally?", "rome"),
        ("Where did Mara live in summer 2025?", "oslo"),
        ("Where did Mara live in 2024?", "rome"),
        ("Wo hat Mara 2024 gewohnt?", "rome"),
        ("Où est-ce que Mara habitait en 2024 ?", "rome"),
        ("¿Dónde vivía Mara en 2024?", "rome"),
        ("Dove viveva Mara nell'estate del 2025?", "oslo"),
        ("Onde a Mara morava em 2024?", "rome"),
        ("Waar woonde Mara in de zomer van 2025?", "oslo"),
        ("Где Мара жила в 2024 году?", "rome"),
        ("Mara2024年住在哪里？", "rome"),
        ("Maraは2024年にどこに住んでいましたか", "rome"),
        ("Где Мара жила изначально?", "rome"),
    ],
)
def test_the_question_decides_which_state_is_asked_for(moved, query, first):
    moved.supersede("rome", by="oslo")
    moved.supersede("oslo", by="bonn")
    found = [each for each in ids(moved.search(query, now=NOW)) if each != "jan"]
    assert found[0] == first


def test_a_decision_acts_from_when_it_took_effect_on(moved):
    alone = ids(moved.search("Mara lives in Rome", now="2024-06-01"))
    moved.supersede("rome", by="oslo")
    moved.supersede("oslo", by="bonn", at="2027-01-01")
    before = moved.search("Mara lives in Rome", now="2024-06-01")
    assert ids(before) == alone
    assert [hit.superseded_by for hit in before] == [None] * 4
    assert set(ids(moved.search("Mara lives in Rome", now="2024-06-01", superseded="hide"))) == set(
        alone
    )
    after = {hit.id: hit.superseded_by for hit in moved.search("Mara lives in Rome", now=NOW)}
    assert (after["rome"], after["oslo"]) == ("oslo", None)
    later = {hit.id: hit for hit in moved.search("Mara lives in Rome", now="2027-01-02")}
    assert later["oslo"].superseded_by == "bonn"


def test_a_profile_and_a_timeline_tell_what_held_at_the_moment_asked_for(moved):
    moved.supersede("rome", by="oslo")
    moved.supersede("oslo", by="bonn")
    texts = {entry.text for entry in moved.profile(now="2024-06-01")}
    assert texts == {"Mara lives in Rome"}
    texts = {entry.text for entry in moved.profile(now="2025-03-01")}
    assert texts == {"Mara lives in Oslo"}
    (state,) = moved.timeline("where Mara lives", now="2024-06-01")
    assert (state.memory.id, state.until) == ("rome", None)
    states = moved.timeline("where Mara lives", now="2025-03-01")
    assert [(state.memory.id, state.until is None) for state in states] == [
        ("rome", False), ("oslo", True),
    ]  # fmt: skip
    assert moved.timeline("where Mara lives", now="2023-01-01") == ()


def test_a_timeline_of_an_earlier_moment_tells_what_a_memory_said_then(memory):
    memory.add("Mara lives in Rome", id="home", at="2024-01-05T10:00:00Z")
    memory.update("home", text="Mara lives in Oslo", at="2025-02-05T10:00:00Z")
    (state,) = memory.timeline("Mara lives", now="2024-06-01")
    assert (state.memory.text, state.until) == ("Mara lives in Rome", None)


@pytest.mark.parametrize(
    "query",
    [
        "Where did Mara live before?",
        "Wo hat Mara gewohnt, bevor sie umzog?",
        "Dove viveva Mara prima?",
        "Onde a Mara morava antigamente?",
        "Waar woonde Mara vroeger?",
        "Где Мара жила раньше?",
    ],
)
def test_a_question_about_the_past_gets_an_earlier_state(moved, query):
    moved.supersede("rome", by="bonn")
    moved.supersede("oslo", by="bonn")
    found = ids(moved.search(query, now=NOW))
    assert max(found.index("rome"), found.index("oslo")) < found.index("bonn")


def test_what_was_never_true_is_not_the_past_either(moved):
    moved.supersede("rome", by="bonn", kind="corrects")
    found = ids(moved.search("Where did Mara live before?", now=NOW))
    assert found.index("bonn") < found.index("rome")


def test_superseded_memories_can_be_hidden_or_ranked_as_ever(moved):
    before = ids(moved.search("Mara lives in Rome", now=NOW))
    moved.supersede("rome", by="bonn")
    assert "rome" not in ids(moved.search("Mara lives in Rome", now=NOW, superseded="hide"))
    assert "rome" not in ids(moved.search("", now=NOW, superseded="hide"))
    ignored = moved.search("Mara lives in Rome", now=NOW, superseded="ignore")
    assert ids(ignored) == before
    assert next(hit for hit in ignored if hit.id == "rome").superseded_by == "bonn"
    with pytest.raises(InvalidInput, match="superseded='away': must say what becomes of it"):
        moved.search("x", superseded="away")


@pytest.mark.parametrize("kind", ["plans", "restates"])
def test_a_plan_and_what_is_said_again_change_no_order(moved, kind):
    before = moved.search("Mara lives in Bonn", now=NOW).hits
    moved.supersede("oslo", by="bonn", kind=kind)
    assert moved.search("Mara lives in Bonn", now=NOW).hits == before


DURING = "2025-09-10T00:00:00Z"


def test_an_exception_holds_for_a_fortnight_but_for_what_is_usual(moved):
    moved.supersede("oslo", by="bonn", kind="excepts")
    found = ids(moved.search("Does Mara live in Oslo?", now=DURING))
    assert found.index("bonn") < found.index("oslo")
    found = ids(moved.search("Where does Mara usually live, in Bonn?", now=DURING))
    assert found.index("oslo") < found.index("bonn")
    found = ids(moved.search("Where does Mara live, in Bonn?", now=NOW))
    assert found.index("oslo") < found.index("bonn")


@pytest.mark.parametrize(
    ("at", "now", "first"),
    [
        (None, "2026-05-06", "week"),
        (None, "2026-06-20", "home"),
        ("2026-05-20", "2026-05-06", None),
        ("2026-05-20", "2026-05-25", "week"),
        ("2026-05-20", "2026-06-20", "home"),
    ],
)
def test_an_exception_that_a_caller_states_ends_as_it_says(memory, at, now, first):
    memory.add("I stay in Lisbon, in the Alfama", id="home", at="2026-01-05")
    memory.add("This week I stay at my parents' place in Braga", id="week", at="2026-05-05")
    alone = ids(memory.search("where do I stay?", now=now))
    memory.supersede("home", by="week", kind="excepts", at=at)
    assert ids(memory.search("where do I stay?", now=now))[0] == (first or alone[0])
    states = {state.memory.id: state.until for state in memory.timeline("where I stay", now=NOW)}
    assert states.get("home") is None


def test_a_decision_can_be_taken_back(moved):
    before = moved.search("Mara lives in Rome", now=NOW).hits
    one = moved.supersede("rome", by="oslo")
    two = moved.supersede("rome", by="bonn")
    assert moved.unsupersede(revision=one.id) == 1
    assert moved.unsupersede(batch=two.batch) == 1
    assert moved.search("Mara lives in Rome", now=NOW).hits == before
    assert moved.unsupersede(revision=one.id) == 0
    with pytest.raises(InvalidInput, match="revision='none': there is none in this scope"):
        moved.unsupersede(revision="none")
    with pytest.raises(InvalidInput, match="one of revision and batch must be given"):
        moved.unsupersede()


def test_a_decision_says_who_made_it_and_when(moved):
    made = moved.supersede("rome", by="bonn", kind="ends")
    assert (made.older, made.newer, made.kind, made.state) == ("rome", "bonn", "ends", "active")
    assert (made.probability, made.decided_by) == (1.0, "caller")
    assert abs((datetime.now(UTC) - made.decided_at).total_seconds()) < 60


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("rome", "rome", "replaces"), InvalidInput, "is the same memory"),
        (("rome", "nobody", "replaces"), MemoryNotFound, "nobody"),
        (("rome", "bonn", "beats"), InvalidInput, "no such kind of revision"),
    ],
)
def test_a_decision_that_cannot_be_made_says_why(moved, arguments, error, message):
    old, by, kind = arguments
    with pytest.raises(error, match=message):
        moved.supersede(old, by=by, kind=kind)


@pytest.mark.one_store
def test_a_revision_acts_within_one_scope_and_pool(moved, open_memory):
    moved.add("Mara lives in Bern", id="shared", pool="shared_knowledge")
    with pytest.raises(ScopeError, match="the older memory has pool='agent_memory'"):
        moved.supersede("rome", by="shared")
    other = open_memory(project="other")
    other.add("Mara lives in Kyiv", id="kyiv")
    with pytest.raises(ScopeError, match="project"):
        moved.supersede("rome", by="kyiv")


def test_another_scope_neither_sees_nor_undoes_a_decision(open_memory):
    mine, theirs = open_memory(project="mine"), open_memory(project="theirs")
    for handle in (mine, theirs):
        handle.add("Lives in Rome", id="rome", at="2024-01-01")
        handle.add("Lives in Bonn", id="bonn", at="2025-01-01")
    made = mine.supersede("rome", by="bonn")
    assert [hit.superseded_by for hit in theirs.search("Lives in Rome", now=NOW)] == [None, None]
    with pytest.raises(InvalidInput, match="there is none in this scope"):
        theirs.unsupersede(revision=made.id)


def test_a_decision_outlives_the_handle_and_a_change_of_metadata(moved, open_memory):
    moved.supersede("rome", by="bonn")
    moved.update("bonn", metadata={"sure": True})
    moved.update("rome", text="Mara lived in Rome, in fact")
    moved.close()
    again = open_memory()
    found = {hit.id: hit.superseded_by for hit in again.search("Mara Rome", now=NOW)}
    assert found["rome"] == "bonn"


def test_a_forgotten_memory_takes_its_decisions_along(moved):
    moved.supersede("rome", by="bonn")
    moved.forget("bonn", purge=True)
    found = moved.search("Mara lives in Rome", now=NOW)
    assert [hit.superseded_by for hit in found] == [None] * 3
    assert ids(found)[0] == "rome"


def test_a_timeline_tells_the_states_of_a_topic_in_order(moved):
    first = moved.supersede("rome", by="oslo")
    second = moved.supersede("oslo", by="bonn")
    states = moved.timeline("Mara lives", now=NOW)
    assert [state.memory.id for state in states] == ["rome", "oslo", "bonn"]
    assert [state.revision for state in states] == [first.id, second.id, None]
    assert states[0].until == states[1].since
    assert states[2].until is None
    assert [state.memory.id for state in moved.timeline("Mara lives", k=1, now=NOW)] == ["bonn"]


def test_a_timeline_of_what_never_changed_tells_of_no_other_topic(moved):
    moved.supersede("rome", by="oslo")
    moved.add("The kitchen light needs an E14 bulb", id="bulb", at="2025-11-02T10:00:00Z")
    assert [state.memory.id for state in moved.timeline("the kitchen light", now=NOW)] == ["bulb"]


def test_a_timeline_tells_what_a_memory_said_before_it_was_updated(memory):
    memory.add("Mara lives in Rome", id="home", at="2024-01-05T10:00:00Z")
    memory.update("home", importance=0.9)
    memory.update("home", text="Mara lives in Oslo", at="2025-02-05T10:00:00Z")
    states = memory.timeline("Mara lives", now=NOW)
    assert [state.memory.text for state in states] == ["Mara lives in Rome", "Mara lives in Oslo"]
    assert states[0].since == datetime(2024, 1, 5, 10, tzinfo=UTC)
    assert states[0].until == states[1].since == datetime(2025, 2, 5, 10, tzinfo=UTC)
    assert (states[0].revision, states[1].until) == (None, None)


@pytest.mark.slow
def test_a_timeline_can_be_asked_for_while_its_memories_are_updated_and_forgotten(memory):
    for number in range(8):
        memory.add(f"Mara lives in town {number}", id=str(number))
    ended = Event()

    def change():
        for number in cycle(range(8)):
            if ended.is_set():
                return
            memory.update(str(number), text=f"Mara lives in village {number}")
            if number == 5:
                memory.forget("5")
                memory.add("Mara lives in town 5", id="5")

    with ThreadPoolExecutor(1) as thread:
        changing = thread.submit(change)
        try:
            told = [memory.timeline("Mara lives") for _ in range(50)]
        finally:
            ended.set()
        changing.result()
    assert all(told)


def test_the_decisions_on_some_memories_are_listed(moved):
    first = moved.supersede("rome", by="oslo")
    second = moved.supersede("oslo", by="bonn")
    assert [pair.revision.id for pair in moved.revisions(of=["rome"])] == [first.id]
    assert [pair.revision.id for pair in moved.revisions(of=["oslo"])] == [second.id, first.id]
    assert moved.revisions(of=["jan"]) == ()
    with pytest.raises(InvalidInput, match=r"of='rome': .*Give "):
        moved.revisions(of="rome")


def test_decisions_on_a_memory_that_is_not_there_are_an_error_that_names_it(moved, open_memory):
    with pytest.raises(MemoryNotFound, match="id='nowhere'"):
        moved.revisions(of=["rome", "nowhere"])
    with open_memory(project="another") as other, pytest.raises(MemoryNotFound, match="id='rome'"):
        other.revisions(of=["rome"])
    with pytest.raises(InvalidInput, match=r"of='': .*Give "):
        moved.revisions(of=[""])
    assert moved.revisions(of=[]) == ()


@pytest.mark.parametrize(
    ("k", "problem"),
    [
        *((k, "is out of range") for k in (0, -1)),
        *((k, "must be a whole number") for k in (True, 2.5)),
    ],
)
def test_a_number_of_things_that_is_none_is_refused(moved, k, problem):
    for ask in (
        lambda: moved.timeline("Mara lives", k=k),
        lambda: moved.profile(k=k),
        lambda: moved.conflicts(limit=k),
    ):
        with pytest.raises(InvalidInput, match=problem):
            ask()


def test_a_limit_may_be_larger_than_any_list(moved):
    moved.supersede("rome", by="oslo")
    assert moved.conflicts(limit=10**30) == ()
    assert len(moved.revisions(limit=10**30)) == 1


def test_a_timeline_of_nothing_is_empty_and_one_without_a_topic_refused(memory):
    assert memory.timeline("where I live") == ()
    with pytest.raises(InvalidInput, match="topic=' ': names nothing"):
        memory.timeline(" ")


def test_a_profile_holds_what_still_holds_with_its_evidence(moved):
    moved.supersede("rome", by="bonn")
    moved.supersede("oslo", by="bonn", kind="restates")
    entries = moved.profile(now=NOW)
    assert {entry.text for entry in entries} == {"Mara lives in Bonn", "Jan lives in Rome"}
    bonn = next(entry for entry in entries if entry.text == "Mara lives in Bonn")
    assert (bonn.evidence, bonn.type, bonn.probability) == (("bonn", "oslo"), "semantic", 1.0)
    assert bonn.producer == "note"
    assert bonn.since == datetime(2025, 2, 5, 10, tzinfo=UTC)


@pytest.fixture
def back(moved):
    """Somebody who went back to where she lived first, and says so."""
    moved.add("Mara lives in Rome again", id="again", at="2026-01-10", type="semantic")
    moved.supersede("rome", by="oslo")
    moved.supersede("oslo", by="bonn")
    moved.supersede("bonn", by="again")
    moved.supersede("rome", by="again", kind="restates")
    return moved


def test_who_says_again_what_was_superseded_tells_of_a_new_state(back):
    found = {hit.id: hit.superseded_by for hit in back.search("Where does Mara live?", now=NOW)}
    assert next(iter(found)) == "again"
    assert (found["rome"], found["bonn"], found["again"]) == ("oslo", "again", None)
    states = back.timeline("where Mara lives", now=NOW)
    assert [(state.memory.id, state.until is None) for state in states] == [
        ("rome", False), ("oslo", False), ("bonn", False), ("again", True),
    ]  # fmt: skip
    (entry,) = (entry for entry in back.profile(now=NOW) if entry.text.startswith("Mara"))
    assert (entry.evidence, entry.since) == (("again",), datetime(2026, 1, 10, tzinfo=UTC))


def test_a_fact_that_is_said_again_stays_several_hits_and_is_one_entry_of_a_profile(memory):
    memory.add("Luca is allergic to nuts", id="first", at="2025-01-01", type="semantic")
    memory.add("Luca must not eat nuts", id="again", at="2025-06-01", type="semantic")
    memory.supersede("first", by="again", kind="restates")
    found = memory.search("may Luca eat nuts?", now=NOW)
    assert {hit.id: hit.superseded_by for hit in found} == {"first": None, "again": None}
    (entry,) = memory.profile(now=NOW)
    assert (entry.evidence, entry.since.year) == (("again", "first"), 2025)


def test_a_profile_is_one_persons(open_memory):
    memory = open_memory(project="p")
    memory.add_many(
        [
            {"text": "Likes tea", "user": "mara", "type": "semantic"},
            {"text": "Likes coffee", "user": "jan", "type": "semantic"},
            {"text": "You could try tea", "user": "mara", "type": "semantic", "role": "assistant"},
            {"text": "Likes tools", "user": "mara", "type": "semantic", "role": "tool_result"},
            {"text": "Went for a walk", "user": "mara", "type": "episodic"},
        ]
    )
    assert [entry.text for entry in memory.profile(user="mara")] == ["Likes tea"]


def test_a_profile_holds_nothing_of_documents(memory):
    memory.add("Likes tea", type="semantic")
    memory.add("Tea is good for you", type="semantic", pool="reference_library")
    assert [entry.text for entry in memory.profile()] == ["Likes tea"]


def test_a_profile_holds_no_plans(memory):
    cases = read_cases(__file__)
    planned = cases["what is worded as a plan is no part of a profile"]
    told = cases["what only sounds like a plan is told"]
    memory.add_many(
        [{"text": text, "type": "semantic", "at": "2026-01-05"} for text in (*planned, *told)]
    )
    found = {entry.text for entry in memory.profile(k=100)}
    assert (found & set(planned), set(told) - found) == (set(), set())


def test_hits_with_what_supersedes_them_can_be_pickled(moved):
    moved.supersede("rome", by="bonn")
    result = moved.search("Mara lives in Rome", now=NOW)
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_damaged_ledger_is_found_by_verify(open_memory, store_path):
    with open_memory() as memory:
        memory.add("I live in Rome", id="rome")
        assert memory.verify().damage == ()
        for path in (store_path / "revisions.lance" / "_versions").iterdir():
            path.write_bytes(b"broken")
        (damage,) = memory.verify().damage
    assert damage.file == "revisions.lance"
    assert "cannot be read" in damage.problem
