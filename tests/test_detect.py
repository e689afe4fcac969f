"""Comparing what was written with what was there, by a model whose answers are written down."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.cases import read_cases

from ekphory import engine
from ekphory.detect import ChangeDetector, find_exception_end, judge
from ekphory.errors import InvalidInput, ModelError, ServiceError
from ekphory.memory import Memory
from ekphory.models.changes import CHANGE_KINDS, ChangeThresholds, StatementPair
from ekphory.testing import HashEmbedder, ScriptedChat
from ekphory.types import MemoryRecord

CASES = read_cases(__file__)

NOW = "2026-03-01T00:00:00Z"


class WrittenReader:
    """Says what stands in a table of (older, newer) texts; anything else is unrelated."""

    name = "written@1"
    thresholds = ChangeThresholds(acts=0.8, shows=0.4)

    def __init__(self, table):
        self.table = table
        self.asked = []

    def read(self, pairs):
        rows = np.zeros((len(pairs), len(CHANGE_KINDS)), np.float32)
        for row, pair in zip(rows, pairs, strict=True):
            texts = pair.older.text, pair.newer.text
            self.asked.append(texts)
            kind, probability = self.table.get(texts, ("unrelated", 1.0))
            row[CHANGE_KINDS.index(kind)] = probability
        return rows


class BrokenReader(WrittenReader):
    def read(self, _pairs):
        raise ModelError("the model is damaged")


@pytest.fixture
def read_by(monkeypatch, store_path, close_at_end):
    """Opens handles on the test's store whose writes that reader compares."""

    def open_with(reader, **scope):
        monkeypatch.setattr(engine, "_find_reader", lambda: lambda: reader)
        return close_at_end(Memory(store_path, embedder=HashEmbedder(), **scope))

    return open_with


ROME, OSLO = "Mara lives in Rome", "Mara lives in Oslo"


NOTHING = {}


def add_both(memory, rome=NOTHING, oslo=NOTHING):
    memory.add(ROME, **{"id": "rome", "at": "2024-01-01"} | rome)
    memory.add(OSLO, **{"id": "oslo", "at": "2025-01-01"} | oslo)


@pytest.fixture
def tell(read_by):
    """Opens a handle, tells of Rome and of Oslo, and waits until the reader has compared them."""

    def open_told(reader, rome=NOTHING, oslo=NOTHING, **scope):
        memory = read_by(reader, **scope)
        add_both(memory, rome, oslo)
        memory.settle(timeout=30)
        return memory

    return open_told


def superseded(memory):
    return {hit.id: hit.superseded_by for hit in memory.search("Mara lives", now=NOW)}


def test_what_a_new_memory_replaces_is_found_in_the_background(tell):
    memory = tell(WrittenReader({(ROME, OSLO): ("replaces", 0.9)}))
    assert superseded(memory) == {"rome": "oslo", "oslo": None}
    (found,) = memory.conflicts(limit=5) or [None]
    assert found is None


def test_what_may_be_a_mistake_is_the_past_where_nothing_else_was(tell):
    memory = tell(WrittenReader({(ROME, OSLO): ("corrects", 0.9)}))
    first = memory.search("Where did Mara live before?", now=NOW)[0]
    assert first.id == "rome"


def test_a_memory_of_earlier_that_is_written_later_is_the_older_one(read_by):
    memory = read_by(WrittenReader({(ROME, OSLO): ("replaces", 0.9)}))
    memory.add(OSLO, id="oslo", at="2025-01-01")
    memory.settle(timeout=30)
    memory.add(ROME, id="rome", at="2024-01-01")
    memory.settle(timeout=30)
    assert superseded(memory) == {"rome": "oslo", "oslo": None}


def test_what_is_not_sure_enough_waits_for_somebody_to_look(tell):
    memory = tell(WrittenReader({(ROME, OSLO): ("ends", 0.5)}))
    assert superseded(memory) == {"rome": None, "oslo": None}
    (conflict,) = memory.conflicts()
    assert (conflict.older, conflict.newer, conflict.kind) == ("rome", "oslo", "ends")
    assert (conflict.state, conflict.decided_by) == ("conflict", "written@1")
    assert memory.unsupersede(revision=conflict.id) == 1
    assert memory.conflicts() == ()


def scores(memory, **given):
    return {hit.id: hit.score for hit in memory.search("Mara lives in Rome", now=NOW, **given)}


def test_the_order_follows_what_is_not_sure_enough_to_be_told(tell, open_memory):
    memory = tell(WrittenReader({(ROME, OSLO): ("ends", 0.6)}))
    # Another handle reads it from the ledger.
    with open_memory() as other:
        alone, found = scores(other, superseded="ignore"), scores(other)
        assert found["rome"] == pytest.approx(0.4 * alone["rome"])
        assert found["oslo"] == pytest.approx(max(alone["oslo"], 0.6 * alone["rome"]))
        assert found["oslo"] > found["rome"]
        # It is neither told nor hidden, and a timeline does not know it.
        assert superseded(other) == {"rome": None, "oslo": None}
        assert set(scores(other, superseded="hide")) == {"rome", "oslo"}
        assert [state.until for state in other.timeline("Mara lives in Rome")] == [None]
        assert [entry.text for entry in other.profile()] == []
    (conflict,) = memory.conflicts()
    memory.unsupersede(revision=conflict.id)
    assert scores(memory) == alone


@pytest.mark.parametrize(("rome", "oslo"), CASES["the order follows nothing that could not act"])
def test_the_order_follows_nothing_that_could_not_act(tell, rome, oslo):
    memory = tell(WrittenReader({(ROME, OSLO): ("ends", 0.6)}), rome, oslo)
    assert len(memory.conflicts()) == 1
    assert scores(memory) == scores(memory, superseded="ignore")


def test_what_was_set_aside_is_not_asked_again(tell):
    reader = WrittenReader({(ROME, OSLO): ("ends", 0.5)})
    memory = tell(reader)
    memory.unsupersede(batch=memory.conflicts()[0].batch)
    reader.asked.clear()
    assert memory.conflicts(scan=True) == ()
    assert reader.asked == []


@pytest.mark.parametrize(
    ("answer", "superseded_by", "left"),
    [
        ('{"kind": "corrects"}', "oslo", 0),
        ('{"kind": "none"}', None, 0),
        (ServiceError("busy"), None, 1),
    ],
)
def test_a_chat_model_judges_what_is_not_sure_enough(tell, answer, superseded_by, left):
    chat = ScriptedChat([answer] * 9)
    memory = tell(WrittenReader({(ROME, OSLO): ("ends", 0.5)}), chat=chat)
    assert superseded(memory)["rome"] == superseded_by
    assert len(memory.conflicts()) == left


def test_a_caller_overrules_the_model(tell):
    memory = tell(WrittenReader({(ROME, OSLO): ("ends", 0.5)}))
    memory.supersede("rome", by="oslo")
    assert (superseded(memory)["rome"], memory.conflicts()) == ("oslo", ())


def test_what_is_told_again_after_something_else_held_is_a_new_state(tell):
    again = "Mara lives in Rome again"
    reader = WrittenReader(
        {
            (ROME, OSLO): ("replaces", 0.9),
            (OSLO, again): ("replaces", 0.9),
            (ROME, again): ("restates", 0.9),
        }
    )
    memory = tell(reader)
    memory.add(again, id="again", at="2026-01-10")
    memory.settle(timeout=30)
    assert superseded(memory) == {"rome": "oslo", "oslo": "again", "again": None}
    assert memory.search("Where does Mara live?", now=NOW)[0].id == "again"


@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize(("now", "first"), [("2025-01-05", "oslo"), ("2025-02-05", "rome")])
def test_an_exception_is_over_after_its_time_also_where_a_caller_confirmed_it(
    tell, confirmed, now, first
):
    memory = tell(WrittenReader({(ROME, OSLO): ("excepts", 0.9)}))
    if confirmed:
        memory.supersede("rome", by="oslo", kind="excepts")
    assert memory.search("Where does Mara live?", now=now)[0].id == first


@pytest.mark.parametrize(
    "given", [{"role": "assistant"}, {"producer": "assistant"}, {"role": "tool"}]
)
def test_what_no_person_said_supersedes_nothing_that_a_person_said(tell, given):
    memory = tell(WrittenReader({(ROME, OSLO): ("replaces", 0.9)}), {"role": "user"}, given)
    assert superseded(memory)["rome"] is None
    assert [each.newer for each in memory.conflicts()] == ["oslo"]


@pytest.mark.parametrize(
    "role",
    "agent tool_result toolResult developer observation ipython computer chatbot robot".split(),
)
def test_a_role_that_is_not_known_for_a_persons_supersedes_nothing_that_a_person_said(tell, role):
    memory = tell(
        WrittenReader({(ROME, OSLO): ("replaces", 0.9)}), {"role": "user"}, {"role": role}
    )
    assert superseded(memory)["rome"] is None
    assert [each.newer for each in memory.conflicts()] == ["oslo"]


@pytest.mark.parametrize(("older", "newer", "acts"), CASES["who may say what became of what"])
def test_who_may_say_what_became_of_what_somebody_said(older, newer, acts):
    pair = StatementPair(record("a", at=EARLIER, **older), record("b", **newer))
    row = [0.9 if each == "replaces" else 0.0 for each in CHANGE_KINDS]
    assert (judge(row, pair, WrittenReader({})).state == "active") == acts


@pytest.mark.parametrize("kind", ["restates", "excepts", "plans"])
def test_what_no_person_said_does_nothing_else_to_what_a_person_said_either(kind):
    row = [0.9 if each == kind else 0.0 for each in CHANGE_KINDS]
    said, answered = record("a", at=EARLIER), record("b", role="assistant")
    assert judge(row, StatementPair(said, answered), WrittenReader({})) is None
    assert judge(row, StatementPair(answered, record("c")), WrittenReader({})).kind == kind


@pytest.mark.parametrize(
    ("rome", "oslo", "superseded_by"),
    [
        ({}, {}, None),
        ({"session": "s", "sequence": 1}, {"session": "s", "sequence": 2}, "oslo"),
        ({"session": "s", "sequence": 1}, {"session": "t", "sequence": 2}, None),
    ],
)
def test_of_two_of_one_moment_the_later_turn_is_the_newer_one_or_none(
    tell, rome, oslo, superseded_by
):
    memory = tell(
        WrittenReader({(ROME, OSLO): ("replaces", 0.9)}), rome, {"at": "2024-01-01"} | oslo
    )
    assert superseded(memory)["rome"] == superseded_by
    assert len(memory.conflicts()) == (superseded_by is None)


@pytest.mark.parametrize("field", ["org", "project", "user", "agent", "pool"])
def test_memories_of_different_scopes_are_never_compared(read_by, field):
    reader = WrittenReader({(ROME, OSLO): ("replaces", 0.9)})
    memory = read_by(reader)
    memory.add_many(
        [
            {"text": ROME, "id": "rome", "at": "2024-01-01", field: "first"},
            {"text": OSLO, "id": "oslo", "at": "2025-01-01", field: "second"},
        ]
    )
    memory.settle(timeout=30)
    assert reader.asked == []


def test_what_comes_back_from_an_export_is_compared(read_by):
    memory = read_by(WrittenReader({(ROME, OSLO): ("replaces", 0.9)}))
    whole = {"created_at": "2025-02-01T00:00:00Z", "versions": []}
    report = memory.add_exported(
        [
            {"text": ROME, "id": "rome", "at": "2024-01-01", **whole},
            {"text": OSLO, "id": "oslo", "at": "2025-01-01", **whole},
        ]
    )
    assert report.added == 2
    memory.settle(timeout=30)
    assert superseded(memory)["rome"] == "oslo"


def test_memories_of_different_sessions_are_compared(tell):
    memory = tell(
        WrittenReader({(ROME, OSLO): ("replaces", 0.9)}), {"session": "a"}, {"session": "b"}
    )
    assert superseded(memory)["rome"] == "oslo"


def test_passages_of_documents_are_not_compared(read_by):
    reader = WrittenReader({})
    memory = read_by(reader)
    pool = {"pool": "reference_library"}
    add_both(memory, pool, pool)
    memory.settle(timeout=30)
    assert reader.asked == []


def test_what_is_longer_than_a_statement_is_not_compared(read_by):
    reader = WrittenReader({})
    memory = read_by(reader)
    memory.add(ROME + " by the river" * 40, id="rome", at="2024-01-01")
    memory.add(OSLO, id="oslo", at="2025-01-01")
    memory.settle(timeout=30)
    assert reader.asked == []


@pytest.mark.parametrize(
    ("older", "newer", "compared"), CASES["items of a series are not compared"]
)
def test_items_of_a_series_are_not_compared(read_by, older, newer, compared):
    reader = WrittenReader({})
    memory = read_by(reader)
    memory.add(older, at="2024-01-01")
    memory.add(newer, at="2025-01-01")
    memory.settle(timeout=30)
    assert set(reader.asked) == ({(older, newer)} if compared else set())


def test_a_new_text_is_compared_anew(tell):
    reader = WrittenReader({(ROME, OSLO): ("replaces", 0.9)})
    memory = tell(reader)
    memory.update("oslo", text="Mara lives on a boat")
    memory.settle(timeout=30)
    assert superseded(memory) == {"rome": None, "oslo": None}
    assert (ROME, "Mara lives on a boat") in reader.asked


def test_a_write_does_not_wait_for_the_comparison(read_by):
    released = threading.Event()

    class Slow(WrittenReader):
        def read(self, pairs):
            released.wait(30)
            return super().read(pairs)

    memory = read_by(Slow({(ROME, OSLO): ("replaces", 0.9)}))
    add_both(memory)
    time.sleep(0.5)
    assert memory.add("Jan lives in Bern", id="jan").added == 1
    with pytest.raises(TimeoutError, match="still being compared"):
        memory.settle(timeout=0.2)
    released.set()
    memory.settle(timeout=30)
    assert superseded(memory)["rome"] == "oslo"


@pytest.mark.parametrize("timeout", [float("inf"), 10**30])
def test_a_wait_for_the_comparison_may_be_without_end(read_by, timeout):
    memory = read_by(WrittenReader({(ROME, OSLO): ("replaces", 0.9)}))
    add_both(memory)
    memory.settle(timeout=timeout)
    assert superseded(memory)["rome"] == "oslo"


def test_what_was_left_undone_is_done_after_the_next_write(read_by):
    memory = read_by(BrokenReader({}))
    add_both(memory)
    with pytest.raises(ModelError, match="the model is damaged"):
        memory.settle(timeout=30)
    memory.close()
    again = read_by(WrittenReader({(ROME, OSLO): ("replaces", 0.9)}))
    again.settle(timeout=30)
    assert superseded(again)["rome"] == "oslo"


_KILLED = """
import os, signal, sys
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

memory = Memory(sys.argv[1], embedder=HashEmbedder())
memory.add("Mara lives in Rome", id="rome", at="2024-01-01")
memory.add("Mara lives in Oslo", id="oslo", at="2025-01-01")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_what_a_killed_process_did_not_compare_is_compared_after_the_next_opening(
    read_by, store_path
):
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(store_path)],
        env=os.environ | {"EKPHORY_DETECT_CHANGES": "1"},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    # Nothing is written, and nobody waits: opening is enough.
    memory = read_by(WrittenReader({(ROME, OSLO): ("replaces", 0.9)}))
    until = time.monotonic() + 30
    while superseded(memory)["rome"] is None and time.monotonic() < until:
        time.sleep(0.05)
    assert superseded(memory) == {"rome": "oslo", "oslo": None}


@pytest.mark.parametrize("timeout", [-1, True, "soon"])
def test_a_time_to_wait_that_is_none_is_refused(read_by, timeout):
    with pytest.raises(InvalidInput, match="timeout"):
        read_by(WrittenReader({})).settle(timeout)


def test_what_was_there_before_the_ledger_is_compared_by_a_scan_alone(read_by, store_path):
    memory = read_by(WrittenReader({}))
    add_both(memory)
    memory.close()
    for path in sorted((store_path / "revisions.lance").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (store_path / "revisions.lance").rmdir()
    reader = WrittenReader({(ROME, OSLO): ("replaces", 0.9)})
    again = read_by(reader)
    again.add("Jan plays the viola", id="jan")
    again.settle(timeout=30)
    assert superseded(again)["rome"] is None
    again.conflicts(scan=True)
    assert superseded(again)["rome"] == "oslo"


def test_two_handles_on_one_store_decide_once(read_by, open_memory):
    memory = read_by(WrittenReader({(ROME, OSLO): ("replaces", 0.9)}))
    other = open_memory()
    add_both(memory)
    memory.settle(timeout=30)
    other.settle(timeout=30)
    assert memory.conflicts(scan=True) == ()
    assert other.unsupersede(batch=_only(memory).batch) == 1


def _only(memory):
    shared = memory._shared.ledger.read().entries
    (entry,) = shared.values()
    return entry.revision


EARLIER = datetime(2026, 3, 4, 11, tzinfo=UTC)


def record(text, **given):
    at = given.pop("at", datetime(2026, 3, 4, 12, tzinfo=UTC))
    return MemoryRecord(id=text, text=text, at=at, created_at=at, **given)


@pytest.mark.parametrize(
    ("shares", "decided"),
    [
        ({"replaces": 0.5, "ends": 0.4}, ("replaces", 0.9, "active")),
        ({"corrects": 0.85}, ("corrects", 0.85, "active")),
        ({"ends": 0.3, "replaces": 0.2}, ("ends", 0.5, "conflict")),
        ({"restates": 0.9}, ("restates", 0.9, "active")),
        ({"excepts": 0.9}, ("excepts", 0.9, "active")),
        ({"plans": 0.81}, ("plans", 0.81, "active")),
        ({"plans": 0.7}, None),
        ({"adds": 1.0}, None),
        ({"other subject": 1.0}, None),
    ],
)
def test_the_probabilities_decide(shares, decided):
    row = [shares.get(kind, 0.0) for kind in CHANGE_KINDS]
    found = judge(row, StatementPair(record("a", at=EARLIER), record("b")), WrittenReader({}))
    if decided is None:
        assert found is None
    else:
        assert (found.kind, found.state) == (decided[0], decided[2])
        assert found.leans == (found.state == "conflict")
        assert found.probability == pytest.approx(decided[1])


CAPTURED = {"metadata": {"class": "fact", "evidence": "3"}}
TURN = {"session": "s", "sequence": 4}


@pytest.mark.parametrize(
    ("older", "newer", "probability", "state"),
    [
        (CAPTURED, CAPTURED, 0.74, "conflict"),
        (CAPTURED, CAPTURED, 0.76, "active"),
        ({}, CAPTURED, 0.6, "active"),
        (CAPTURED, {}, 0.6, "active"),
        (TURN, TURN, 0.74, "conflict"),
        (TURN, CAPTURED, 0.74, "conflict"),
        (TURN, TURN, 0.76, "active"),
        ({}, TURN, 0.6, "active"),
    ],
)
def test_what_was_said_in_a_dialogue_supersedes_what_was_said_only_where_that_is_sure(
    older, newer, probability, state
):
    reader = WrittenReader({})
    reader.thresholds = ChangeThresholds(acts=0.5, shows=0.25)
    pair = StatementPair(record("a", at=EARLIER, **older), record("b", **newer))
    row = [probability if kind == "replaces" else 0.0 for kind in CHANGE_KINDS]
    assert judge(row, pair, reader).state == state
    row = [probability if kind == "restates" else 0.0 for kind in CHANGE_KINDS]
    assert (judge(row, pair, reader) is None) == (state == "conflict")


@pytest.mark.parametrize(
    ("older", "newer", "leans"),
    [
        ({}, {}, True),
        (CAPTURED, CAPTURED, True),
        (CAPTURED | {"session": "s"}, CAPTURED | {"session": "s"}, False),
        (CAPTURED | {"session": "s"}, CAPTURED | {"session": "t"}, True),
        (TURN, CAPTURED | {"session": "s"}, False),
        (TURN, CAPTURED, True),
        (TURN, TURN, False),
        ({}, {"role": "assistant"}, False),
        ({"role": "assistant"}, {}, True),
        ({}, {"at": EARLIER}, False),
    ],
)
def test_a_conflict_leans_where_only_its_probability_keeps_it_from_acting(older, newer, leans):
    reader = WrittenReader({})
    reader.thresholds = ChangeThresholds(acts=0.5, shows=0.25)
    row = [0.4 if kind == "ends" else 0.0 for kind in CHANGE_KINDS]
    pair = StatementPair(record("a", at=EARLIER, **older), record("b", **newer))
    assert (judge(row, pair, reader).state, judge(row, pair, reader).leans) == ("conflict", leans)


@pytest.mark.parametrize(
    ("text", "end"), CASES["an exception ends as it says or a fortnight later"]
)
def test_an_exception_ends_as_it_says_or_a_fortnight_later(text, end):
    assert find_exception_end(record(text)).date().isoformat() == end


def test_a_detector_without_a_model_compares_nothing():
    detector = ChangeDetector(None, None, None, None, reader=None)
    detector.wake()
    detector.settle(timeout=0)
    detector.close()
