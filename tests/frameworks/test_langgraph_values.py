"""Values and look-ups as LangGraph's own `InMemoryStore` has them."""

import math
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from functools import reduce
from uuid import UUID

import pytest
from langgraph.store.memory import InMemoryStore

from ekphory.frameworks.langgraph import EkphoryStore

VALUES = [
    {"nested": [{"a": {"b": [1, 2.5, None, True, ["c"]]}}]},
    {"pair": (1, ("a", [2])), "set": {1, 2}, "frozen": frozenset({"a"})},
    {"when": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "day": date(2026, 1, 2)},
    {"hour": time(3, 4), "long": timedelta(days=-1, microseconds=7), "bytes": b"\x00\xff"},
    {"id": UUID(int=7), "price": Decimal("1.10"), "most": math.inf},
    {"counts": {1: "one", (2, 3): "two", None: "none"}},
    {"__ekphory__": "set", "of": [1]},
    {"half": "\ud800", "nul": "\0"},
    {"deep": reduce(lambda part, _: (part,), range(249), "leaf")},
]


@pytest.mark.parametrize("value", VALUES, ids=[str(place) for place in range(len(VALUES))])
def test_a_value_comes_back_as_from_the_store_of_langgraph(memory, value):
    stores = (InMemoryStore(), EkphoryStore(memory))
    for store in stores:
        store.put(("n",), "k", value)
    theirs, ours = (store.get(("n",), "k").value for store in stores)
    assert ours == theirs == value
    assert [type(part) for part in ours.values()] == [type(part) for part in theirs.values()]


Pair = namedtuple("Pair", "left right")


class Level(IntEnum):
    HIGH = 3


SUBCLASSES = [
    (Pair(1, 2), (1, 2)),
    ([Pair(Pair(1, [2]), None)], [((1, [2]), None)]),
    ({Pair("a", 1): {frozenset({Pair(2, 3)})}}, {("a", 1): {frozenset({(2, 3)})}}),
    (OrderedDict(level=Level.HIGH), {"level": 3}),
]


@pytest.mark.parametrize(("put", "plain"), SUBCLASSES)
def test_of_a_subclass_the_plain_value_comes_back_which_is_equal(memory, put, plain):
    store = EkphoryStore(memory)
    store.put(("n",), "k", {"of": put})
    found = store.get(("n",), "k").value["of"]
    assert put == found == plain
    assert repr(found) == repr(plain)


def test_what_a_caller_does_to_a_value_does_not_change_the_stored_one(memory):
    store = EkphoryStore(memory)
    store.put(("n",), "k", {"list": [1]})
    store.get(("n",), "k").value["list"].append(2)
    assert store.get(("n",), "k").value == {"list": [1]}
    memory.list(filter="pool = 'langgraph'")[0].metadata["value"] = "{}"
    assert store.get(("n",), "k").value == {"list": [1]}


def test_a_warm_get_asks_the_table_nothing_and_a_new_item_is_one_commit(memory):
    store = EkphoryStore(memory)
    for number in range(4):
        store.put(("n",), f"warm{number}", {"a": number})
        store.get(("n",), f"warm{number}")
    table = memory._engine.store._table
    before = table.version
    store.put(("n",), "k", {"a": 1})
    assert table.version == before + 1
    memory._engine.store._table = None
    assert store.get(("n",), "k").value == {"a": 1}
    memory._engine.store._table = table


def test_what_another_handle_changes_is_read_at_once(open_memory):
    one, other = (EkphoryStore(open_memory(user="mara")) for _ in range(2))
    one.put(("n",), "k", {"a": 1})
    assert other.get(("n",), "k").value == {"a": 1}
    other.put(("n",), "k", {"a": 2})
    assert one.get(("n",), "k").value == {"a": 2}
    other.delete(("n",), "k")
    assert one.get(("n",), "k") is None
    one.put(("n",), "k", {"a": 3})
    assert other.get(("n",), "k").value == {"a": 3}
