"""How long items of LangGraph live."""

import time
from datetime import UTC, datetime

import pytest

from ekphory.errors import InvalidInput
from ekphory.frameworks.langgraph import EkphoryStore

PLACE = (("notes",), "drink")
VALUE = {"text": "tea"}
SHORT = 0.3 / 60
"""Minutes: 0.3 seconds."""
LONG = 0.5
"""Minutes: 30 seconds, of which a read after 0.35 s gives enough back to be written."""


def wait_until_expired():
    time.sleep(0.35)


def expires_at(memory):
    (record,) = memory.list()
    return record.expires_at


def test_an_item_that_has_expired_is_gone_at_once(memory):
    store = EkphoryStore(memory)
    store.put(*PLACE, VALUE, ttl=SHORT)
    store.put(("notes",), "other", VALUE)
    wait_until_expired()
    assert store.get(*PLACE) is None
    assert [item.key for item in store.search(("notes",))] == ["other"]
    assert [item.key for item in store.search(("notes",), query="tea")] == ["other"]


def test_a_sweep_deletes_what_has_expired(memory):
    store = EkphoryStore(memory, ttl={"default_ttl": SHORT})
    store.put(*PLACE, VALUE)
    store.put(("notes",), "kept", VALUE, ttl=None)
    wait_until_expired()
    assert store.sweep_ttl() == 1
    assert store.sweep_ttl() == 0
    assert [item.key for item in store.search(("notes",))] == ["kept"]


def test_a_sweep_leaves_other_scopes_alone(open_memory):
    jon = open_memory(user="jon")
    EkphoryStore(jon).put(*PLACE, VALUE, ttl=SHORT)
    wait_until_expired()
    assert EkphoryStore(open_memory(user="mara")).sweep_ttl() == 0
    assert EkphoryStore(open_memory()).sweep_ttl() == 0
    assert EkphoryStore(jon).sweep_ttl() == 1


@pytest.mark.slow
def test_reading_lets_an_item_live_on(memory):
    store = EkphoryStore(memory)
    store.put(*PLACE, VALUE, ttl=LONG)
    before, first = store.get(*PLACE, refresh_ttl=False), expires_at(memory)
    time.sleep(0.35)
    assert store.get(*PLACE) == before
    second = expires_at(memory)
    time.sleep(0.35)
    assert [item.updated_at for item in store.search(("notes",))] == [before.updated_at]
    assert first < second < expires_at(memory)
    assert memory.health().history == 0


@pytest.mark.slow
def test_an_item_lives_on_only_when_that_is_wanted(memory):
    store = EkphoryStore(memory, ttl={"refresh_on_read": False})
    store.put(*PLACE, VALUE, ttl=LONG)
    before = expires_at(memory)
    time.sleep(0.35)
    store.get(*PLACE)
    store.search(("notes",))
    assert expires_at(memory) == before
    store.get(*PLACE, refresh_ttl=True)
    assert expires_at(memory) > before


def test_a_lifetime_that_is_hardly_shorter_is_not_written_anew(memory):
    store = EkphoryStore(memory)
    store.put(*PLACE, VALUE, ttl=600)
    before = expires_at(memory)
    store.get(*PLACE)
    assert expires_at(memory) == before


def test_an_item_that_is_put_without_a_lifetime_stays(memory):
    store = EkphoryStore(memory)
    store.put(*PLACE, VALUE, ttl=LONG)
    store.put(*PLACE, {"text": "coffee"}, ttl=None)
    assert expires_at(memory).year == 9998
    assert store.get(*PLACE).value == {"text": "coffee"}


def test_an_item_that_has_expired_can_be_put_anew(memory):
    store = EkphoryStore(memory)
    store.put(*PLACE, VALUE, ttl=SHORT)
    wait_until_expired()
    now = datetime.now(UTC)
    store.put(*PLACE, VALUE)
    assert store.get(*PLACE).created_at > now


def test_the_longest_lifetimes_are_as_good_as_for_ever(memory):
    store = EkphoryStore(memory)
    store.put(*PLACE, VALUE, ttl=1e300)
    assert store.get(*PLACE).value == VALUE


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf"), True, "5"])
def test_what_is_no_lifetime_is_refused(memory, minutes):
    with pytest.raises(InvalidInput, match="ttl="):
        EkphoryStore(memory).put(*PLACE, VALUE, ttl=minutes)


def test_the_sweeper_deletes_in_the_background_until_it_is_stopped(memory):
    store = EkphoryStore(memory, ttl={"default_ttl": 0.1 / 60, "sweep_interval_minutes": 0.1 / 60})
    store.put(*PLACE, VALUE)
    store.start_ttl_sweeper()
    deadline = time.monotonic() + 5
    while memory.health().memories and time.monotonic() < deadline:
        time.sleep(0.05)
    assert memory.health().memories == 0
    assert store.stop_ttl_sweeper()


def test_a_sweeper_needs_an_interval(memory):
    with pytest.raises(InvalidInput, match="sweep_interval_minutes=None"):
        EkphoryStore(memory).start_ttl_sweeper()
    assert EkphoryStore(memory).stop_ttl_sweeper()


def test_no_interval_at_all_is_not_the_one_of_the_store(memory):
    store = EkphoryStore(memory, ttl={"sweep_interval_minutes": 5})
    with pytest.raises(InvalidInput, match="sweep_interval_minutes=0"):
        store.start_ttl_sweeper(0)
