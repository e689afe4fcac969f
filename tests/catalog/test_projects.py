import pytest

from ekphory.catalog.database import NotThere
from ekphory.catalog.projects import Traces


def test_the_newest_traces_are_kept_and_old_ones_dropped(database):
    traces = Traces(database, kept=50)
    for number in range(100):
        traces.keep(f"t{number}", "home", "chat", {"number": number})
    assert traces.get("t99").content == {"number": 99}
    assert traces.get("t50").org == "home"
    with pytest.raises(NotThere):
        traces.get("t49")
