"""An export holds every field of every memory of its scope, and comes back as it was."""

import hashlib
import io
import json
import os
import stat
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekphory.errors import InvalidInput, ScopeError
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder
from ekphory.transfer import DamagedLine, decode_line, encode_line, memory_content, read_exported
from ekphory.types import MemoryRecord

SOON = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Opens handles of any scope on two stores, from which every test takes scopes of its own."""
    folder = tmp_path_factory.mktemp("shelf")
    handles = []

    def open_one(name, **scope):
        handles.append(Memory(folder / name, embedder=HashEmbedder(), **scope))
        return handles[-1]

    yield open_one
    for handle in handles:
        handle.close()


@pytest.fixture(scope="module")
def file(kitchen, tmp_path_factory):
    """An export of the kitchen: lines 2 and 3 without versions, the oven in 4, its two in 5, 6."""
    path = tmp_path_factory.mktemp("file") / "e.jsonl"
    kitchen.export(path)
    return path


_numbers = count()


@pytest.fixture
def project():
    """A project that no other test uses."""
    return f"project {next(_numbers)}"


@pytest.fixture(scope="module")
def kitchen(shelf):
    """Three memories, one of them changed twice."""
    memory = shelf("kitchen")
    memory.add("The oven is broken", id="oven", at="2026-03-01", metadata={"urgent": True})
    memory.add("Anna repaired the sink", producer="Ben", type="episodic", session="monday")
    memory.add("Knives are in the drawer", id="knives")
    memory.update("oven", text="The oven is being repaired")
    memory.update("oven", importance=0.9)
    return memory


def exported(memory, path):
    memory.export(path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def everything(memory):
    """All memories in the order of writing, each with its earlier versions."""
    listed = memory.list(limit=10**6, order="written")
    return [memory.history(record.id) for record in listed]


def importing(memory, path):
    report = import_path(memory, path, failures_path=path.with_name("failures.jsonl"))
    places = [failure.place for failure in report.examples]
    return (report.added, report.skipped, report.failed), places


def changed(path, edit):
    """Write the lines of a file that `edit` gives in place of its own."""
    other = path.with_name("changed.jsonl")
    other.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True))))
    return other


def replaced(number, old, new):
    def edit(lines):
        lines[number - 1] = lines[number - 1].replace(old, new)
        return lines

    return edit


def test_a_round_trip_gives_equal_records_with_their_history(kitchen, shelf, file, tmp_path):
    other = shelf("copy")
    assert importing(other, file) == ((3, 0, 0), [])
    assert everything(other) == everything(kitchen)
    assert other.export(tmp_path / "e.jsonl").sha256 == kitchen.export(file).sha256
    # Nor is it added twice by its content.
    assert other.add("Anna repaired the sink", producer="Ben", session="monday").added == 0
    assert other.search("Anna repaired the sink").hits[0].text == "Anna repaired the sink"


def test_importing_again_adds_nothing(kitchen, shelf, project, file):
    other = shelf("there", project=project)
    importing(other, file)
    other.update("knives", text="Knives are on the wall")
    # The memory that was changed is newer than the one of the file.
    assert importing(other, file) == ((0, 2, 0), [])
    assert other.get("knives").text == "Knives are on the wall"
    assert importing(kitchen, file) == ((0, 3, 0), [])


def test_two_sessions_that_use_one_id_come_back_as_they_were_however_often(
    shelf, project, tmp_path
):
    for session, text in (("s1", "One"), ("s2", "Two")):
        shelf("here", project=project, session=session).add(text, id="k")
    shelf("here", project=project, session="s1").update("k", importance=0.9)
    shelf("here", project=project).export(tmp_path / "e.jsonl")
    other = shelf("there", project=project)
    assert importing(other, tmp_path / "e.jsonl") == ((2, 0, 0), [])
    assert importing(other, tmp_path / "e.jsonl") == ((0, 2, 0), [])
    there = [shelf("there", project=project, session=session) for session in ("s1", "s2")]
    assert [[each.text for each in memory.history("k")] for memory in there] == [
        ["One", "One"],
        ["Two"],
    ]


def test_a_memory_that_was_changed_and_whose_id_two_sessions_use_is_refused_alone(
    shelf, project, tmp_path
):
    for session in ("s1", "s2"):
        shelf("here", project=project, session=session).add(session, id="k")
    memory = shelf("here", project=project)
    memory.export(tmp_path / "e.jsonl")
    shelf("here", project=project, session="s1").update("k", importance=0.9)
    assert importing(memory, tmp_path / "e.jsonl") == ((0, 1, 1), ["e.jsonl:2"])


def test_what_names_no_project_is_not_taken_back_into_default_beside_itself(tmp_path):
    folder = tmp_path / "memories"
    with Memory(folder, embedder=HashEmbedder()) as memory:
        memory.add("Anna repaired the sink", id="sink")
        memory.export(tmp_path / "e.jsonl")
    with Memory(folder, embedder=HashEmbedder(), project="default") as memory:
        assert importing(memory, tmp_path / "e.jsonl") == ((0, 1, 0), [])
        assert memory.get("sink").text == "Anna repaired the sink"


def test_a_record_of_default_changes_the_memory_that_names_no_project(tmp_path):
    folder, file = tmp_path / "memories", tmp_path / "notes.jsonl"
    with Memory(folder, embedder=HashEmbedder()) as memory:
        memory.add("Anna repairs the sink", id="sink", at="2026-03-01")
    file.write_text('{"id": "sink", "text": "Anna repaired the sink", "at": "2026-03-02"}\n')
    with Memory(folder, embedder=HashEmbedder(), project="default") as memory:
        assert import_path(memory, file).updated == 1
        assert memory.get("sink").text == "Anna repaired the sink"


def test_only_what_the_scope_itself_wrote_is_exported(shelf, project, tmp_path):
    mine = shelf("here", project=project, user="mara")
    mine.add("Mine", id="mine")
    shelf("here", project=project, user="ben").add("Of Ben", id="ben")
    shelf("here", project=project, user="ben").add("A rule", id="rule", pool="shared_rules")
    shelf("here", project=project + "x", user="mara").add("Elsewhere", id="elsewhere")
    assert mine.count() == 2
    assert [line.get("id") for line in exported(mine, tmp_path / "e.jsonl")[1:-1]] == ["mine"]


def test_what_has_expired_or_was_forgotten_is_left_out(shelf, project, tmp_path):
    memory = shelf("here", project=project)
    memory.add("Kept", id="kept", expires_at=SOON)
    memory.add("Forgotten", id="forgotten")
    memory.forget("forgotten")
    soon = datetime.now(UTC) + timedelta(seconds=0.1)
    memory.add("Expired", id="expired", expires_at=soon)
    while datetime.now(UTC) <= soon:
        pass
    report = memory.export(tmp_path / "e.jsonl")
    assert (report.memories, report.expired) == (1, 1)
    assert b"Forgotten" not in (tmp_path / "e.jsonl").read_bytes()


def test_what_expired_since_the_export_is_left_out(shelf, project, tmp_path):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    gone = MemoryRecord(id="gone", text="Gone", at=moment, created_at=moment, expires_at=moment)
    line = encode_line(memory_content(gone, None) | {"versions": 0})
    end = {"memories": 1, "versions": 0, "sha256": hashlib.sha256(line).hexdigest()}
    (tmp_path / "e.jsonl").write_bytes(
        encode_line({"ekphory_export": 1, "memories": 1})
        + line
        + encode_line({"ekphory_export_end": 1} | end)
    )
    report = import_path(shelf("there", project=project), tmp_path / "e.jsonl")
    assert (report.added, report.failed) == (0, 0)
    assert report.left_out == {"expired since the export": 1}


def test_an_empty_scope_gives_a_header_and_an_end(shelf, project, tmp_path):
    assert len(exported(shelf("here", project=project), tmp_path / "e.jsonl")) == 2
    assert importing(shelf("there", project=project), tmp_path / "e.jsonl") == ((0, 0, 0), [])


def test_the_lines_are_a_header_memories_before_their_versions_and_the_end(kitchen, tmp_path):
    # An export can go to a stream.
    stream = io.BytesIO()
    report = kitchen.export(stream)
    assert report.target is None
    assert report.bytes == len(stream.getvalue())
    assert kitchen.export(tmp_path / "e.jsonl").sha256 == report.sha256
    # The lines are a header then memories before their versions then the end.
    header, *memories, end = exported(kitchen, tmp_path / "e.jsonl")
    assert (header["ekphory_export"], header["memories"]) == (1, 3)
    assert header["scope"]["project"] is None
    assert [(line["text"], line.get("versions")) for line in memories] == [
        ("Anna repaired the sink", 0),
        ("Knives are in the drawer", 0),
        ("The oven is being repaired", 2),
        ("The oven is broken", None),
        ("The oven is being repaired", None),
    ]
    assert (end["ekphory_export_end"], end["memories"], end["versions"]) == (1, 3, 2)
    # Every field of a memory is in its line.
    line = exported(kitchen, tmp_path / "e.jsonl")[3]
    record = kitchen.get("oven")
    plain = json.loads(json.dumps(asdict(replace(record, predicted=())), default=str))
    assert {name: line[name] for name in plain if name not in ("at", "created_at")} == {
        name: value for name, value in plain.items() if name not in ("at", "created_at")
    }
    assert datetime.fromisoformat(line["at"]) == record.at
    assert datetime.fromisoformat(line["created_at"]) == record.created_at


def test_an_interrupted_export_leaves_the_earlier_file_and_nothing_else(kitchen, tmp_path):
    (tmp_path / "e.jsonl").write_text("earlier")

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kitchen.export(tmp_path / "e.jsonl", on_progress=interrupt)
    assert [entry.name for entry in tmp_path.iterdir()] == ["e.jsonl"]
    assert (tmp_path / "e.jsonl").read_text() == "earlier"


def test_an_export_interrupted_as_its_file_comes_to_be_leaves_nothing(
    kitchen, tmp_path, monkeypatch
):
    def interrupted_open(path, flags, mode):
        os.close(really_open(path, flags, mode))
        raise KeyboardInterrupt

    really_open = os.open
    monkeypatch.setattr("ekphory.transfer.os.open", interrupted_open)
    with pytest.raises(KeyboardInterrupt):
        kitchen.export(tmp_path / "e.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX rights")
def test_the_file_can_be_read_by_its_owner_alone(kitchen, tmp_path):
    kitchen.export(tmp_path / "e.jsonl")
    assert stat.S_IMODE((tmp_path / "e.jsonl").stat().st_mode) == 0o600


def test_a_target_that_is_a_folder_is_refused(kitchen, tmp_path):
    for target in (tmp_path, tmp_path / "nowhere" / "e.jsonl"):
        with pytest.raises(InvalidInput, match="not a file in an existing folder"):
            kitchen.export(target)


@pytest.mark.parametrize(
    ("edit", "counts", "places"),
    [
        # The oven lacks its versions, so it is not taken without them.
        (lambda lines: lines[:4], (2, 0, 2), [4, 4]),
        (lambda lines: [*lines[:2], lines[2][:40]], (1, 0, 2), [3, 3]),
        (replaced(2, b"Anna", b"Eva!"), (2, 0, 2), [2, 7]),
        (lambda lines: lines[:2] + lines[3:], (2, 0, 1), [6]),
        (replaced(6, b"oven", b"ovum"), (2, 0, 3), [6, 4, 7]),
        (lambda lines: [each.replace(b"\n", b"\r\n") for each in lines], (3, 0, 0), []),
    ],
    ids=["cut off", "line cut", "line edited", "line removed", "version damaged", "line ends"],
)
def test_what_is_damaged_is_reported_with_its_line_and_completed_later(
    file, shelf, project, edit, counts, places
):
    other = shelf("there", project=project)
    expected = [f"changed.jsonl:{number}" for number in places]
    assert importing(other, changed(file, edit)) == (counts, expected)
    assert importing(other, file) == ((3 - counts[0], counts[0], 0), [])
    assert len(other.history("oven")) == 3


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (
            replaced(1, b'"memories":3', b'"memories":4'),
            "the header is changed since it was written",
        ),
        (
            lambda lines: [encode_line({"ekphory_export": 2}), *lines[1:]],
            "reads exports of version 1",
        ),
    ],
)
def test_a_damaged_header_and_one_of_a_newer_ekphory_are_refused(
    file, shelf, project, edit, problem
):
    other = shelf("there", project=project)
    with pytest.raises(InvalidInput, match=problem):
        importing(other, changed(file, edit))
    assert other.count() == 0


def test_another_scope_than_the_bound_one_is_refused_at_once(shelf, project, tmp_path):
    memory = shelf("here", project=project)
    memory.add("Mine", id="mine")
    memory.export(tmp_path / "e.jsonl")
    with pytest.raises(ScopeError, match="no record fits the bound project='other'"):
        importing(shelf("there", project="other"), tmp_path / "e.jsonl")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": None}, "id"),
        ({"fingerprint": "') OR TRUE --"}, "fingerprint"),
        ({"superseded_by": "x"}, "superseded_by"),
        ({"versions": [{"id": "n~1", "text": "t", "created_at": "2026-01-01"}]}, "superseded_by"),
        ({"versions": ["x"]}, "versions"),
        ({"created_at": None}, "created_at"),
        ({"importance": 2}, "importance"),
        ({"owner": "me"}, "owner"),
    ],
)
def test_a_record_that_no_export_holds_is_refused_by_its_field(shelf, project, change, field):
    record = {"id": "n", "text": "t", "created_at": "2026-01-01", "versions": []}
    report = shelf("there", project=project).add_exported([record | change])
    assert (report.added, [failure.field for failure in report.failed]) == (0, [field])


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = texts.filter(lambda text: text.strip())
moments = st.datetimes(datetime(1, 1, 2), datetime(9998, 12, 30), timezones=st.just(UTC))
scalars = st.booleans() | texts | st.integers(-(2**53), 2**53) | st.floats(-1e300, 1e300)
fields = {
    "text": names,
    "at": moments,
    "producer": texts,
    "produced_for": texts,
    "role": texts,
    "session": st.none() | names,
    "sequence": st.none() | st.integers(-(2**61), 2**61),
    "pool": st.sampled_from(["agent_memory", "shared_rules", "täglich.1"]),
    "type": st.sampled_from(["episodic", "semantic", "procedural", "unknown"]),
    "importance": st.floats(0, 1),
    "predicted": st.lists(st.sampled_from(["type", "importance"]), unique=True),
    "expires_at": st.none() | st.just(SOON),
    "parent_id": st.none() | texts,
    "path": st.none() | texts,
    "heading": st.none() | texts,
    "lines": st.none() | texts,
    "source": st.none() | texts,
    "metadata": st.dictionaries(names.map("_{}".format), scalars, max_size=3),
}
records = st.fixed_dictionaries(fields, optional={"id": names})


@pytest.mark.slow
@settings(max_examples=30)
@given(given_records=st.lists(records, min_size=1, max_size=12), change=names)
def test_whatever_was_stored_comes_back_equal(shelf, tmp_path_factory, given_records, change):
    folder, project = tmp_path_factory.mktemp("any"), f"any {next(_numbers)}"
    memory, other = shelf("here", project=project), shelf("there", project=project)
    memory.add_many(given_records)
    memory.update(memory.list(limit=1)[0].id, text=change)
    memory.export(folder / "e.jsonl")
    assert importing(other, folder / "e.jsonl")[0] == (memory.count(), 0, 0)
    assert everything(other) == everything(memory)


whole = st.builds(
    MemoryRecord,
    id=names,
    created_at=moments,
    **{name: given for name, given in fields.items() if name != "predicted"},
    predicted=st.frozensets(st.sampled_from(["type", "importance"])),
    supersedes=st.none() | names,
)


@settings(max_examples=30)
@given(whole, st.none() | names)
def test_a_line_gives_its_content_back(record, fingerprint):
    content = memory_content(record, fingerprint)
    line = encode_line(content)
    assert line.count(b"\n") == 1
    assert decode_line(line) == content


@settings(max_examples=30)
@given(whole, st.data())
def test_a_line_with_any_byte_changed_is_noticed(record, data):
    line = bytearray(encode_line(memory_content(record, None)))
    place = data.draw(st.integers(0, len(line) - 2))
    line[place] ^= data.draw(st.integers(1, 127))
    with pytest.raises(DamagedLine):
        decode_line(bytes(line))


@pytest.fixture
def moved(open_memory):
    """A store in which one memory supersedes another, exported."""
    memory = open_memory(project="home")
    memory.add("I live in Rome", id="rome", at="2024-03-01")
    memory.add("I live in Bonn", id="bonn", at="2025-03-01")
    memory.add("I live in Lyon", id="lyon", at="2023-03-01")
    memory.supersede("rome", by="bonn")
    memory.unsupersede(revision=memory.supersede("lyon", by="rome").id)
    return memory


def exported_records(memory):
    stream = io.BytesIO()
    memory.export(stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()[1:-1]]


def test_decisions_are_exported_with_the_memory_that_was_written_later(moved):
    records = {each["id"]: each for each in exported_records(moved)}
    assert "revisions" not in records["rome"]
    (decided,) = records["bonn"]["revisions"]
    assert (decided["older"], decided["newer"], decided["state"]) == ("rome", "bonn", "active")
    assert (decided["decided_by"], decided["since"]) == ("caller", "2025-03-01T00:00:00+00:00")
    (undone,) = records["lyon"]["revisions"]
    assert (undone["older"], undone["newer"], undone["state"]) == ("lyon", "rome", "undone")


def test_decisions_are_taken_back_with_the_memories(moved, tmp_path):
    moved.export(tmp_path / "home.jsonl")
    with Memory(tmp_path / "other", project="home", embedder=HashEmbedder()) as other:
        import_path(other, tmp_path / "home.jsonl")
        (pair,) = other.revisions()
        assert (pair.older.text, pair.newer.text) == ("I live in Rome", "I live in Bonn")
        assert pair.revision.decided_by == "caller"
        assert other.unsupersede(revision=pair.revision.id) == 1
        # What was taken back before is known too, so that it is not decided again.
        states = [each.revision.state for each in other._engine.ledger.read().entries.values()]
        assert states == ["undone", "undone"]


def test_a_conflict_that_orders_hits_is_taken_back_as_one(moved, tmp_path):
    (entry,) = [
        each
        for each in moved._engine.ledger.read().entries.values()
        if each.revision.state == "active"
    ]
    doubtful = replace(entry, leans=True, revision=replace(entry.revision, state="conflict"))
    moved._engine.ledger.append([doubtful])
    moved.export(tmp_path / "home.jsonl")
    with Memory(tmp_path / "other", project="home", embedder=HashEmbedder()) as other:
        import_path(other, tmp_path / "home.jsonl")
        (pair,) = other.revisions()
        assert pair.revision.state == "conflict"
        entries = other._engine.ledger.read().entries.values()
        assert [each.orders for each in entries if each.revision.id == pair.revision.id] == [True]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "improves"}, "kind"),
        ({"leans": "a little"}, "leans"),
        ({"state": "sleeping"}, "state"),
        ({"older": 7}, "older"),
        ({"probability": "high"}, "probability"),
        ({"since": "soon"}, "since"),
    ],
)
def test_a_decision_that_is_none_is_refused_with_its_memory(moved, memory, change, field):
    records = {each["id"]: each for each in exported_records(moved)}
    bonn = records["bonn"] | {"versions": [], "project": None}
    bonn.pop("sum")
    bonn["revisions"] = [bonn["revisions"][0] | change]
    report = memory.add_exported([bonn])
    assert (report.added, len(report.failed)) == (0, 1)
    assert field in report.failed[0].field


def test_decisions_that_a_killed_import_did_not_note_are_noted_by_the_next_one(moved, tmp_path):
    records = [each | {"versions": []} for each in exported_records(moved)]
    for each in records:
        each.pop("sum")
    bare = [{key: value for key, value in each.items() if key != "revisions"} for each in records]
    with Memory(tmp_path / "other", project="home", embedder=HashEmbedder()) as other:
        assert other.add_exported(bare).added == 3
        assert other.revisions() == ()
        for _ in range(2):
            assert other.add_exported(records).skipped == 3
            assert len(other.revisions()) == 1


def test_a_memory_that_is_taken_back_has_its_decisions_whichever_of_the_two_it_is(moved):
    for name in ("rome", "bonn"):
        kept = read_exported(moved._engine, moved.scope, name)
        moved.forget(name)
        assert moved.revisions() == ()
        moved.add_exported([kept])
        assert len(moved.revisions()) == 1


@pytest.mark.slow
def test_a_memory_is_read_whole_beside_purges(memory, purging):
    memory.add("The oven is broken", id="oven")
    memory.update("oven", text="The oven works")
    with purging(memory):
        for _ in range(60):
            kept = read_exported(memory._engine, memory.scope, "oven")
            assert [each["text"] for each in (kept, *kept["versions"])] == [
                "The oven works",
                "The oven is broken",
            ]
