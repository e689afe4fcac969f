"""What is done to all shards: moving to another number of them, upkeep, copies, erasure."""

import hashlib
import json
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace

import numpy as np
import pytest
from tests.cluster.conftest import NEEDED
from tests.cluster.test_lease import PausingLease, add
from typer.testing import CliRunner

from ekphory.catalog.database import Database
from ekphory.catalog.projects import Project, Projects
from ekphory.cli.app import app
from ekphory.cluster.bulk import BulkOptions, import_in_bulk
from ekphory.cluster.moving import _Filled, _number_anew, _plan, _Source, move, reshard
from ekphory.cluster.objects import Objects
from ekphory.cluster.operations import (
    back_up,
    do_in_shards,
    erase,
    export,
)
from ekphory.cluster.served_shards import ShardCatalog
from ekphory.cluster.shards import (
    Manifest,
    announced,
    hold_shard,
    make_shards,
    open_memory,
    open_shards,
    read_manifest,
    write_manifest,
)
from ekphory.engine import make_engine
from ekphory.errors import EmbedderMismatch, InvalidInput, StoreError, StoreLocked
from ekphory.filters.tree import EVERYTHING
from ekphory.importers import import_path
from ekphory.models.loading import load_embedder
from ekphory.scope import Scope
from ekphory.store.ledger import LedgerState
from ekphory.store.protocol import KEYS_A_COMMIT, first_key
from ekphory.testing import HashEmbedder

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PROJECTS = [f"p{number}" for number in range(5)]
QUERIES = ("where does Anna live?", "what happens on Mondays", "pizza", "the same in all of them")


def open_project(root, project, *, org="acme", user=None):
    scope = Scope(org=org, project=project, user=user)
    return open_memory(root, scope, embedder=HashEmbedder())


def fill(root, projects=PROJECTS):
    """Memories of some projects: sessions, updates, decisions, equal texts, and long ones."""
    for project in projects:
        with open_project(root, project) as own:
            own.add_many(
                {"id": f"{project}-{n}", "text": text, "at": f"2026-05-{n + 1:02}", "session": "s",
                 "sequence": n, "metadata": {"n": n}}
                for n, text in enumerate(
                    [f"Anna moved to Lisbon {project}", "the same in all of them",
                     f"deploys never happen on Mondays {project}",
                     "a long tale of pizza " * 400, f"Anna likes pizza with {project}"]
                )
            )  # fmt: skip
            own.add_many([{"text": f"no id was given in {project}", "user": "mara"}])
            own.update(f"{project}-0", text=f"Anna lives in Porto {project}")
            own.update(f"{project}-0", text=f"Anna lives in Rome {project}")
            own.add(f"to be forgotten {project}", id="gone")
            own.forget("gone")
            own.supersede(f"{project}-2", by=f"{project}-4")
            kept = own.supersede(f"{project}-1", by=f"{project}-3", kind="corrects")
            own.unsupersede(revision=kept.id)


def open_all(root):
    return open_memory(root, embedder=HashEmbedder())


def read_all(root, embedder=None):
    """Everything that all shards hold, without the numbers of rows."""
    embedder = embedder or HashEmbedder()
    shards = open_shards(root, embedder)
    records, decisions, vectors = [], [], []
    for shard in range(shards.count):
        with hold_shard(shards, shard, embedder) as engine:
            engine.store.version()
            records += engine.store.select(EVERYTHING, order="written")
            for entry in engine.ledger.read().entries.values():
                told = entry.revision
                decisions.append(
                    (entry.owner, entry.pool, told.older, told.newer, told.kind, told.state,
                     told.batch, told.decided_at, entry.since, entry.until, entry.leans)
                )  # fmt: skip
                both = engine.store.fetch(entry.keys)
                assert {told.older, told.newer} == {each.id for each in both.values()}
            found = engine.store.vectors_of(engine.store.keys(EVERYTHING).tolist())
            names = {key: engine.store.fetch([key])[key].id for key in set(found.keys.tolist())}
            vectors += [
                (names[key], vector.tobytes())
                for key, vector in zip(found.keys.tolist(), found.vectors, strict=True)
            ]
    by_scope = sorted(records, key=lambda each: (each.project, each.id))
    return by_scope, sorted(decisions, key=repr), sorted(vectors)


def search_all(root):
    """The hits of each query, in order, with their probabilities: unbound, and in each project."""
    scopes = [Scope(), Scope(org="acme")]
    scopes += [Scope(org="acme", project=project) for project in PROJECTS]
    found = []
    for scope in scopes:
        with open_memory(root, scope, embedder=HashEmbedder()) as memory:
            for query in QUERIES:
                hits = memory.search(query, k=50)
                scores = [pytest.approx(hit.score, abs=1e-6) for hit in hits]
                places = [(hit.memory.project, hit.id) for hit in hits]
                found.append((places, scores))
    return found


@pytest.mark.parametrize("count", [5, 2, 1])
def test_a_search_finds_the_same_in_another_number_of_shards(shards, count):
    fill(shards.root)
    before, searched = read_all(shards.root), search_all(shards.root)
    report = reshard(shards.root, HashEmbedder(), count=count)
    assert (report.shards, report.memories, report.revisions) == (count, 40, 10)
    assert open_shards(shards.root, HashEmbedder()).count == count
    assert read_all(shards.root) == before
    assert search_all(shards.root) == searched


@pytest.mark.timeout(1_800)
def test_a_move_that_is_killed_before_each_of_its_steps_goes_on(tmp_path, start_child):
    pytest.importorskip("obstore", reason=NEEDED)
    shards = make_shards(str(tmp_path / "cluster"), HashEmbedder(), count=3)
    fill(shards.root)
    before, searched = read_all(shards.root), search_all(shards.root)
    child = start_child("resharder.py", shards.root, 4)
    child.go()
    *killed, last = child.finished(1_500)
    assert [each for each in killed if each["code"] != -signal.SIGKILL] == []
    assert last["code"] == 0
    assert open_shards(shards.root, HashEmbedder()).count == 4
    assert read_all(shards.root) == before
    assert search_all(shards.root) == searched


def test_nothing_that_is_acknowledged_is_lost_when_a_store_is_moved(place):
    shards = make_shards(place, HashEmbedder(), count=1)
    lease = shards.lease(0, seconds=0.1)
    engine = make_engine(shards.uri(0), HashEmbedder(), lease)
    acknowledged, refused, ended = [], [], threading.Event()

    def write_on():
        for number in range(10_000):
            try:
                add(engine, f"m{number}")
                acknowledged.append(f"m{number}")
            except StoreError as error:
                refused.append(str(error))
            if ended.wait(0.2) or len(refused) > 5:
                return

    thread = threading.Thread(target=write_on)
    thread.start()
    while len(acknowledged) < 3:
        time.sleep(0.05)
    while True:
        with suppress(StoreLocked):
            reshard(place, HashEmbedder(), count=2)
            break
    thread.join()
    ended.set()
    engine.writer.close()
    with open_all(place) as memory:
        stored = Counter(record.id for record in memory.list(limit=10_000))
    assert stored.keys() >= set(acknowledged)
    assert stored.most_common(1)[0][1] == 1
    assert "its memories were moved to other shards" in refused[-1]


def test_a_writer_that_sleeps_through_a_move_is_refused(place):
    shards = make_shards(place, HashEmbedder(), count=1)
    lease = PausingLease(Objects(shards.root), "leases/shard-00000", seconds=0.1)
    engine = make_engine(shards.uri(0), HashEmbedder(), lease)
    add(engine, "before")
    lease.pause()
    with ThreadPoolExecutor(1) as thread:
        asleep = thread.submit(add, engine, "asleep")
        assert lease.asleep.wait(20)
        time.sleep(0.2)
        reshard(place, HashEmbedder(), count=2)
        lease.woken.set()
        with pytest.raises(StoreError):
            asleep.result()
    engine.writer.close()
    with open_all(place) as memory:
        assert [record.id for record in memory.list()] == ["before"]


def test_a_store_that_is_served_is_not_moved(shards):
    with announced(shards.root), pytest.raises(StoreLocked, match="End `ekphory cluster serve`"):
        reshard(shards.root, HashEmbedder(), count=2)
    assert reshard(shards.root, HashEmbedder(), count=2).shards == 2


def test_a_store_of_which_it_cannot_be_read_who_serves_it_is_not_moved(shards):
    Objects(shards.root).put("serving/0123", b"{}")
    with pytest.raises(StoreError, match="serving/0123: is not a lease"):
        reshard(shards.root, HashEmbedder(), count=2)


def test_a_store_that_is_written_to_is_not_moved(shards, open_scope):
    open_scope(org="acme", project="p0").add("a moment ago")
    with pytest.raises(StoreLocked, match="is writing"):
        reshard(shards.root, HashEmbedder(), count=2)
    assert open_shards(shards.root, HashEmbedder()) == shards


def test_a_store_that_is_being_moved_says_how_to_go_on(shards):
    write_manifest(Manifest(1, shards, replace(shards, count=2, generation=1), (1, 1, 1)))
    with pytest.raises(StoreError, match="Run `ekphory cluster reshard` again until it is done"):
        open_all(shards.root)


def test_of_two_that_change_the_manifest_one_does(shards):
    write_manifest(Manifest(1, replace(shards, count=2, generation=1)))
    with pytest.raises(StoreLocked, match="another process has changed the manifest"):
        write_manifest(Manifest(1, replace(shards, count=4, generation=1)))
    assert read_manifest(shards.root).shards.count == 2


def test_another_number_than_the_one_that_was_begun_is_moved_to(shards):
    fill(shards.root, PROJECTS[:2])
    before = read_all(shards.root)
    _plan(read_manifest(shards.root), 5, HashEmbedder())
    assert reshard(shards.root, HashEmbedder(), count=2).memories == 16
    assert read_all(shards.root) == before
    folders = {name.split("/")[0] for name in Objects(shards.root).names() if "memories" in name}
    assert folders == {"memories.lance", "shard-2-00000", "shard-2-00001"}


def test_what_was_moved_goes_on_as_before(shards):
    fill(shards.root)
    reshard(shards.root, HashEmbedder(), count=2)
    with open_project(shards.root, "p0") as memory:
        skipped = memory.add_many(
            [{"text": "no id was given in p0", "user": "mara"}, {"text": "x", "id": "p0-1"}]
        )
        assert (skipped.added, skipped.skipped) == (0, 2)
        memory.update("p0-0", text="Anna lives in Paris")
        versions = [each.id for each in memory.history("p0-0")]
        assert versions == ["p0-0", "p0-0~3", "p0-0~2", "p0-0~1"]
        memory.supersede("p0-1", by="p0-3")
        assert memory.revisions()[0].revision.state == "active"
        assert len(memory.revisions()) == 2
        assert memory.verify().damage == ()
    assert reshard(shards.root, HashEmbedder(), count=3).shards == 3


def test_a_number_that_is_there_moves_nothing(shards):
    fill(shards.root, PROJECTS[:1])
    assert reshard(shards.root, HashEmbedder(), count=3).memories == 0
    assert open_shards(shards.root, HashEmbedder()) == shards


@pytest.mark.parametrize("count", [0, 4097, True])
def test_a_number_of_shards_that_cannot_be_is_refused(shards, count):
    with pytest.raises(InvalidInput, match="Give 1 to 4,096"):
        reshard(shards.root, HashEmbedder(), count=count)


def test_another_embedder_does_not_reshard(shards):
    with pytest.raises(EmbedderMismatch, match="ekphory cluster reembed"):
        reshard(shards.root, HashEmbedder(dimension=16), count=2)


def test_projects_of_the_catalogs_move_with_their_memories(shards, tmp_path):
    projects = {f"p{number}": f"about p{number}" for number in range(5)}
    for shard in range(shards.count):
        own = [name for name in projects if shards.find("acme", name) == shard]
        catalog = ShardCatalog(Objects(shards.root), shards.catalog(shard), tmp_path / f"{shard}")
        database = Database(catalog.path, publish=catalog.publish)
        for name in own:
            Projects(database).create(Project("acme", name, projects[name], {"k": 1}))
        database.close()
    reshard(shards.root, HashEmbedder(), count=2)
    moved = open_shards(shards.root, HashEmbedder())
    for name, description in projects.items():
        place = tmp_path / f"read-{name}"
        folder = moved.catalog(moved.find("acme", name))
        found = Projects(Database(ShardCatalog(Objects(moved.root), folder, place).path))
        assert found.get("acme", name) == Project("acme", name, description, {"k": 1})
    with pytest.raises(StoreError, match="its memories were moved to other shards"):
        ShardCatalog(Objects(shards.root), shards.catalog(0), tmp_path / "old")


def test_no_later_write_is_given_a_number_that_was_moved(shards):
    lease = shards.lease(0)
    with hold_shard(shards, 0, HashEmbedder(), lease=lease) as engine:
        _Filled(engine, lease).raise_versions(9 * KEYS_A_COMMIT)
        assert first_key(after=engine.store.version()) > 9 * KEYS_A_COMMIT
        assert engine.store.version() < 12


def test_the_memories_that_were_compared_stay_so():
    names = {"state": None, "rows": np.empty((0, 3), np.int64)}
    first = _Source(ledger=LedgerState(1, {}, 20), keys=np.array([10, 20, 30]), **names)
    other = _Source(ledger=LedgerState(1, {}, 0), keys=np.array([5, 20]), **names)
    assert _number_anew([first, other]) == (5, 2)
    assert (first.moved.tolist(), other.moved.tolist()) == ([1, 2, 5], [3, 4])


# Erasing a person.

WORD = "xylophone"


def say(root, project, *records, org="acme"):
    with open_project(root, project, org=org) as memory:
        assert memory.add_many(records).added == len(records)
        return memory.list()


def fill_with_a_person(root):
    """Memories of Mara and of others in six projects, changed, decided on, and learnt."""
    for number in range(6):
        project = f"p{number}"
        own = {"user": "mara"}
        say(
            root,
            project,
            {"id": f"{WORD}-{number}", "text": f"I play the {WORD}", **own},
            {"id": "drums", "text": "I play the drums too", **own},
            {"id": "led", "text": f"a {WORD} in a shared pool", "pool": "shared_knowledge", **own},
            {"id": "kept", "text": "Ben likes pizza", "user": "ben"},
            {"id": "nobody", "text": "the office is in Lisbon"},
        )
        say(root, f"{project}/semantic", {"text": f"instrument: {WORD}",
                                          "metadata": {"user_id": "mara"}})  # fmt: skip
        with open_project(root, project, user="mara") as memory:
            memory.update(f"{WORD}-{number}", text=f"I gave the {WORD} away")
            memory.supersede(f"{WORD}-{number}", by="drums")


def decoded(root):
    """Every text of every file below a store, as Lance reads it, rows that are deleted too."""
    from lance.file import LanceFileReader

    objects = Objects(root)
    for name in objects.names():
        yield name, objects.get(name)
        if name.endswith(".lance"):
            options = {key: value for key, value in os.environ.items() if key.startswith("AWS_")}
            rows = LanceFileReader(f"{root}/{name}", storage_options=options).read_all().to_table()
            yield name, repr(rows.drop_columns(
                [each for each in rows.column_names if each in ("vector", "terms")]
            ).to_pylist()).encode()  # fmt: skip


def test_a_person_is_erased_from_all_shards_and_files(shards):
    fill_with_a_person(shards.root)
    say(shards.root, "elsewhere", {"id": "same", "text": "mara of Umbrella", "user": "mara"},
        org="umbrella")  # fmt: skip
    assert any(WORD.encode() in content for _, content in decoded(shards.root))

    receipt = erase(shards.root, HashEmbedder(), org="acme", user="mara")
    assert receipt.erased == sum(each.erased for each in receipt.shards) == 6 * 5
    assert sorted(each.shard for each in receipt.shards) == [0, 1, 2]
    digest = hashlib.sha256(f"{WORD}-0~1".encode()).hexdigest()
    assert digest in {each for shard in receipt.shards for each in shard.sha256}
    assert WORD not in json.dumps(asdict(receipt))
    left = [name for name, content in decoded(shards.root) if WORD.encode() in content]
    assert left == []
    with open_all(shards.root) as memory:
        told = Counter(record.id for record in memory.list(limit=100))
        assert told == {"kept": 6, "nobody": 6, "same": 1}
        assert memory.revisions() == ()


@pytest.mark.parametrize(("org", "user", "field"), [("", "mara", "org"), ("acme", "", "user")])
def test_who_is_to_be_erased_must_be_named(tmp_path, org, user, field):
    with pytest.raises(InvalidInput, match=f"{field}='': names nobody"):
        erase(str(tmp_path), HashEmbedder(), org=org, user=user)


def test_a_person_who_was_erased_is_erased_again_with_nothing(shards):
    fill_with_a_person(shards.root)
    erase(shards.root, HashEmbedder(), org="acme", user="mara")
    again = erase(shards.root, HashEmbedder(), org="acme", user="mara")
    assert (again.erased, [each.sha256 for each in again.shards]) == (0, [(), (), ()])


def test_what_was_hidden_before_a_kill_is_removed_by_the_next_run(shards):
    fill_with_a_person(shards.root)
    for number in range(6):
        with open_project(shards.root, f"p{number}") as memory:
            memory.forget(filter="user = 'mara'")
        with open_project(shards.root, f"p{number}/semantic") as memory:
            memory.forget(filter="metadata.user_id = 'mara'")
    assert any(WORD.encode() in content for _, content in decoded(shards.root))
    assert erase(shards.root, HashEmbedder(), org="acme", user="mara").erased == 0
    assert not any(WORD.encode() in content for _, content in decoded(shards.root))


def test_nothing_of_a_person_stays_in_an_index(place):
    shards = make_shards(place, HashEmbedder(), count=1)
    say(place, "p0", {"id": WORD, "text": "I play", "user": "mara"}, {"text": "the office"})
    with hold_shard(shards, 0, HashEmbedder()) as engine:
        engine.store._vector_index.build_scalar()
    erase(place, HashEmbedder(), org="acme", user="mara")
    assert not any(WORD.encode() in content for _, content in decoded(shards.root))


def test_ids_that_were_shown_of_a_person_are_erased_from_the_catalog(shards, tmp_path):
    folder = shards.catalog(0)
    catalog = ShardCatalog(Objects(shards.root), folder, tmp_path / "first")
    database = Database(catalog.path, publish=catalog.publish)
    Projects(database).create(Project("acme", "p0", "kept"))
    for org in ("acme", "umbrella"):
        database.insert("shown_ids", {"org": org, "project": "p0", "shown": "1", "id": org + WORD})
    database.close()
    erase(shards.root, HashEmbedder(), org="acme", user="mara")
    stored = [Objects(shards.root).get(f"{folder}/{name}")
              for name in Objects(shards.root).names(folder)]  # fmt: skip
    assert not any(f"acme{WORD}".encode() in content for content in stored)
    read = ShardCatalog(Objects(shards.root), folder, tmp_path / "second")
    database = Database(read.path)
    assert [row["org"] for row in database.read("SELECT org FROM shown_ids")] == ["umbrella"]
    assert Projects(database).get("acme", "p0").description == "kept"


# What is done to one shard after the other.


@pytest.mark.parametrize("verb", ["optimize", "purge", "verify"])
def test_a_verb_of_a_store_is_done_to_all_shards(shards, verb):
    fill(shards.root, PROJECTS[:2])
    before, told = read_all(shards.root), []
    reports = do_in_shards(
        shards.root, HashEmbedder(), verb, on_progress=lambda *now: told.append(now)
    )
    assert [each.shard for each in reports.shards] == [0, 1, 2]
    assert told[-1] == ("shards", 3, 3)
    assert read_all(shards.root) == before
    if verb == "verify":
        assert sum(each.report.rows for each in reports.shards) > 16
    else:
        assert sum(each.report.memories + each.report.history for each in reports.shards) == 16


def test_damage_in_a_shard_is_found(tmp_path):
    pytest.importorskip("obstore", reason=NEEDED)
    shards = make_shards(str(tmp_path / "cluster"), HashEmbedder(), count=1)
    fill(shards.root, PROJECTS[:1])
    largest = max(tmp_path.glob("cluster/shard-00000/memories.lance/data/*.lance"),
                  key=lambda path: path.stat().st_size)  # fmt: skip
    content = bytearray(largest.read_bytes())
    content[len(content) // 3 : len(content) // 3 + 64] = bytes(64)
    largest.write_bytes(content)
    verified = do_in_shards(shards.root, HashEmbedder(), "verify", on_progress=lambda *_: None)
    assert verified.damage
    with pytest.raises(StoreError):
        reshard(shards.root, HashEmbedder(), count=2)
    assert read_manifest(shards.root).shards == shards


def test_purged_bytes_are_gone_from_all_shards(shards):
    for number in range(4):
        say(shards.root, f"p{number}", {"id": "gone", "text": f"the {WORD}"}, {"text": "kept"})
        with open_project(shards.root, f"p{number}") as memory:
            memory.forget("gone")
    do_in_shards(shards.root, HashEmbedder(), "purge", on_progress=lambda *_: None)
    assert not any(WORD.encode() in content for _, content in decoded(shards.root))


def test_all_shards_are_embedded_anew(shards):
    fill(shards.root, PROJECTS[:2])
    records, _, _ = read_all(shards.root)
    other = HashEmbedder(dimension=16)
    assert move(shards.root, other).embedder == str(other.identity)
    with pytest.raises(EmbedderMismatch):
        open_all(shards.root)
    moved = open_shards(shards.root, other)
    assert moved.count == 3
    found = []
    for shard in range(3):
        with hold_shard(moved, shard, other) as engine:
            found += engine.store.select(EVERYTHING, order="written")
            assert len(engine.store.lacking(other.identity)) == 0
    assert sorted(found, key=lambda each: (each.project, each.id)) == records


def test_an_export_of_all_shards_is_taken_back_whole(shards, tmp_path, memory):
    fill(shards.root, PROJECTS[:3])
    target = tmp_path / "all.jsonl"
    report = export(shards.root, HashEmbedder(), target)
    assert (report.memories, report.versions) == (3 * 6, 3 * 2)
    assert import_path(memory, target).added == 18

    store = str(tmp_path / "second")
    options = BulkOptions(store=store, shards=2)
    for added in (18, 0):
        taken = import_in_bulk(str(target), options, on_progress=lambda _: None)
        assert (taken.added, taken.skipped, taken.failed) == (added, 18 - added, 0)
    before, after = read_all(shards.root), read_all(store, load_embedder(None))
    assert after[0] == before[0]
    assert [each[:6] for each in after[1]] == [each[:6] for each in before[1]]
    again = export(store, load_embedder(None), tmp_path / "again")
    assert (again.memories, again.versions) == (18, 6)
    assert [each.revision.older for each in memory.revisions()].count("p0-2") == 1


def test_a_copy_of_a_store_is_a_store_itself_and_follows_it(shards, tmp_path):
    fill(shards.root)
    target = str(tmp_path / "copy")
    searched = search_all(shards.root)
    first = back_up(shards.root, HashEmbedder(), target)
    assert (first.memories, first.shards) == (40, 3)
    assert search_all(target) == searched
    say(shards.root, "p0", {"text": "later"})
    do_in_shards(shards.root, HashEmbedder(), "optimize", on_progress=lambda *_: None)
    second = back_up(shards.root, HashEmbedder(), target)
    assert second.memories == 41
    assert second.copied < first.copied
    assert read_all(target) == read_all(shards.root)


def test_a_store_is_not_copied_to_itself(tmp_path):
    make_shards(str(tmp_path), HashEmbedder(), count=1)
    with pytest.raises(InvalidInput, match="is the store itself"):
        back_up(str(tmp_path), HashEmbedder(), str(tmp_path))


def test_a_copy_that_was_written_to_is_not_overwritten(shards, tmp_path):
    target = str(tmp_path / "copy")
    back_up(shards.root, HashEmbedder(), target)
    say(target, "p0", {"text": "written to the copy"})
    with pytest.raises(InvalidInput, match="it was written to since"):
        back_up(shards.root, HashEmbedder(), target)
    with pytest.raises(InvalidInput, match="something else is there"):
        back_up(target, HashEmbedder(), shards.root)


def test_the_commands_tell_what_they_did(tmp_path):
    pytest.importorskip("obstore", reason=NEEDED)
    store = str(tmp_path / "cluster")
    make_shards(store, load_embedder(None), count=2)
    with open_memory(store, Scope(org="acme", project="p0", user="mara"),
                     embedder=load_embedder(None)) as memory:  # fmt: skip
        memory.add("I play the xylophone", id="m1")

    def run(*words):
        done = CliRunner().invoke(app, ["cluster", *words, "--store", store, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert run("reshard", "--shards", "3")["memories"] == 1
    assert run("optimize")["verb"] == "optimize"
    assert len(run("verify")["shards"]) == 3
    assert run("export", "--target", str(tmp_path / "all.jsonl"))["memories"] == 1
    assert run("backup", "--target", str(tmp_path / "copy"))["memories"] == 1
    assert run("reembed")["memories"] == 0
    digest = hashlib.sha256(b"m1").hexdigest()
    receipt = run("erase", "--org", "acme", "--user", "mara")
    assert [each["sha256"] for each in receipt["shards"] if each["erased"]] == [[digest]]
    assert len(run("purge")["shards"]) == 3
