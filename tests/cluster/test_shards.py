"""A store in shards: which project lies where, and results as of one store."""

import json

import pytest
from tests.cluster.conftest import BUCKET

from ekphory.cluster.objects import Objects, find_root
from ekphory.cluster.shards import MANIFEST, find_shard, make_shards, open_memory, open_shards
from ekphory.errors import EmbedderMismatch, InvalidInput, StoreError
from ekphory.memory import Memory
from ekphory.scope import Scope
from ekphory.testing import HashEmbedder

pytestmark = pytest.mark.long

SAID = [
    "Anna moved to Lisbon in spring",
    "the staging key rotates on Mondays",
    "Lisbon has steep streets and trams",
    "deploys happen on Fridays, never on Mondays",
    "Anna likes pizza with olives",
]


def said_in(project):
    return [
        {"id": f"{project}-{n}", "text": f"{text} {project}", "at": f"2026-05-{n + 1:02}",
         "session": "s", "org": "acme", "project": project}
        for n, text in enumerate(SAID)
    ]  # fmt: skip


@pytest.fixture
def filled(open_scope, memory):
    """Handles on the shards and on one store, which hold the same memories of six projects."""
    for number in range(6):
        records = said_in(f"p{number}")
        open_scope(org="acme", project=f"p{number}").add_many(records)
        memory.add_many(records)
    return open_scope, memory


def read_ids(path):
    """The ids of the memories in an export."""
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return {line["id"] for line in lines if "id" in line}


def told(result):
    return [(hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in result]


@pytest.mark.parametrize(
    ("org", "project", "shard"),
    [
        (None, None, 600),
        ("default", "default", 600),
        ("acme", "home", 368),
        ("acme", "home/semantic", 368),
    ],
)
def test_the_shard_of_a_project_never_changes(org, project, shard):
    assert find_shard(org, project, shards=1000) == shard


def test_a_search_of_one_project_finds_what_a_store_of_its_own_would(filled):
    open_scope, memory = filled
    bound = open_scope(org="acme", project="p3")
    alone = Memory(memory._engine.uri, org="acme", project="p3", embedder=HashEmbedder())
    with alone:
        for query in ("where does Anna live?", "what happens on Mondays", ""):
            assert told(bound.search(query)) == told(alone.search(query))


@pytest.mark.parametrize("scope", [{}, {"org": "acme"}])
def test_a_search_of_all_shards_finds_what_one_store_would(filled, scope):
    open_scope, memory = filled
    everywhere = open_scope(**scope)
    for query in ("where does Anna live?", "what happens on Mondays", "pizza p4"):
        assert told(everywhere.search(query, k=30)) == told(memory.search(query, k=30))
    assert everywhere.count() == 30


def test_a_handle_on_all_shards_sees_later_writes_and_decisions(filled):
    open_scope, memory = filled
    everywhere, bound = open_scope(), open_scope(org="acme", project="p1")
    everywhere.search("Anna")
    later = {"id": "new", "text": "Anna moved to Porto", "at": "2026-06-01"}
    for each in (bound, memory):
        each.add_many([{**later, "org": "acme", "project": "p1"}])
        each.supersede("p1-0", by="new")
        each.forget("p1-4")
    assert told(everywhere.search("where is Anna?")) == told(memory.search("where is Anna?"))
    assert [record.id for record in everywhere.list(limit=1)] == ["new"]
    assert everywhere.get("new").text == "Anna moved to Porto"


def test_a_handle_on_all_shards_forgets_what_it_had_loaded(filled):
    open_scope, memory = filled
    everywhere, bound = open_scope(), open_scope(org="acme", project="p1")
    for query in ("Anna", "where does Anna live?", "Lisbon"):
        everywhere.search(query)
    for each in (bound, memory):
        each.forget("p1-0")
    for query in ("Anna", "Lisbon"):
        assert told(everywhere.search(query, k=30)) == told(memory.search(query, k=30))


def test_a_handle_on_all_shards_refuses_to_write(open_scope):
    with pytest.raises(StoreError, match="Bind it to an org and a project to write"):
        open_scope(org="acme").add("whose is this?")


def test_a_handle_on_all_shards_refuses_to_decide_and_goes_on_reading(filled):
    open_scope, _ = filled
    everywhere, bound = open_scope(org="acme"), open_scope(org="acme", project="p1")
    made = bound.supersede("p1-0", by="p1-2")
    assert everywhere.conflicts() == ()
    for refused in (
        lambda: everywhere.unsupersede(revision=made.id),
        lambda: everywhere.supersede("p1-3", by="p1-4"),
        everywhere.repair,
    ):
        with pytest.raises(StoreError, match="Bind it to an org and a project to write"):
            refused()
    assert [each.revision.id for each in everywhere.revisions()] == [made.id]


def test_an_export_and_a_check_of_all_shards_tell_what_all_of_them_hold(filled, tmp_path):
    open_scope, memory = filled
    everywhere = open_scope()
    assert everywhere.export(tmp_path / "all.jsonl").memories == 30
    held = {each.id for each in memory.list(limit=100)}
    assert read_ids(tmp_path / "all.jsonl") == held
    found = everywhere.verify()
    assert (found.rows, found.damage) == (30, ())


def test_projects_do_not_see_each_other_in_a_shard(filled):
    open_scope, _ = filled
    for number in range(6):
        found = open_scope(org="acme", project=f"p{number}").search("Anna", k=50)
        assert {hit.memory.project for hit in found} == {f"p{number}"}


def test_purged_text_is_gone_from_every_object(filled, shards):
    open_scope, _ = filled
    bound = open_scope(org="acme", project="p2")
    bound.add("the word is xylophone", id="secret")
    bound.forget("secret", purge=True)
    objects = Objects(shards.uri(shards.find("acme", "p2")))
    contents = [objects.get(f"memories.lance/{name}") for name in names_below(objects)]
    assert contents
    assert not any(b"xylophone" in content for content in contents)
    assert bound.count() == 5


def names_below(objects):
    folders = ("data", "_versions", "_transactions", "_deletions")
    named = {folder: objects.names(f"memories.lance/{folder}") for folder in folders}
    return [f"{folder}/{name}" for folder, names in named.items() for name in names]


def test_a_store_that_is_there_is_found_again(shards):
    assert make_shards(shards.root, HashEmbedder(), count=3) == shards
    assert open_shards(shards.root, HashEmbedder()) == shards


def test_another_number_of_shards_is_refused(shards):
    with pytest.raises(InvalidInput, match="the store there has 3"):
        make_shards(shards.root, HashEmbedder(), count=4)


def test_another_embedder_is_refused(shards):
    with pytest.raises(EmbedderMismatch, match="its vectors were made by"):
        open_shards(shards.root, HashEmbedder(dimension=16))


@pytest.mark.parametrize(
    "changed",
    [
        {"shards": 0},
        {"shards": 10**9},
        {"embedder": ["a"]},
        {"planned": {"shards": 2, "embedder": ["hash-embedder", "1", 32]}, "versions": [1]},
        {"planned": {"shards": 0, "embedder": ["hash-embedder", "1", 32]}, "versions": [1, 1, 1]},
    ],
)
def test_a_manifest_that_is_damaged_is_told_by_its_name(shards, changed):
    objects = Objects(shards.root)
    written = json.loads(objects.get(MANIFEST))
    objects.put(MANIFEST, json.dumps(written | changed).encode())
    with pytest.raises(StoreError, match=f"{MANIFEST}: is damaged"):
        open_shards(shards.root, HashEmbedder())


def test_what_is_no_state_of_the_manifest_is_passed_over(shards):
    Objects(shards.root).put("manifests/.nfs000000000001", b"")
    assert open_shards(shards.root, HashEmbedder()) == shards


def test_the_root_of_shards_opens_as_no_store_of_its_own(shards):
    with pytest.raises(StoreError, match="is a store of shards"):
        Memory(shards.root, embedder=HashEmbedder())


def test_no_shards_are_made_where_a_store_is(place):
    root = find_root(place)
    Memory(root, embedder=HashEmbedder()).close()
    with pytest.raises(StoreError, match="a store is there already"):
        make_shards(place, HashEmbedder(), count=3)


def test_a_place_without_shards_says_how_to_make_them(place):
    with pytest.raises(StoreError, match="no store of shards is there"):
        open_memory(place, embedder=HashEmbedder())


def test_looking_for_shards_makes_no_directory(tmp_path):
    pytest.importorskip("obstore", reason="needs the extra cluster")
    with pytest.raises(StoreError, match=f"^{tmp_path / 'mistyped'}: no store of shards is there"):
        open_memory(str(tmp_path / "mistyped"), embedder=HashEmbedder())
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.parametrize("uri", ["", "s3://", "ftp://host/memories"])
def test_an_address_that_names_no_place_is_refused(uri):
    pytest.importorskip("obstore", reason="needs the extra cluster")
    with pytest.raises(InvalidInput, match="names no place"):
        find_root(uri)


@pytest.mark.parametrize(
    "uri", ["s3://key:secret@bucket/memories", "s3://bucket/memories?secret=1"]
)
def test_a_key_in_an_address_is_refused_and_not_repeated(uri):
    pytest.importorskip("obstore", reason="needs the extra cluster")
    with pytest.raises(InvalidInput, match="holds a key") as refused:
        open_memory(uri, Scope(), embedder=HashEmbedder())
    assert "secret" not in str(refused.value)


class ForgetfulObjects(Objects):
    """Objects of a storage that overwrites whatever it is asked."""

    def put_new(self, name, content):
        self.put(name, content)
        return True


def test_object_storage_that_overwrites_is_refused(place):
    with pytest.raises(StoreError, match="overwrites an object"):
        ForgetfulObjects(find_root(place)).check_first_write_wins()


def test_a_write_and_a_search_in_memory_take_few_requests(object_storage, tmp_path, caplog):
    caplog.set_level("INFO", logger="werkzeug")
    root = f"s3://{BUCKET}/{tmp_path.name}"
    make_shards(root, HashEmbedder(), count=1)
    scope = Scope(org="acme", project="home")
    with open_memory(root, scope, embedder=HashEmbedder()) as memory:
        memory.add_many(said_in("home"))
        for _ in range(2):
            memory.add("one more")
            memory.search("where does Anna live?")
        caplog.clear()
        memory.add("the last")
        assert 0 < len(caplog.records) <= 8
        memory.search("where does Anna live?")
        caplog.clear()
        memory.search("where does Anna live?")
        assert caplog.records == []
