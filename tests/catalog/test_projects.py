import pytest

from ekphory.catalog.database import NotThere
from ekphory.catalog.projects import ShownIds, Traces

SHOWN = {"uid-1": "note-1", "uid-2": "note-2"}


def test_an_id_that_was_shown_is_found_in_its_project_alone(database):
    table = ShownIds(database)
    table.keep("home", "chat", SHOWN)
    assert table.find("home", "chat", "uid-2") == "note-2"
    assert table.find("home", "work", "uid-2") is None


def test_of_many_ids_those_that_are_new_are_kept_and_the_others_stay(database):
    table = ShownIds(database)
    table.keep("home", "chat", SHOWN)
    table.keep("home", "chat", {"uid-2": "another", "uid-3": "note-3"})
    found = [table.find("home", "chat", each) for each in ("uid-1", "uid-2", "uid-3")]
    assert found == ["note-1", "note-2", "note-3"]


def test_ids_of_a_project_that_was_deleted_are_kept_anew(database):
    table = ShownIds(database)
    table.keep("home", "chat", SHOWN)
    database.write("DELETE FROM shown_ids WHERE project = ?", ("chat",))
    table.keep("home", "chat", SHOWN)
    assert table.find("home", "chat", "uid-1") == "note-1"


def test_the_newest_traces_are_kept_and_old_ones_dropped(database):
    traces = Traces(database, kept=50)
    for number in range(100):
        traces.keep(f"t{number}", "home", "chat", {"number": number})
    assert traces.get("t99").content == {"number": 99}
    assert traces.get("t50").org == "home"
    with pytest.raises(NotThere):
        traces.get("t49")
