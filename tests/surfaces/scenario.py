"""What two users do with memory, in words that every surface has.

A driver speaks for one user; `connect("mara")` gives hers. What a driver gives back is plain:
hits as (name, text, score), memories as (name, text), refusals as the field that is wrong.
"""

SAID = (
    {
        "name": "tea",
        "text": "I drink green tea every morning",
        "at": "2026-03-01T08:00:00Z",
        "producer": "mara",
        "type": "semantic",
        "metadata": {"topic": "drinks"},
    },
    {
        "name": "coffee",
        "text": "Coffee keeps me awake, so I drink none after noon",
        "at": "2026-03-02T08:00:00Z",
        "producer": "mara",
        "type": "semantic",
        "metadata": {"topic": "drinks"},
    },
    {
        "name": "lisbon",
        "text": "Yesterday I moved to Lisbon with my sister",
        "at": "2026-03-03T08:00:00Z",
        "producer": "mara",
        "type": "episodic",
        "metadata": {"topic": "home"},
    },
    {
        "name": "oven",
        "text": "Der Ofen ist kaputt 🔥 — call 'Ben'",
        "at": "2026-03-04T08:00:00Z",
        "producer": "ben",
        "type": "episodic",
        "metadata": {"topic": "home"},
    },
)
OF_BEN = {
    "name": "secret",
    "text": "Ben drinks beer and tells nobody",
    "at": "2026-03-05T08:00:00Z",
    "producer": "ben",
    "type": "semantic",
    "metadata": {"topic": "drinks"},
}


def everyday(connect):
    """Add, search, filter, list, forget, and what is refused: every surface can do this."""
    mara, ben = connect("mara"), connect("ben")
    for each in SAID:
        mara.add(**each)
    ben.add(**OF_BEN)
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
        "forgotten by another": ben.missing("tea"),
        "a filter that cannot be read": mara.refused(where="topic ="),
        "a filter on a field that is not there": mara.refused(where="colour = 'red'"),
        "no hits wanted": mara.refused(k=0),
        "nothing said": mara.refused_text(" "),
        "an id that is not there": mara.missing("nothing"),
    }
    mara.forget("tea")
    seen["forgotten twice"] = mara.missing("tea")
    seen["found after forgetting"] = mara.search("What does she drink in the morning?", k=3)
    seen["listed after forgetting"] = mara.list()
    return seen


def whole(connect):
    """Importance, ids, get, update: what MemMachine's REST API has no words for."""
    mara, ben = connect("mara"), connect("ben")
    for place, each in enumerate(SAID):
        mara.add(**each, importance=0.2 + place / 5)
    mara.add(**SAID[0])
    ben.add(**OF_BEN, importance=1.0)
    seen = {
        "read": mara.get("coffee"),
        "found by importance": mara.search("drink", k=5, where="importance >= 0.5"),
        "changed": mara.update("coffee", text="I drink coffee all day", importance=0.9),
        "found after changing": mara.search("coffee at night?", k=2),
        "changed by another": ben.missing_for_update("coffee"),
        "an importance out of range": mara.refused_importance(7),
        "a type that is not there": mara.refused_type("fact"),
        "an id that is not there": mara.missing_for_get("nothing"),
        "a change of what is not there": mara.missing_for_update("nothing"),
        "listed": mara.list(),
    }
    seen["read after changing"] = mara.get("coffee")
    return seen
