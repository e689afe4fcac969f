"""No verb ever returns or touches a memory of another scope."""

import shutil
from functools import partial
from itertools import count
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cases import read_cases

from ekphory.errors import InvalidInput, MemoryNotFound
from ekphory.filters.lance_sql import matches
from ekphory.filters.tree import (
    And,
    Comparison,
    Contains,
    Field,
    In,
    MetadataField,
    Not,
    Or,
    check_filter,
)
from ekphory.memory import Memory
from ekphory.service.episodes import read_filter
from ekphory.testing import HashEmbedder
from ekphory.types import now_utc
from ekphory.write import make_draft, prepare, submit

CASES = read_cases(__file__)

EVERYTHING = And(())
PRESETS = ["fast", "balanced", "accurate", "memory_spark", "rrf"]
NAMES = ["a", "A", "b", "' OR TRUE --"]
POOLS = ["agent_memory", "agent_tools", "shared_rules", "reference_code", "my_own"]
SHARED = ["shared_rules", "reference_code"]
WORDS = ["tea", "dog", "Oslo", "song"]
NOW = "2030-01-01"

names = st.none() | st.sampled_from(NAMES)
projects = st.none() | st.sampled_from(["p", "q", "default"])
scopes = st.fixed_dictionaries(
    {"org": st.none() | st.sampled_from(["o", "default"]),
     "project": projects, "agent": names, "user": names,
     "session": st.none() | st.sampled_from(["s", "t"])}
)  # fmt: skip
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
of_a_client = partial(
    read_filter, own_fields={"user_id": "user", "agent_id": "agent", "session_id": "session"}
)
filters = st.sampled_from(
    [
        Not(Comparison(Field("user"), "eq", "a")),
        Or((Comparison(Field("user"), "eq", "b"), EVERYTHING)),
        Or((Comparison(Field("agent"), "ne", "zzz"), Contains(Field("text"), "e"))),
        In(Field("pool"), ("agent_memory", "shared_rules")),
        Comparison(MetadataField("k"), "eq", 1),
        of_a_client("NOT m.user_id = 'a'"),
        of_a_client("m.session_id IN ('s', 1) OR m.agent_id IS NULL OR m.user_id CONTAINS 'b'"),
    ]
)  # fmt: skip
slowly = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
store_numbers = count()


@st.composite
def worlds(draw, ids=None):
    """Memories of many scopes; without `ids` every one has an id of its own."""
    written = st.tuples(scopes, texts, st.sampled_from(POOLS), st.sampled_from([1, 2]))
    several = draw(st.lists(written, min_size=3, max_size=14))
    return [
        scope | {
            "id": f"m{number}" if ids is None else draw(st.sampled_from(ids)),
            "text": text, "pool": pool, "at": f"2026-01-{number + 1:02}",
            "metadata": {"k": value, "user_id": "a" if value == 1 else "b"},
        }
        for number, (scope, text, pool, value) in enumerate(several)
    ]  # fmt: skip


def is_visible(record, scope):
    """The rule of visibility, written out once more."""
    if any(scope[name] not in (None, record[name] or "default") for name in ("org", "project")):
        return False
    owned = all(scope[name] in (None, record[name]) for name in ("agent", "user", "session"))
    return owned or record["pool"] in SHARED


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("isolation")


class World:
    """One store and its handles."""

    def __init__(self, directory, records=()):
        self.path = directory / str(next(store_numbers))
        self.everything = self.open({})
        assert self.everything.add_many(records).failed == []

    def open(self, scope):
        return Memory(self.path, embedder=HashEmbedder(), **scope)

    def rows(self):
        """All that is stored, history included, by its place in the order of writing."""
        store = self.everything._engine.store
        store.version()
        return store.select(EVERYTHING, order="written")


def as_dict(record):
    return {name: getattr(record, name) for name in type(record).__slots__}


def found_by(memory, **arguments):
    """Ids of a search, which must be the same for every preset and for no query at all."""
    results = [
        memory.search(query, k=1_000, now=NOW, preset=preset, **arguments)
        for query, preset in [("tea dog", "balanced"), ("tea dog", "rrf"), ("", None)]
    ]
    found = [sorted(hit.id for hit in result.hits) for result in results]
    assert found[0] == found[1] == found[2]
    return found[0]


@settings(slowly, max_examples=12)
@given(records=worlds(), bound=st.lists(scopes, min_size=2, max_size=4), condition=filters)
def test_no_read_returns_another_scopes_memory(directory, records, bound, condition):
    world = World(directory, records)
    for scope in bound:
        memory = world.open(scope)
        seen = [record for record in records if is_visible(record, scope)]
        expected = sorted(record["id"] for record in seen)
        assert found_by(memory) == expected
        assert sorted(entry.id for entry in memory.list(limit=1_000)) == expected
        assert memory.count() == len(expected)
        pools = ["agent_memory", "shared_rules"]
        inside = sorted(record["id"] for record in seen if record["pool"] in pools)
        assert found_by(memory, pools=pools) == inside
        tree = check_filter(condition)
        filtered = sorted(entry.id for entry in memory.list(limit=1_000) if matches(tree, entry))
        assert found_by(memory, filter=condition) == filtered
        assert memory.count(filter=condition) == len(filtered)
        memory.close()
    world.everything.close()


@settings(slowly, max_examples=10)
@given(records=worlds(), scope=scopes)
def test_no_id_of_another_scope_can_be_used(directory, records, scope):
    world = World(directory, records)
    memory = world.open(scope)
    for record in records:
        if is_visible(record, scope):
            assert memory.get(record["id"]).text == record["text"]
            continue
        for use in (memory.get, memory.history, memory.forget):
            with pytest.raises(MemoryNotFound):
                use(record["id"])
        with pytest.raises(MemoryNotFound):
            memory.update(record["id"], text="taken over")
    assert len(world.rows()) == len(records)
    memory.close()
    world.everything.close()


changes = st.lists(
    st.tuples(
        scopes,
        st.sampled_from(["add", "update", "forget", "forget all", "purge"]),
        st.sampled_from(["x", "y", "x~1"]),
        st.sampled_from(POOLS),
    ),
    min_size=2,
    max_size=8,
)  # fmt: skip


def change(memory, verb, name, pool):
    try:
        if verb == "add":
            memory.add(f"added {name}", id=name, pool=pool)
        elif verb == "update":
            memory.update(name, text=f"updated {name}")
        elif verb == "forget":
            memory.forget(name)
        elif verb == "forget all":
            memory.forget(filter=f"id = '{name}'")
        else:
            memory.forget(name, purge=True)
    except (MemoryNotFound, InvalidInput):
        pass  # not there, or used by several narrower scopes


@settings(slowly, max_examples=12)
@given(records=worlds(ids=["x", "y"]), steps=changes)
def test_no_write_touches_another_scopes_memory(directory, records, steps):
    world = World(directory, records)
    for scope, verb, name, pool in steps:
        memory = world.open(scope)
        before = [row for row in world.rows() if not is_visible(as_dict(row), scope)]
        change(memory, verb, name, pool)
        after = [row for row in world.rows() if not is_visible(as_dict(row), scope)]
        assert after == before
        memory.close()
    world.everything.close()


@settings(slowly, max_examples=12)
@given(records=worlds(ids=["x", "y"]), steps=changes)
def test_a_change_touches_one_memory_and_one_id_stays_one_memory(directory, records, steps):
    world = World(directory, records)
    for scope, verb, name, pool in steps:
        memory = world.open(scope)
        before = world.everything.count()
        change(memory, verb, name, pool)
        difference = world.everything.count() - before
        assert difference in {
            "add": (0, 1),
            "update": (0,),
            "forget": (0, -1),
            "purge": (0, -1),
        }.get(verb, range(-before, 1))
        memory.close()
    owners = [(row.org, row.project, row.agent, row.user, row.session, row.id)
              for row in world.everything.list(limit=1_000)]  # fmt: skip
    assert len(owners) == len(set(owners))
    world.everything.close()


owned = st.tuples(scopes, scopes, st.sampled_from(["x", "y"]))


def queue_write(world, scope, own, name):
    """Have one memory written, with fields of its own where the handle has none."""
    memory = world.open(scope)
    given_fields = {field: value for field, value in own.items() if scope[field] is None}
    record = given_fields | {"id": name, "text": f"tea for {name}"}
    draft = make_draft(record, scope=memory.scope, now=now_utc())
    engine = memory._engine
    future = submit(engine, memory.scope, prepare(engine.embedder, [draft]))
    memory.close()
    return future


@settings(slowly, max_examples=20)
@given(writes=st.lists(owned, min_size=2, max_size=10))
def test_writes_in_one_commit_do_what_they_do_one_after_the_other(directory, writes):
    alone, together = World(directory), World(directory)
    outcomes = [queue_write(alone, *write).result() for write in writes]
    busy = Event()
    together.everything._engine.writer.submit(busy.wait)
    waiting = [queue_write(together, *write) for write in writes]
    busy.set()
    assert [future.result() for future in waiting] == outcomes
    alone.everything.close()
    together.everything.close()


@settings(slowly, max_examples=12)
@given(records=worlds(), more=worlds(), scope=scopes)
def test_the_scores_of_a_scope_do_not_change_when_others_grow(directory, records, more, scope):
    world = World(directory, records)
    memory = world.open(scope)
    before = [memory.search("tea dog", k=1_000, now=NOW, preset=name).hits for name in PRESETS]
    others = [
        record | {"id": f"other {record['id']}"} for record in more if not is_visible(record, scope)
    ]
    world.everything.add_many(others)
    for handle in (memory, world.open(scope)):
        after = [handle.search("tea dog", k=1_000, now=NOW, preset=name).hits for name in PRESETS]
        assert after == before
        handle.close()
    world.everything.close()


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory):
    """A store in which alice has neighbours; only to be read."""
    path = tmp_path_factory.mktemp("neighbours") / "store"
    with Memory(path, embedder=HashEmbedder()) as memory:
        memory.add_many(
            {"id": name, "text": text, "project": project, "user": user, "metadata": {"k": 1}}
            for name, text, project, user in [
                ("secret", "bobs secret tea", "apollo", "bob"),
                ("it's", "bobs other secret", "apollo", "bob"),
                ("gemini", "another projects tea", "gemini", "alice"),
                ("own", "alices own tea", "apollo", "alice"),
            ]
        )
    return path


@pytest.fixture(scope="module")
def alice(neighbours):
    """Her handle, which only reads."""
    with Memory(neighbours, embedder=HashEmbedder(), project="apollo", user="alice") as memory:
        yield memory


TRICKS = CASES["tricks"]


@pytest.mark.parametrize("condition", TRICKS)
def test_no_filter_opens_another_scope(alice, condition):
    for found in (alice.search("secret tea", filter=condition), alice.search("", filter=condition)):
        assert {hit.id for hit in found.hits} <= {"own"}
    assert {entry.id for entry in alice.list(filter=condition)} <= {"own"}
    assert alice.count(filter=condition) <= 1


@pytest.mark.parametrize("condition", TRICKS)
def test_no_filter_forgets_in_another_scope(neighbours, store_path, open_memory, condition):
    shutil.copytree(neighbours, store_path)
    open_memory(project="apollo", user="alice").forget(filter=condition)
    assert open_memory(user="bob").count() == 2
    assert open_memory(project="gemini").count() == 1


@pytest.mark.parametrize(
    "condition",
    [
        *CASES["no filters"],
        Comparison(Field("user') OR (TRUE"), "eq", "x"),
        Comparison(Field("user"), "= 'x' OR", "x"),
        Comparison(Field("vector"), "eq", "x"),
        Comparison(Field("key"), "eq", 1),
    ],
)
def test_what_is_no_filter_reaches_no_query(alice, condition):
    for read in (alice.list, alice.count, partial(alice.search, "tea")):
        with pytest.raises(InvalidInput, match=r"^filter="):
            read(filter=condition)


@pytest.mark.parametrize(
    "value", ["' OR TRUE --", "a' OR 'a' = 'a", "\\", "%", "_", "a\nb", '"', "日本", "😀", "NULL"]
)
def test_any_name_is_a_scope_of_its_own(open_memory, value):
    open_memory(user="bob").add("bobs tea", id="1")
    odd = open_memory(user=value)
    assert (odd.count(), odd.search("tea").hits) == (0, ())
    odd.add("odd tea", id="1")
    assert [hit.text for hit in odd.search("tea").hits] == ["odd tea"]
    assert odd.forget(filter="text CONTAINS 'tea'") == 1
    assert open_memory(user="bob").get("1").text == "bobs tea"


@pytest.mark.parametrize(
    "key", ["Project", "project ", "s:project", "m.project", "project'", "id", "pool"]
)
def test_metadata_of_any_name_moves_nothing_to_another_scope(open_memory, key):
    alice = open_memory(project="apollo")
    alice.add("tea", id="1", metadata={key: "gemini"})
    assert alice.get("1").metadata == {key: "gemini"}
    assert (alice.get("1").id, alice.get("1").project, alice.get("1").pool) == (
        "1", "apollo", "agent_memory",
    )  # fmt: skip
    assert open_memory(project="gemini").count() == 0


def test_a_bulk_import_cannot_leave_its_scope(open_memory):
    report = open_memory(user="alice").add_many(
        [{"text": "a", "user": "bob"}, {"text": "b", "user": "alice"}, {"text": "c"}]
    )
    assert (report.added, [entry.field for entry in report.failed]) == (2, ["user"])
    assert open_memory(user="bob").count() == 0


def test_the_names_of_another_scopes_pools_are_not_told(open_memory):
    open_memory(user="bob").add("tea", pool="bobs_diary")
    with pytest.raises(InvalidInput, match=r"^pools='bobs_diary'") as caught:
        open_memory(user="alice").search("tea", pools=["bobs_diary"])
    assert "bobs_diary" not in caught.value.remedy


def test_a_memory_that_was_forgotten_does_not_appear_in_another_scope(open_memory):
    alice, bob = open_memory(user="alice"), open_memory(user="bob")
    alice.add("alpha first", id="1")
    alice.add("alpha secret", id="2")
    assert len(alice.search("alpha").hits) == 2
    alice.forget("2")
    bob.add("beta", id="b")
    assert [hit.text for hit in bob.search("alpha").hits] == ["beta"]
    assert [hit.text for hit in alice.search("alpha").hits] == ["alpha first"]


def test_updating_a_shared_memory_leaves_a_private_one_of_the_same_id_alone(open_memory):
    bob = open_memory(project="p", user="bob")
    bob.add("bobs private tea", id="x")
    open_memory(project="p").add("shared tea", id="x", pool="shared_knowledge")
    open_memory(project="p", user="alice").update("x", text="changed by alice")
    assert [entry.text for entry in bob.list(filter="pool = 'agent_memory'")] == [
        "bobs private tea"
    ]
    assert bob.health().history == 1


def test_the_own_memory_comes_before_a_shared_one_of_the_same_id(open_memory):
    alice, bob = open_memory(project="p", user="alice"), open_memory(project="p", user="bob")
    bob.add("bobs shared tea", id="x", pool="shared_knowledge")
    alice.add("alices tea", id="x")
    assert alice.get("x").text == "alices tea"
    alice.update("x", text="alices coffee")
    assert alice.forget("x") == 1
    assert bob.get("x").text == "bobs shared tea"


def test_forgetting_one_owners_memory_leaves_the_history_of_another(open_memory):
    alice, bob = open_memory(user="alice"), open_memory(user="bob")
    for handle in (alice, bob):
        handle.add("one", id="x")
        handle.update("x", text="two")
    assert open_memory().forget(filter="user = 'alice'") == 1
    assert [version.text for version in bob.history("x")] == ["two", "one"]


def test_history_follows_its_own_owner(open_memory):
    alice, bob = open_memory(project="p", user="alice"), open_memory(project="p", user="bob")
    bob.add("bobs first", id="x", pool="shared_knowledge", at="2020-01-01")
    bob.update("x", text="bobs second")
    alice.add("alices own", id="x~1")
    assert [version.text for version in alice.history("x")] == ["bobs second", "bobs first"]
