"""Importing on Ray: whole, once, and further after a kill."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cluster.conftest import NEEDED
from tests.models.embedding_service import running_embeddings

from ekphory.cluster.bulk import check_records, find_files, load_chosen_embedder, read_chunks
from ekphory.cluster.objects import LOCAL
from ekphory.cluster.shards import make_shards, open_memory
from ekphory.errors import InvalidInput
from ekphory.models.loading import load_embedder
from ekphory.scope import Scope

pytestmark = pytest.mark.long

STARTS = 540
"""Seconds that Ray may take to start, import and end on a busy machine."""


def command(source, store, *options):
    return [
        *(sys.executable, "-m", "ekphory", "cluster", "import", str(source)),
        *("--store", str(store), "--cpus", "2", "--json", *options),
    ]


def imported(source, store, *options):
    """Run the command, and return its exit code and report; on a busy machine Ray may not start."""
    for _ in range(3):
        run = subprocess.run(
            command(source, store, *options), capture_output=True, text=True, timeout=STARTS
        )
        assert run.stdout, run.stderr
        report = json.loads(run.stdout)
        if "added" in report:
            break
    return run.returncode, report


def write_lines(path, records):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def said(count, *, first=0):
    return [
        {"id": f"m{n}", "text": f"note {n} about topic {n % 7}", "org": "acme",
         "project": f"p{n % 5}"}
        for n in range(first, first + count)
    ]  # fmt: skip


def read_all(store, close_at_end):
    memory = close_at_end(open_memory(str(store), embedder=load_embedder(None)))
    return sorted(record.id for record in memory.list(limit=10_000))


@pytest.mark.timeout(3 * STARTS)
def test_an_import_adds_what_is_missing_and_lists_what_it_refuses(tmp_path, place, close_at_end):
    pytest.importorskip("ray", reason=NEEDED)
    folder = tmp_path / "said"
    write_lines(folder / "a.jsonl", [*said(40), {"text": "x", "nosuch": 1}])
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    rows = [{**record, "at": moment, "producer": None} for record in said(30, first=30)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "b.parquet")

    code, report = imported(folder, place, "--shards", "3")
    assert (code, report["added"], report["skipped"], report["failed"]) == (1, 60, 10, 1)
    assert report["examples"][0]["place"] == "a.jsonl:41"
    listed = (tmp_path / "ekphory-failed" / "said.jsonl").read_text()
    assert json.loads(listed)["field"] == "nosuch"
    assert read_all(place, close_at_end) == sorted(f"m{n}" for n in range(60))

    (folder / "a.jsonl").unlink()
    code, report = imported(folder, place)
    assert (code, report["added"], report["skipped"], report["failed"]) == (0, 0, 30, 0)


@pytest.mark.timeout(3 * STARTS)
def test_an_import_that_was_killed_goes_on_and_doubles_nothing(tmp_path, close_at_end):
    pytest.importorskip("ray", reason=NEEDED)
    source, store = write_lines(tmp_path / "in" / "many.jsonl", said(3_000)), tmp_path / "cluster"
    started = subprocess.Popen(
        command(source, store), stdout=subprocess.DEVNULL, start_new_session=True
    )
    wait_for_some(store, started)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    _, report = imported(source, store)
    assert report["added"] < 3_000
    assert report["added"] + report["skipped"] == 3_000
    assert read_all(store, close_at_end) == sorted(f"m{n}" for n in range(3_000))


@pytest.mark.timeout(2 * STARTS)
def test_an_import_that_cannot_write_says_why(tmp_path):
    pytest.importorskip("ray", reason=NEEDED)
    source, store = write_lines(tmp_path / "in" / "one.jsonl", said(1)), tmp_path / "cluster"
    make_shards(str(store), load_embedder(None), count=1).lease(0).seal()
    run = subprocess.run(command(source, store), capture_output=True, text=True, check=False)
    report = json.loads(run.stdout)
    assert "Traceback" not in run.stderr
    assert "the import stopped (leases/shard-00000: its memories were moved" in str(report["error"])


def wait_for_some(store, started):
    """Wait until a write of the import is durable."""
    embedder = load_embedder(None)
    while started.poll() is None:
        if (store / "ekphory-cluster.json").exists():
            with closing(open_memory(str(store), embedder=embedder)) as memory:
                if memory.count():
                    return
    raise AssertionError(f"the import ended with {started.returncode} before it wrote")


def test_an_import_embeds_with_the_prefix_that_the_environment_names(monkeypatch):
    with running_embeddings() as service:
        monkeypatch.setenv("EKPHORY_EMBEDDER", f"{service.host}/v1/embeddings")
        monkeypatch.setenv("EKPHORY_EMBEDDER_MODEL", "tiny")
        monkeypatch.setenv("EKPHORY_EMBEDDER_PASSAGE_PREFIX", "passage: ")
        load_chosen_embedder().encode(["Mara keeps bees"])
        assert service.bodies[-1]["input"] == ["passage: Mara keeps bees"]


def test_a_row_of_parquet_is_read_as_the_line_that_it_is(tmp_path):
    pytest.importorskip("obstore", reason=NEEDED)
    row = {"text": "said", "at": datetime(2026, 5, 1, tzinfo=UTC), "metadata": {"a": 1, "b": None}}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "one.parquet")
    (chunk,) = read_chunks(*find_parts(tmp_path / "one.parquet"))
    (draft,), refused = check_records(chunk, Scope(project="home"))
    assert refused == []
    assert (draft.record.text, draft.record.project) == ("said", "home")
    assert draft.record.at == datetime(2026, 5, 1, tzinfo=UTC)
    assert dict(draft.record.metadata) == {"a": 1}


@pytest.mark.parametrize(
    ("kept", "found"), [(slice(0), "after row 0"), (slice(-200, None), "after row 0")]
)
def test_a_file_of_parquet_that_is_damaged_is_refused_by_its_name(tmp_path, kept, found):
    pytest.importorskip("obstore", reason=NEEDED)
    path = tmp_path / "one.parquet"
    pq.write_table(pa.Table.from_pylist(said(40)), path)
    path.write_bytes(path.read_bytes()[kept])
    ((refused,),) = read_chunks(*find_parts(path))
    assert (refused.place, refused.field) == ("one.parquet", "file")
    assert f"cannot be read as Parquet {found}" in refused.message


def find_parts(path):
    folder, (name,) = find_files(str(path))
    return folder, name


def test_files_are_read_in_chunks_with_their_places(tmp_path):
    pytest.importorskip("obstore", reason=NEEDED)
    path = write_lines(tmp_path / "in" / "two.jsonl", said(600))
    chunks = list(read_chunks(*find_parts(path)))
    assert [len(chunk) for chunk in chunks] == [512, 88]
    assert chunks[1][0][0] == "two.jsonl:513"


def test_a_folder_is_read_with_all_folders_in_it(tmp_path):
    pytest.importorskip("obstore", reason=NEEDED)
    write_lines(tmp_path / "in" / "b.jsonl", said(1))
    write_lines(tmp_path / "in" / "deep" / "a.ndjson", said(1))
    (tmp_path / "in" / "notes.txt").write_text("not read")
    folder, names = find_files(str(tmp_path / "in"))
    assert (folder, names) == (f"{LOCAL}{tmp_path / 'in'}", ["b.jsonl", "deep/a.ndjson"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere", "is not there"),
        ("empty", "holds nothing to import"),
        ("list.json", "holds nothing to import"),
    ],
)
def test_a_place_without_files_is_refused(tmp_path, name, problem):
    pytest.importorskip("obstore", reason=NEEDED)
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(InvalidInput, match=problem):
        find_files(str(tmp_path / name))
