from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekphory.catalog.database import Database
from ekphory.catalog.projects import ShownIds
from ekphory.service.episodes import Uids, decode_uuid, encode_uuid
from ekphory.service.handles import Place

HOME = Place("home", "chat")
OWN = "041a1fee8adb7-38a34f2d0d128acd"
CALLERS = "f47ac10b-58cc-4372-a567-0e02b2c3d479"


@pytest.fixture
def uids(tmp_path):
    database = Database(tmp_path / "catalog.sqlite3")
    yield Uids(ShownIds(database))
    database.close()


@given(st.from_regex(r"[0-9a-f]{13}-[0-9a-f]{16}", fullmatch=True))
def test_an_id_of_our_own_is_written_as_a_uuid_and_read_back(own):
    uid = encode_uuid(own)
    assert str(UUID(uid)) == uid
    assert UUID(uid).version == 8
    assert decode_uuid(uid) == own


def test_uuids_of_our_own_sort_by_time_as_the_ids_do():
    earlier, later = "041a1fee8adb7-ffffffffffffffff", "041a1fee8adb8-0000000000000000"
    assert encode_uuid(earlier) < encode_uuid(later)


@pytest.mark.parametrize(
    "memory_id", [OWN, "note-7", "D1:3", CALLERS, encode_uuid(OWN), "a~1", "é"]
)
def test_every_id_is_shown_as_a_uuid_and_found_by_it(uids, memory_id):
    (uid,) = uids.shown(HOME, [memory_id])
    assert str(UUID(uid)) == uid
    assert uids.stored(HOME, [uid]) == [memory_id]
    assert uids.stored(HOME, [uid.upper()]) == [memory_id]


def test_a_callers_uuid_is_shown_as_it_is(uids):
    assert uids.shown(HOME, [CALLERS]) == [CALLERS]


def test_the_same_id_in_another_project_is_shown_as_another_uuid(uids):
    assert uids.shown(HOME, ["note-7"]) != uids.shown(Place("home", "work"), ["note-7"])


def test_what_is_no_uuid_is_an_id_already(uids):
    assert uids.stored(HOME, ["note-7"]) == ["note-7"]
