"""Importing into a store of shards, on all machines of a Ray cluster; an export, by this process.

Ray Data reads the files and embeds what is new on a pool of actors; an actor for some of the shards
writes it, the sole writer of each. What is written is acknowledged before its chunk counts as done,
and a record is known by its id or content: after any kill the same import goes on where it was.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import pickle
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, TypeVar

from ekphory import transfer, write
from ekphory.cluster.objects import LOCAL, Objects, find_root
from ekphory.cluster.ray_session import running_ray
from ekphory.cluster.shards import Shards, hold_shard, make_shards, open_shards
from ekphory.config import read_settings
from ekphory.documents.blocks import SkippedPart
from ekphory.engine import Engine
from ekphory.errors import InvalidInput, StoreError, StoreLocked
from ekphory.importers import report
from ekphory.importers.ekphory_export import read_export_lines
from ekphory.importers.source import (
    MAX_UNIT_BYTES,
    ImportedRecord,
    Readable,
    Unreadable,
    number_lines,
    parse_object,
    stream_opened_lines,
)
from ekphory.importers.text import read_json_line
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.loading import load_configured_embedder, load_embedder
from ekphory.scope import Scope
from ekphory.types import Failure, WriteReport, now_utc

CHUNK = 512
"""So many records are checked, embedded and written together."""
_LINES, _ROWS = (".jsonl", ".ndjson"), (".parquet",)
_PROCESSORS_A_WRITER = 4
_MOST_WRITERS = 16
_WRITTEN_AT_ONCE = 16
"""So many shards of one writer."""
_ATTEMPTS = 5
"""So often a write is tried while another process has the shard's lease."""

Line = tuple[str, bytes] | Unreadable
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOptions:
    """How an import is run.

    Attributes:
        store: URI of the store; made where there is none.
        shards: How many it must have; None for as many as it has.
        scope: Filled into every record.
        cpus: Processors of this machine to use; None for all, or for those of the cluster.
        failures: Where to list refused records; None for the folder `ekphory-failed`.
    """

    store: str
    shards: int | None = None
    scope: Scope = field(default_factory=Scope)
    cpus: int | None = None
    failures: Path | None = None


# Reading.


def find_files(uri: str) -> tuple[str, list[str]]:
    """Return the folder of what is imported, and the names of its files, in order.

    Raises:
        InvalidInput: There is none that can be read.
    """
    root = find_root(uri, field="path")
    known = (*_LINES, *_ROWS)
    place = root.removeprefix(LOCAL)
    is_local = root.startswith(LOCAL)
    if is_local and not Path(place).exists():
        raise InvalidInput("path", uri, "is not there", "Name a file or folder")
    if root.endswith(known) and not (is_local and Path(place).is_dir()):
        folder, _, name = root.rpartition("/")
        return folder, [name]
    is_file = is_local and Path(place).is_file()
    names = [] if is_file else [n for n in Objects(root).names() if n.endswith(known)]
    if not names:
        remedy = f"Give files whose names end in {', '.join(known)}"
        raise InvalidInput("path", uri, "holds nothing to import", remedy)
    return root, names


def read_chunks(folder: str, name: str) -> Iterator[list[Line]]:
    """Read a file in chunks of lines; a row of Parquet counts as the line of JSON that it is."""
    stream = Objects(folder).open(name)
    lines = _read_rows(stream, name) if name.endswith(_ROWS) else stream_opened_lines(stream, name)
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def _read_rows(stream: IO[bytes], name: str) -> Iterator[Line]:
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    number = 0
    try:
        for batch in parquet.ParquetFile(stream).iter_batches(CHUNK):
            for row in batch.to_pylist():
                number += 1
                yield f"{name}:{number}", json.dumps(_drop_missing(row), default=_to_text).encode()
    except (arrow.ArrowException, OSError) as error:
        message = f"cannot be read as Parquet after row {number} ({error}). Write it anew."
        yield Unreadable(name, "file", message)


def _drop_missing(value: object) -> object:
    """Leave out what a column of Parquet lacks in this row, in structs as well."""
    if not isinstance(value, dict):
        return value
    return {name: _drop_missing(each) for name, each in value.items() if each is not None}


def _to_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


# Checking and embedding, on each of a pool of actors.


class ChunkImporter:
    """Imports one chunk after another; its shards' writers write what it has embedded."""

    def __init__(
        self, root: str, scope: Scope, writers: list[Any], get: Callable[..., Any]
    ) -> None:
        """Load the embedder.

        Args:
            root: Of the store.
            scope: Filled into every record.
            writers: Handles on the actors that write.
            get: Waits for what they return.
        """
        self._embedder = load_chosen_embedder()
        self._shards = open_shards(root, self._embedder)
        self._scope, self._writers, self._get = scope, writers, get

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """Import the chunks of a batch, and tell what became of each."""
        chunks = map(pickle.loads, batch["chunk"])  # `_read_file` has pickled them
        return {"outcome": [json.dumps(self._import(chunk)) for chunk in chunks]}

    def _import(self, chunk: list[Line]) -> dict[str, Any]:
        drafts, refused = check_records(chunk, self._scope)
        wanted = [draft for draft in drafts if not draft.is_only_recalled]
        absent = self._ask("find_absent", self._split(wanted, lambda draft: draft))
        fresh = [draft for drafts in absent for draft in drafts]
        prepared = write.prepare(self._embedder, fresh)
        added = sum(self._ask("write", self._split(prepared, lambda each: each.draft)))
        refused_rows = [asdict(each) for each in refused]
        return {"added": added, "skipped": len(drafts) - added, "refused": refused_rows}

    def _split(
        self, items: list[Any], draft_of: Callable[[Any], write.Draft]
    ) -> dict[int, list[Any]]:
        by_shard: dict[int, list[Any]] = defaultdict(list)
        for item in items:
            record = draft_of(item).record
            by_shard[self._shards.find(record.org, record.project)].append(item)
        return by_shard

    def _ask(self, method: str, by_shard: dict[int, list[Any]]) -> list[Any]:
        """Ask the writer of each shard, all at once."""
        answers: list[Any] = self._get(
            [
                getattr(self._writers[shard % len(self._writers)], method).remote(shard, items)
                for shard, items in by_shard.items()
            ]
        )
        return answers


def check_records(
    chunk: list[Line], scope: Scope
) -> tuple[list[write.Draft], list[report.FailedRecord]]:
    """Check each line as `ekphory import` does; return what can be written, and what cannot."""
    refused: list[report.FailedRecord] = []
    records: list[ImportedRecord] = []
    for line in chunk:
        found = line if isinstance(line, Unreadable) else read_json_line(*line)
        if isinstance(found, Unreadable):
            refused.append(report.describe_unreadable(found))
        else:
            records.append(found)
    failed: list[Failure] = []
    make = partial(write.make_draft, scope=scope, now=now_utc())
    drafts = list(write.read_records((record.fields for record in records), make, failed))
    refused += [report.describe_failure(records[failure.index], failure) for failure in failed]
    return drafts, refused


def load_chosen_embedder() -> EmbeddingModel:
    """Load the embedder that the environment names, else the bundled one."""
    return load_configured_embedder(read_settings()) or load_embedder()


# Writing, on an actor for some of the shards.


class ShardWriter:
    """Writes the shards that it is asked for, and keeps each open. Safe for several threads.

    A commit waits for the object storage most of its time, so several shards are written at once.
    """

    def __init__(self, root: str) -> None:
        """Open the store."""
        # A later write through the server compares them with earlier memories.
        os.environ["EKPHORY_DETECT_CHANGES"] = "0"
        self._embedder = load_chosen_embedder()
        self._shards = open_shards(root, self._embedder)
        self._opened = ExitStack()
        self._engines: dict[int, Engine] = {}
        self._opening = [threading.Lock() for _ in range(self._shards.count)]

    def find_absent(self, shard: int, drafts: list[write.Draft]) -> list[write.Draft]:
        """Return those that are not stored yet, each once."""
        return write.without_present(self._engine(shard), Scope(), drafts)

    def write(self, shard: int, prepared: list[write.Prepared]) -> int:
        """Write memories; return how many were new, once they are durable."""
        engine = self._engine(shard)
        return _try(lambda: write.submit(engine, Scope(), prepared).result().added)

    def add_exported(
        self, shard: int, scope: Scope, records: list[dict[str, object]]
    ) -> WriteReport:
        """Write records of an export, as they were."""
        engine = self._engine(shard)
        return _try(lambda: transfer.add_exported(engine, scope, records))

    def close(self) -> None:
        """Release all leases."""
        self._opened.close()

    def _engine(self, shard: int) -> Engine:
        with self._opening[shard]:
            if shard not in self._engines:
                held = hold_shard(self._shards, shard, self._embedder)
                self._engines[shard] = self._opened.enter_context(held)
        return self._engines[shard]


def _try(do: Callable[[], Result]) -> Result:
    for _ in range(_ATTEMPTS - 1):
        # Its holder ends, or leaves it alone for some seconds.
        with suppress(StoreLocked):
            return do()
    return do()


# An export: this process writes it, since decisions on a memory come after the memory.


def _is_export(folder: str, name: str) -> bool:
    if not name.endswith(_LINES):
        return False
    first = parse_object(Objects(folder).open(name).readline(MAX_UNIT_BYTES)) or {}
    return transfer.HEADER_KEY in first


def _import_export(
    file: tuple[str, str], shards: Shards, scope: Scope, tally: report.Tally
) -> Iterator[None]:
    """Import what `ekphory export` wrote, chunk by chunk, with earlier versions and decisions."""
    folder, name = file
    lines = number_lines(Objects(folder).open(name))
    found = read_export_lines(name, lines)
    with closing(ShardWriter(shards.root)) as writer:
        while chunk := list(islice(found, CHUNK)):
            left = (each for each in chunk if isinstance(each, Unreadable | SkippedPart))
            for each in left:
                tally.pass_over(each)
            for shard, records in _by_shard(chunk, shards, scope).items():
                fields = [record.fields for record in records]
                tally.count(records, writer.add_exported(shard, scope, fields))
            yield


def _by_shard(
    chunk: list[Readable], shards: Shards, scope: Scope
) -> dict[int, list[ImportedRecord]]:
    by_shard: dict[int, list[ImportedRecord]] = defaultdict(list)
    for record in chunk:
        if isinstance(record, ImportedRecord):
            names = [getattr(scope, name) or record.fields.get(name) for name in ("org", "project")]
            # A value that cannot be a name is refused when it is written.
            texts = (name if isinstance(name, str) else None for name in names)
            by_shard[shards.find(*texts)].append(record)
    return by_shard


# The whole of it.


def import_in_bulk(
    uri: str, options: BulkOptions, *, on_progress: Callable[[report.ImportReport], None]
) -> report.ImportReport:
    """Import JSON Lines and Parquet into a store of shards.

    Args:
        uri: A file or folder, on this machine or on object storage.
        options: How.
        on_progress: Called with the report so far after every chunk.

    Raises:
        InvalidInput: There is nothing to import, or an option cannot be used.
        StoreError: The store cannot be used.
        MissingExtra: Ray is not installed.
    """
    folder, names = find_files(uri)
    shards = make_shards(options.store, load_chosen_embedder(), count=options.shards)
    source = Path(find_root(uri).removeprefix(LOCAL))
    exports = [name for name in names if _is_export(folder, name)]
    others = [name for name in names if name not in exports]
    with report.failures_file(source, options.failures) as failures:
        tally = report.Tally(failures)
        steps = [_import_export((folder, each), shards, options.scope, tally) for each in exports]
        if others:
            steps.append(_import_on_ray(uri, (folder, others), shards, options, tally))
        try:
            for _ in chain.from_iterable(steps):
                on_progress(tally.report())
        except KeyboardInterrupt as error:
            raise report.ImportInterrupted(tally.report()) from error
        return tally.report()


def _import_on_ray(
    uri: str,
    files: tuple[str, list[str]],
    shards: Shards,
    options: BulkOptions,
    tally: report.Tally,
) -> Iterator[None]:
    with running_ray(cpus=options.cpus) as ray:
        try:
            for outcome in _outcomes(ray, files, shards, options.scope):
                _count(outcome, tally)
                yield
        except ray.exceptions.RayError as error:
            # Of what a task raised; else of Ray itself.
            found = getattr(error, "cause", None) or error
            cause = (str(found).strip().splitlines() or [type(found).__name__])[0]
            raise StoreError(
                f"{uri}: the import stopped ({cause}). Run it again: what is there is skipped."
            ) from error


def _count(outcome: dict[str, Any], tally: report.Tally) -> None:
    tally.add(added=outcome["added"], skipped=outcome["skipped"])
    for refused in outcome["refused"]:
        tally.list(report.FailedRecord(**refused))


def _outcomes(
    ray: Any,  # noqa: ANN401  the module, which need not be installed
    files: tuple[str, list[str]],
    shards: Shards,
    scope: Scope,
) -> Iterator[dict[str, Any]]:
    data = importlib.import_module("ray.data")
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.raise_original_map_exception = True
    # A chunk goes on as soon as it is read, and counts as soon as it is done.
    context.target_min_block_size = 1
    context.target_max_block_size = 1
    logging.getLogger("ray.data").setLevel("CRITICAL")  # what fails is raised too
    cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
    options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
    actor = ray.remote(**options, max_concurrency=_WRITTEN_AT_ONCE)(ShardWriter)
    count = min(shards.count, _MOST_WRITERS, -(-cpus // _PROCESSORS_A_WRITER))
    writers = [actor.remote(shards.root) for _ in range(count)]
    folder, names = files
    read = data.from_items(
        [{"folder": folder, "name": name} for name in names], override_num_blocks=len(names)
    ).map_batches(_read_file, batch_size=1, num_cpus=0)
    outcomes = read.map_batches(
        ChunkImporter,
        batch_size=1,
        num_cpus=1,
        compute=data.ActorPoolStrategy(min_size=1, max_size=cpus),
        fn_constructor_args=(shards.root, scope, writers, ray.get),
    )
    for row in outcomes.iter_rows():
        yield json.loads(row["outcome"])
    ray.get([writer.close.remote() for writer in writers])


def _read_file(batch: dict[str, Any]) -> Iterator[dict[str, list[bytes]]]:
    for chunk in read_chunks(str(batch["folder"][0]), str(batch["name"][0])):
        yield {"chunk": [pickle.dumps(chunk)]}
