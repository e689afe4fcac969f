"""Whatever verbs two processes call in whatever order, both see what a simple model says."""

import multiprocessing
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ekphory.errors import InvalidInput
from ekphory.importers import import_path
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

pytestmark = pytest.mark.slow
HERE, THERE = "here", "there"
IDS = st.sampled_from("abcd")
KINDS = st.sampled_from(["replaces", "corrects", "restates"])
WHO = st.sampled_from([HERE, THERE])


def serve(pipe):
    """Call the verbs that come through a pipe, on stores that stay open."""
    opened = {}
    while (asked := pipe.recv()) is not None:
        path, verb, given, named = asked
        if path not in opened:
            opened[path] = Memory(path, embedder=HashEmbedder())
        if verb == "close":
            opened.pop(path).close()
            pipe.send(None)
            continue
        try:
            pipe.send(getattr(opened[path], verb)(*given, **named))
        except InvalidInput as error:
            pipe.send(error)


@pytest.fixture(scope="module")
def pipe():
    """Leads to another process, which calls verbs."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    yield ours
    ours.send(None)
    process.join(20)


class TwoProcesses(RuleBasedStateMachine):
    """Two processes on one store, and what must be in it."""

    pipe = None

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ekphory-verbs-"))
        self.store = str(self.folder / "store")
        self.memory = Memory(self.store, embedder=HashEmbedder())
        self.texts = {}
        self.links = {}

    def teardown(self):
        self.call(THERE, "close")
        self.memory.close()
        shutil.rmtree(self.folder)

    def call(self, who, verb, *given, **named):
        if who == HERE:
            return getattr(self.memory, verb)(*given, **named)
        self.pipe.send((self.store, verb, given, named))
        answer = self.pipe.recv()
        if isinstance(answer, InvalidInput):
            raise answer
        return answer

    @rule(who=WHO, name=IDS, number=st.integers(0, 3))
    def add(self, who, name, number):
        report = self.call(who, "add", f"lives in town {number}", id=name)
        assert report.added == (name not in self.texts)
        self.texts.setdefault(name, [f"lives in town {number}"])

    @rule(who=WHO, name=IDS, number=st.integers(4, 7))
    def update_text(self, who, name, number):
        assume(name in self.texts)
        self.call(who, "update", name, text=f"lives in town {number}")
        self.texts[name].append(f"lives in town {number}")

    @rule(who=WHO, name=IDS, number=st.integers())
    def update_metadata(self, who, name, number):
        assume(name in self.texts)
        self.call(who, "update", name, metadata={"number": str(number)})
        self.texts[name].append(self.texts[name][-1])

    @rule(who=WHO, name=IDS, purge=st.booleans())
    def forget(self, who, name, purge):
        assume(name in self.texts)
        self.call(who, "forget", name, purge=purge)
        del self.texts[name]
        self.links = {pair: kind for pair, kind in self.links.items() if name not in pair}

    @rule(who=WHO, older=IDS, newer=IDS, kind=KINDS)
    def supersede(self, who, older, newer, kind):
        assume(older != newer and {older, newer} <= self.texts.keys())
        if kind != "restates" and older in self.reached_from(newer):
            with pytest.raises(InvalidInput, match="is superseded by"):
                self.call(who, "supersede", older, by=newer, kind=kind)
        else:
            self.call(who, "supersede", older, by=newer, kind=kind)
            self.links[older, newer] = kind

    @precondition(lambda self: self.links)
    @rule(who=WHO, data=st.data())
    def unsupersede(self, who, data):
        decided = self.call(who, "revisions", limit=100)
        chosen = data.draw(st.sampled_from(decided))
        assert self.call(who, "unsupersede", revision=chosen.revision.id) == 1
        del self.links[chosen.older.id, chosen.newer.id]

    @rule(who=WHO)
    def repair(self, who):
        self.call(who, "repair")

    @rule(who=WHO)
    def export_and_import(self, who):
        target = self.folder / "export.jsonl"
        self.call(who, "export", str(target))
        with (
            tempfile.TemporaryDirectory() as place,
            Memory(place, embedder=HashEmbedder()) as other,
        ):
            import_path(other, target)
            self.check(lambda verb, *given, **named: getattr(other, verb)(*given, **named))

    def reached_from(self, name):
        """What a memory is superseded by, directly or over others."""
        reached, waiting = set(), [name]
        while waiting:
            current = waiting.pop()
            for (older, newer), kind in self.links.items():
                if older == current and kind != "restates" and newer not in reached:
                    reached.add(newer)
                    waiting.append(newer)
        return reached

    def check(self, call):
        listed = {record.id: record.text for record in call("list")}
        assert listed == {name: texts[-1] for name, texts in self.texts.items()}
        for name, texts in self.texts.items():
            assert [record.text for record in call("history", name)] == texts[::-1]
        decided = call("revisions", limit=100) if listed else ()
        found = {(each.older.id, each.newer.id): each.revision.kind for each in decided}
        assert found == self.links

    @invariant()
    def both_see_what_there_is(self):
        for who in (HERE, THERE):
            self.check(lambda verb, *given, who=who, **named: self.call(who, verb, *given, **named))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_two_processes_see_what_their_verbs_leave(pipe):
    TwoProcesses.pipe = pipe
    case = TwoProcesses.TestCase()
    case.settings = settings(
        max_examples=12,
        stateful_step_count=24,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    case.runTest()
