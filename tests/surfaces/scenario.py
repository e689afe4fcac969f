"""What two users do with memory, in words that every surface has.

A driver speaks for one user; `connect("mara")` gives hers. What a driver gives back is plain:
hits as (name, text, score), memories as (name, text), refusals as the field that is wrong.
"""

from tests.cases import read_tables

SAID = read_tables(__file__)


def everyday(connect):
    """Add, search, filter, list, forget, and what is refused: every surface can do this."""
    mara, ben = connect("mara"), connect("ben")
    for each in SAID["mara"]:
        mara.add(**each)
    ben.add(**SAID["ben"][0])
    seen = {
        "found": mara.search("What does she drink in the morning?", k=3),
        "found with a filter": mara.search("drink", k=5, where="metadata.topic = 'home'"),
        "found by type": mara.search("drink", k=5, where="type = 'semantic'"),
        "found since": mara.search("home", k=5, where="at >= date('2026-03-03')"),
        "newest first": mara.search("", k=2),
        "listed": mara.list(),
        "listed with a filter": mara.list(where="metadata.topic = 'home'"),
        "found by ben": ben.search("What does she drink in the morning?", k=5),
        "listed by ben": ben.list(),
        "forgotten by another": ben.missing("forget", "tea"),
        "a filter that cannot be read": mara.refused_search(where="topic ="),
        "a filter on a field that is not there": mara.refused_search(where="colour = 'red'"),
        "no hits wanted": mara.refused_search(k=0),
        "nothing said": mara.refused_add(" "),
        "an id that is not there": mara.missing("forget", "nothing"),
    }
    mara.forget("tea")
    seen["forgotten twice"] = mara.missing("forget", "tea")
    seen["found after forgetting"] = mara.search("What does she drink in the morning?", k=3)
    seen["listed after forgetting"] = mara.list()
    return seen


def whole(connect):
    """Importance, ids, get, update: what MemMachine's REST API has no words for."""
    mara, ben = connect("mara"), connect("ben")
    for place, each in enumerate(SAID["mara"]):
        mara.add(**each, importance=0.2 + place / 5)
    mara.add(**SAID["mara"][0])
    ben.add(**SAID["ben"][0], importance=1.0)
    seen = {
        "read": mara.get("coffee"),
        "found by importance": mara.search("drink", k=5, where="importance >= 0.5"),
        "changed": mara.update("coffee", text="I drink coffee all day", importance=0.9),
        "found after changing": mara.search("coffee at night?", k=2),
        "changed by another": ben.missing("update", "coffee", text="mine now"),
        "an importance out of range": mara.refused_add(importance=7),
        "a type that is not there": mara.refused_add(type="fact"),
        "an id that is not there": mara.missing("get", "nothing"),
        "a change of what is not there": mara.missing("update", "nothing", text="mine now"),
        "listed": mara.list(),
    }
    seen["read after changing"] = mara.get("coffee")
    return seen
