"""The same scenario through LangGraph's own store in memory and through ours gives the same."""

import asyncio

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from ekphory.errors import FilterError
from ekphory.frameworks.langgraph import EkphoryStore, check_value_filter, passes_filter
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

ITEMS = (
    (("docs", "public"), "plan", {"title": "Plan", "stars": 4, "tags": ["a"]}),
    (("docs", "public"), "notes", {"title": "Notes", "stars": 2, "tags": []}),
    (("docs", "private"), "plan", {"title": "Plan", "stars": 5, "by": {"name": "Ada"}}),
    (("docs",), "index", {"title": "Index"}),
    (("docsets",), "index", {"title": "Not within docs"}),
    (("users", "mara", "prefs"), "theme", {"dark": True, "nothing": None}),
    (("users", "jon"), "theme", {"dark": False, "text": "日本語 ☕"}),
)


def filled(memory):
    both = InMemoryStore(), EkphoryStore(memory)
    for store in both:
        store.batch([PutOp(*item) for item in ITEMS])
    return both


@pytest.fixture
def stores(memory):
    return filled(memory)


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    with Memory(tmp_path_factory.mktemp("parity"), embedder=HashEmbedder()) as memory:
        yield filled(memory)


def shown(items):
    """What two stores agree on: not the moments, nor the order of what was not ranked."""
    return sorted((item.namespace, item.key, str(item.value)) for item in items)


def test_get_gives_the_same(stores):
    places = [(namespace, key) for namespace, key, _ in ITEMS]
    others = [(("docs",), "plan"), (("docs", "public", "x"), "plan"), (("nobody",), "theme")]
    for namespace, key in places + others:
        theirs, ours = (store.get(namespace, key) for store in stores)
        assert (theirs and theirs.value) == (ours and ours.value)
        assert (theirs and theirs.namespace) == (ours and ours.namespace)


@pytest.mark.parametrize(
    "prefix",
    [(), ("docs",), ("doc",), ("docs", "public"), ("docs", "public", "plan"), ("users",), ("x",)],
)
def test_search_gives_what_lies_beneath_a_prefix(read_only, prefix):
    theirs, ours = (store.search(prefix) for store in read_only)
    assert shown(theirs) == shown(ours)


@pytest.mark.parametrize(("limit", "offset"), [(2, 0), (2, 2), (10, 3), (10, 9), (0, 0), (3, 6)])
def test_pages_are_of_the_same_size(read_only, limit, offset):
    theirs, ours = (store.search((), limit=limit, offset=offset) for store in read_only)
    assert len(theirs) == len(ours)


ASKED = (
    *({}, {"max_depth": 1}, {"max_depth": 2, "prefix": ("users",)}),
    *({"limit": 2}, {"limit": 2, "offset": 1}, {"prefix": ("users",), "suffix": ("prefs",)}),
    *({"prefix": ("docs",)}, {"prefix": ("*", "mara")}, {"prefix": ("docs", "*")}),
    *({"prefix": ("nobody",)}, {"prefix": ("docs", "public", "plan")}),
    *({"suffix": ("public",)}, {"suffix": ("mara", "*")}, {"suffix": ("x", "docs", "public")}),
    *({"suffix": ("*", "public")}, {"suffix": ("docs",)}),
)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_list_namespaces_gives_the_same_in_the_same_order(read_only, asked):
    theirs, ours = (store.list_namespaces(**asked) for store in read_only)
    assert theirs == ours


def test_a_batch_reads_what_was_there_before_and_its_last_put_counts(stores):
    place = (("docs",), "index")
    ops = [
        PutOp(*place, {"title": "first"}),
        GetOp(*place),
        PutOp(("docs",), "new", {"title": "new"}),
        SearchOp(("docs",), filter={"title": "new"}),
        ListNamespacesOp((MatchCondition("prefix", ("docsets",)),)),
        PutOp(("docsets",), "index", None),
        PutOp(*place, {"title": "last"}),
    ]
    theirs, ours = (store.batch(ops) for store in stores)
    assert ours[1].value == theirs[1].value == {"title": "Index"}
    assert [*ours[:1], *ours[2:]] == [*theirs[:1], *theirs[2:]]
    assert ours[3] == []
    for store in stores:
        assert store.get(*place).value == {"title": "last"}
        assert store.get(("docs",), "new").value == {"title": "new"}
        assert store.get(("docsets",), "index") is None


def test_deleting_what_is_not_there_is_no_error(stores):
    for store in stores:
        for namespace, key in ((("nobody",), "theme"), (("docs",), "index"), (("docs",), "index")):
            store.delete(namespace, key)
    theirs, ours = (store.search(()) for store in stores)
    assert shown(theirs) == shown(ours)


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("a", ""), ("langgraph", "a"), ("a", 1)])
def test_put_refuses_the_same_namespaces(read_only, namespace):
    for store in read_only:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "key", {"a": 1})


def test_what_put_refuses_a_batch_may_write_and_read(stores):
    dotted, parted = ("langgraph", "a.b"), ("langgraph", "a", "b")
    ops = [GetOp(dotted, "key"), GetOp(parted, "key"), SearchOp(dotted), SearchOp(parted[:2])]
    for store in stores:
        store.batch([PutOp(dotted, "key", {"a": 1})])
        got, missing, found, nothing = store.batch(ops)
        assert (got.value, missing, nothing) == ({"a": 1}, None, [])
        assert [item.namespace for item in found] == [dotted]


def test_the_asynchronous_verbs_give_the_same_as_the_others(stores):
    async def scenario(store):
        for key in ("one", "two"):
            await store.aput(("a",), key, {"text": key})
        await store.adelete(("a",), "one")
        got = await asyncio.gather(store.aget(("a",), "one"), store.aget(("a",), "two"))
        found = await store.asearch(("a",), filter={"text": "two"})
        named = await store.alist_namespaces(prefix=("a",))
        return got[0], got[1].value, [item.key for item in found], named

    for store in stores:
        assert asyncio.run(scenario(store)) == (None, {"text": "two"}, ["two"], [("a",)])


def test_an_operation_that_there_is_not_is_a_value_error(read_only):
    for store in read_only:
        with pytest.raises(ValueError, match=r"[Oo]p"):
            store.batch(["get"])


VALUE = {
    "name": "Ada",
    "age": 36,
    "score": 4.5,
    "year": "1843",
    "done": True,
    "gone": None,
    "tags": ["a", "b"],
    "home": {"city": "London", "floor": 2},
}


SAME = (
    *({"name": "Ada"}, {"name": "ada"}, {"name": "Ada", "age": 36}, {"name": "Ada", "age": 37}),
    *({"age": 36.0}, {"done": True}, {"done": 1}, {"done": False}, {"gone": None}),
    *({"missing": None}, {"missing": "x"}, {"name": {"city": "London"}}, {}, {"home": {}}),
    *({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {"tags": ["a"]}, {"tags": "a"}),
    *({"tags": ("a", {"$ne": "c"})}, {"home": {"city": "London"}}, {"home": {"city": "Paris"}}),
    *({"home": {"floor": {"$gt": 1}}}, {"home": {"street": None}}, {"missing": {"$ne": 36}}),
    *({"age": {operator: 36}} for operator in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")),
    *({"age": {"$gt": 30, "$lt": 40}}, {"age": {"$gt": 30, "$lt": 35}}),
    *({"year": {"$lt": 1900}}, {"year": {"$lt": "20000"}}, {"done": {"$gt": 0}}),
)
"""Filters of which LangGraph's own store says whether they let `VALUE` through."""


@pytest.mark.parametrize("given", SAME, ids=str)
def test_a_filter_agrees_with_langgraph(given):
    store = InMemoryStore()
    store.put(("people",), "ada", VALUE)
    check_value_filter(given)
    assert passes_filter(given, VALUE) is bool(store.search(("people",), filter=given))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"age": {"$in": [36]}}, r"\$in"),
        ({"$or": [{"name": "Ada"}]}, "stands where a field must"),
        ({"home": {"rooms": [{"size": {"$near": 20}}]}}, "no such operator"),
        (["name"], "must be a mapping"),
    ],
)
def test_a_filter_that_langgraph_does_not_know_is_refused(wanted, message):
    with pytest.raises(FilterError, match=message):
        check_value_filter(wanted)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"rooms": {1: "hall"}}, True),
        ({"rooms": {1: "cellar"}}, False),
        ({"rooms": {2: {"$gt": 3}}}, True),
        ({3: "attic"}, True),
        ({("a", "b"): "attic"}, False),
    ],
    ids=str,
)
def test_a_filter_names_keys_that_are_no_texts_as_values_have_them(stores, wanted, found):
    _, ours = stores
    ours.put(("houses",), "red", {"rooms": {1: "hall", 2: 4}, 3: "attic"})
    assert bool(ours.search(("houses",), filter=wanted)) is found


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ({"name": {"$gt": "Aaron"}}, True),
        ({"name": {"$gt": "Zoe"}}, False),
        *(({name: {"$gt": 1}}, False) for name in ("missing", "gone", "tags", "name", "huge")),
        ({"age": {"$lt": 10**400}}, False),
    ],
    ids=str,
)
def test_only_numbers_and_texts_have_an_order(wanted, passes):
    assert passes_filter(wanted, VALUE | {"huge": 10**400}) is passes
