"""Import of documents: a folder or a file, once, or again whenever it changes."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from ekphory.documents import tree
from ekphory.documents.blocks import (
    NOTHING_EXCLUDED,
    Exclusion,
    NoteFacts,
    Problem,
    SkippedPart,
    Unit,
    format_place,
    parent_id,
)
from ekphory.documents.notes import JOINER, REFERENCES, NoteText, find_date, join, make_heading
from ekphory.documents.passages import Passage, read_document
from ekphory.documents.settings import PageReader, ReadingSettings, find_page_reader
from ekphory.errors import InvalidInput, MissingExtra, ScopeError
from ekphory.filters.tree import And, Comparison, Contains, Field, In
from ekphory.importers.report import ImportInterrupted, ImportReport, Tally, failures_file
from ekphory.importers.source import ImportedRecord, Unreadable
from ekphory.scope import SCOPE_FIELDS, Scope, owned_in_any_session
from ekphory.types import Scalar, is_storable, now_utc
from ekphory.write import make_draft

if TYPE_CHECKING:
    from ekphory.memory import Memory

SOURCE = "document"
DIGEST = "digest"
"""Metadata of every passage: a digest of its file and of how it was read."""
LAST = "last"
"""Metadata of the last passage of a document that was read without a problem, as it still is."""
_READ_BYTES = 2**20
_OUR_KEYS = (*SCOPE_FIELDS, DIGEST, LAST, REFERENCES)


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """A document that is being imported.

    Attributes:
        file: Where it lies.
        reader: What reads it.
        session: What names it among all documents of a store.
        pool: Where its passages go.
    """

    file: tree.DocumentFile
    reader: tree.Reader
    session: str
    pool: str


def compute_digest(document: ImportedDocument, settings: ReadingSettings) -> str:
    """Compute a digest of what the file holds and of all that decides what becomes of it.

    Raises:
        OSError: The file cannot be read.
    """
    page_reader = "" if settings.page_reader is None else settings.page_reader.name
    encoding = settings.encoding or ""
    way = (str(document.reader.version), document.file.name, document.pool, encoding, page_reader)
    digest = hashlib.sha256("\0".join(way).encode("utf-8", "surrogatepass"))
    with document.file.path.open("rb") as stream:
        while piece := stream.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()[:32]


def read_records(
    document: ImportedDocument, settings: ReadingSettings, digest: str
) -> Iterator[ImportedRecord | SkippedPart | Unreadable]:
    """Read a document into records, in order.

    The id of a record is made of all that it says and where it says it. So a passage that moved
    within its document is written anew, and its lines are always right.

    Raises:
        MissingExtra: `[docs]` is not installed.
        OSError: The file cannot be read, or is gone at the end.
    """
    changed = _read_change_time(document.file.path)
    held: tuple[Passage, int] | None = None
    note, count, sound = NoteFacts(), 0, True
    for found in read_document(document.file.path, document.reader, settings):
        if isinstance(found, Passage):
            if held is not None:
                yield _make_record(document, note, held, {DIGEST: digest}, changed)
            held = found, count
            count += 1
        elif isinstance(found, NoteFacts):
            note = found
        elif isinstance(found, Problem):
            sound = False
            yield describe_problem(document.file.name, found, document.reader.unit)
        else:
            yield found.locate(document.file.name)
    if held is not None:
        # Of a file that was changed meanwhile, and back, the digest would say that all is there.
        is_whole = sound and compute_digest(document, settings) == digest
        marks: dict[str, Scalar] = {DIGEST: digest} | ({LAST: True} if is_whole else {})
        yield _make_record(document, note, held, marks, changed)


def _make_record(
    document: ImportedDocument,
    note: NoteFacts,
    numbered: tuple[Passage, int],
    marks: dict[str, Scalar],
    changed: datetime | None,
) -> ImportedRecord:
    passage, sequence = numbered
    lines = format_place(passage.first, passage.last, document.reader.unit)
    heading = " > ".join(passage.section.headings) or None
    if document.reader.name == tree.MARKDOWN:
        heading = make_heading(passage.section, name=document.file.name, note=note)
    fields: dict[str, object] = {
        "text": passage.text,
        "path": document.file.name,
        "heading": heading,
        "lines": lines,
        "session": document.session,
        "sequence": sequence,
        "parent_id": parent_id(document.session, passage.section),
        "pool": document.pool,
        "source": SOURCE,
        # What a document states does not fade, whenever its file was last touched.
        "type": "semantic",
    }
    date, told = find_date(document.file.name, note.dates), gather_metadata(note, passage)
    noted = told if date is None else {**told, "at": date.isoformat()}
    identity = "\0".join(f"{name}={value}" for name, value in (*fields.items(), *noted.items()))
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    fields |= {"id": f"document:{digest}", "at": date or changed, "metadata": told | marks}
    return ImportedRecord(fields, f"{document.file.name} ({lines})")


def gather_metadata(note: NoteFacts, passage: Passage | NoteText) -> dict[str, Scalar]:
    """Return what a note says of itself, and the links and tags in a piece of it."""
    told = {f"note_{key}" if key in _OUR_KEYS else key: v for key, v in note.metadata.items()}
    if tags := join((*str(told.get("tags", "")).split(JOINER), *passage.tags)):
        told["tags"] = tags
    if references := join((*note.references, *passage.references)):
        told[REFERENCES] = references
    return told


def describe_problem(name: str, problem: Problem, unit: Unit) -> Unreadable:
    """Report what cannot be read of a document: all of it, or a place that its unit counts."""
    position = problem.position
    if position is None:
        return Unreadable(name, "file", problem.message)
    return Unreadable(f"{name} ({format_place(position, position, unit)})", unit, problem.message)


def _read_change_time(path: Path) -> datetime | None:
    """Return when the file was last changed; None where its clock is beyond what can be stored."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    except (OSError, OverflowError, ValueError):
        return None


_DOCUMENTS_A_QUERY = 100
_PASSAGES_A_WRITE = 256
_IDS_A_QUERY = 500
_ROWS_A_PAGE = 10_000
_ALL = 2**31 - 1


@dataclass(slots=True)
class _Known:
    """What a memory holds of one document."""

    ids: set[str] = field(default_factory=set)
    digests: set[object] = field(default_factory=set)
    is_whole: bool = False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # It may be there, behind a folder that cannot be looked into.
        return True


def _holds_document(path: Path) -> bool:
    """Whether a document may be there; a folder that is called like one is none."""
    try:
        is_folder = tree.find_reader(path) is not None and path.is_dir()
    except OSError:
        is_folder = False
    return _exists(path) and not is_folder


_NOTES = frozenset({".md", ".markdown", ".txt", ".rst"})


def _pool_by_name(name: str) -> str | None:
    """Return the pool that the path of a note names, as Memory-Spark reads it; else None.

    Rules enter every later prompt, so no file's name makes one.
    """
    path = PurePosixPath(name.lower())
    if path.suffix not in _NOTES:
        return None
    if "mistakes" in (path.stem, *path.parent.parts):
        return "agent_mistakes"
    return "agent_tools" if path.stem == "tools" or path.stem.startswith("tools-") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """What an import of documents does beyond reading them.

    Attributes:
        pool: Where the passages go; None for `agent_mistakes` with notes named `mistakes` or in
            a folder of that name, `agent_tools` with notes named `tools` or `tools-…`,
            `reference_code` with source code, and `reference_library` with all else, code in a
            document too.
        name: What names the documents in the store; None for the path of their folder. With a
            name of their own they stay the same when the folder is moved, or on another machine.
        gone: What becomes of documents that were imported and are no longer there.
        encoding: Of text files that are neither UTF-8 nor carry a byte order mark; None refuses
            them.
        page_reader: Reads pages that are pictures; None leaves them out.
        exclude: Files and folders below the folder that are passed over. Documents that were
            imported before stay, also where `gone` is `forget`: they are there.
    """

    pool: str | None = None
    name: str | None = None
    gone: Literal["keep", "forget"] = "keep"
    encoding: str | None = None
    page_reader: PageReader | None = field(default_factory=find_page_reader)
    exclude: Exclusion = NOTHING_EXCLUDED


@dataclass(frozen=True, slots=True)
class DocumentProgress:
    """How far an import is: so many of so many documents, and what became of them."""

    done: int
    total: int
    report: ImportReport


OnProgress = Callable[[DocumentProgress], None]


def import_documents(
    memory: Memory,
    path: Path | str,
    *,
    options: DocumentOptions | None = None,
    failures_path: Path | None = None,
    on_progress: OnProgress | None = None,
) -> ImportReport:
    """Import a document, or all documents below a folder.

    Run again it adds what is new and forgets what a changed document no longer holds; what has not
    changed stays as it is. What is new is durable before anything old is forgotten, so that it may
    be stopped at any moment.

    Args:
        memory: Where to write.
        path: A document, or a folder.
        options: What else to do; None for `DocumentOptions()`.
        failures_path: Where to list what failed; None for `<input>.failed.jsonl` beside the input.
        on_progress: Called before every document, and once more when all is written.

    Raises:
        InvalidInput: The path is missing, or an option cannot be used.
        ScopeError: The memory is bound to a session; each document is one of its own.
        ImportInterrupted: Ctrl-C was pressed.
    """
    root = Path(path).resolve()
    with failures_file(root, failures_path) as failures:
        return _Import(memory, root, options, Tally(failures), on_progress).run()


def watch_documents(
    memory: Memory,
    path: Path | str,
    *,
    options: DocumentOptions | None = None,
    failures_path: Path | None = None,
    on_progress: OnProgress | None = None,
    stopped: Callable[[], bool] | None = None,
) -> ImportReport:
    """Import documents, and again whenever one changes, until Ctrl-C.

    While the folder itself is missing nothing is forgotten; once it is there again, all of it is
    imported.

    Args, errors: as `import_documents`; and
        stopped: Asked about twice a second; ends the watch like Ctrl-C.

    Returns:
        What was done in all.

    Raises:
        ImportInterrupted: Ctrl-C was pressed while documents were being read.
    """
    root = Path(path).resolve()
    with (
        failures_file(root, failures_path) as failures,
        closing(tree.watch_changes(root, stopped=stopped)) as rounds,
    ):
        tally = Tally(failures)
        run = _Import(memory, root, options, tally, on_progress)
        try:
            # The watch begins before the first import, so that no change falls between.
            next(rounds)
            run.run()
            for changed in rounds:
                run.follow(changed)
        except ImportInterrupted:
            raise
        except KeyboardInterrupt:
            # Between two imports it ends the watch.
            return tally.report()
        return tally.report()


class _Import:
    """One import of a root, which may be repeated for parts of it."""

    def __init__(
        self,
        memory: Memory,
        root: Path,
        options: DocumentOptions | None,
        tally: Tally,
        on_progress: OnProgress | None,
    ) -> None:
        options = options or DocumentOptions()
        _check(memory.scope, options)
        if not root.exists():
            raise InvalidInput("path", str(root), "no such file or folder", "Check the path.")
        self._memory = memory
        self._root = root
        self._folder = root if root.is_dir() else root.parent
        self._options = options
        self._tally = tally
        self._on_progress = on_progress or (lambda _: None)
        self._name = options.name or self._folder.as_posix().rstrip("/")
        self._settings = ReadingSettings(encoding=options.encoding, page_reader=options.page_reader)
        self._waiting: list[ImportedRecord] = []
        self._outdated: dict[str, list[str]] = {}
        self._refused: set[object] = set()
        # A wider handle sees the documents of narrower ones, and all see those of their project,
        # but each replaces alone what a handle of exactly its scope has written.
        written_here = owned_in_any_session(memory.scope)
        self._mine = And((written_here, Comparison(Field("source"), "eq", SOURCE)))

    def run(self) -> ImportReport:
        """Import all of it."""
        if not _exists(self._folder):
            message = "the folder is gone. What was imported from it stays until it is there again."
            self._tally.pass_over(Unreadable(self._folder.as_posix(), "folder", message))
            return self._import_files([], [])
        place = "" if self._folder == self._root else self._root.name
        return self._import_files(self._find_all(), [place])

    def follow(self, changed: set[Path]) -> None:
        """Import what changed at these paths."""
        if self._folder in changed:
            self._tally.retract(self._folder.as_posix())
            self.run()
            return
        files = {file.path: file for path in sorted(changed) for file in self._find_below(path)}
        places = filter(self._has_gone, sorted(changed))
        gone = [path.relative_to(self._folder).as_posix() for path in places]
        for path in changed:
            self._tally.retract(path.relative_to(self._folder).as_posix())
        if files or gone:
            self._import_files(list(files.values()), gone)

    def _import_files(self, files: list[tree.DocumentFile], places: list[str]) -> ImportReport:
        """Import these, and look at these places for documents that are gone."""
        try:
            self._update(files)
            for place in places if self._options.gone == "forget" else ():
                self._forget_gone(place)
        except KeyboardInterrupt as error:
            raise ImportInterrupted(self._tally.report()) from error
        report = self._tally.report()
        self._on_progress(DocumentProgress(len(files), len(files), report))
        return report

    def _has_gone(self, path: Path) -> bool:
        """Whether what may have held documents is no longer there; a root folder never counts."""
        if _holds_document(path):
            return False
        if self._options.gone == "keep" or self._folder not in path.parents:
            return False
        if self._root != self._folder:
            return path == self._root
        return not any(part.startswith(".") for part in path.relative_to(self._root).parts)

    def _update(self, files: list[tree.DocumentFile]) -> None:
        """Import what is new in these documents, and forget what they no longer hold.

        A document that cannot be read to its end loses nothing.
        """
        remaining, done = iter(files), 0
        while batch := list(islice(remaining, _DOCUMENTS_A_QUERY)):
            documents = [document for file in batch if (document := self._make_document(file))]
            known = self._find_known([document.session for document in documents])
            for document in documents:
                self._read(document, known[document.session])
                self._on_progress(DocumentProgress(done, len(files), self._tally.report()))
                done += 1
        self._write()

    def _make_document(self, file: tree.DocumentFile) -> ImportedDocument | None:
        reader = tree.find_reader(file.path)
        if reader is None:
            return None
        if not is_storable(file.name):
            message = "its name is not UTF-8. Rename it."
            self._tally.pass_over(Unreadable(repr(file.name), "file", message))
            return None
        pool = self._options.pool or _pool_by_name(file.name) or reader.pool
        return ImportedDocument(file, reader, f"{self._name}/{file.name}", pool)

    def _find_known(self, sessions: Sequence[str]) -> defaultdict[str, _Known]:
        which = And((self._mine, In(Field("session"), tuple(sessions))))
        known = defaultdict[str, _Known](_Known)
        for record in self._memory.list(filter=which, limit=_ALL, order="written"):
            document = known[record.session or ""]
            document.ids.add(record.id)
            document.digests.add(record.metadata.get(DIGEST))
            document.is_whole |= record.metadata.get(LAST) is True
        return known

    def _read(self, document: ImportedDocument, known: _Known) -> None:
        ids: set[str] = set()
        failures: list[Unreadable] = []
        try:
            digest = compute_digest(document, self._settings)
            if known.is_whole and known.digests == {digest}:
                self._tally.add(skipped=len(known.ids))
                return
            for found in read_records(document, self._settings, digest):
                if isinstance(found, ImportedRecord):
                    ids.add(self._take(found, known))
                else:
                    failures += [found] if isinstance(found, Unreadable) else []
                    self._tally.pass_over(found)
        except (MissingExtra, OSError) as error:
            message = str(error)
            if isinstance(error, OSError):
                message = f"{error.strerror or error}. Check that it exists and may be read."
            failures.append(Unreadable(document.file.name, "file", message))
            self._tally.pass_over(failures[-1])
        if not failures:
            self._outdated[document.session] = sorted(known.ids - ids)

    def _take(self, record: ImportedRecord, known: _Known) -> str:
        memory_id = str(record.fields["id"])
        if memory_id in known.ids:
            self._tally.add(skipped=1)
        else:
            self._waiting.append(record)
            if len(self._waiting) == _PASSAGES_A_WRITE:
                self._write()
        return memory_id

    def _write(self) -> None:
        """Write what waits; only then forget what it replaces."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            report = self._memory.add_many([record.fields for record in waiting])
            self._tally.count(waiting, report)
            self._refused |= {waiting[one.index].fields["session"] for one in report.failed}
        sound = (ids for session, ids in self._outdated.items() if session not in self._refused)
        outdated, self._outdated = [memory_id for ids in sound for memory_id in ids], {}
        self._forget("id", outdated)

    def _forget(self, field_name: str, values: list[str]) -> None:
        """Forget the passages whose field has one of these values."""
        for start in range(0, len(values), _IDS_A_QUERY):
            some = tuple(values[start : start + _IDS_A_QUERY])
            which = And((self._mine, In(Field(field_name), some)))
            self._tally.add(forgotten=self._memory.forget(filter=which))

    def _forget_gone(self, below: str) -> None:
        """Forget the documents at this path, or below it, that are no longer there.

        Where the whole folder is missing, as a drive that is not mounted, they all stay.
        """
        if not self._folder.is_dir():
            return
        paths = {session: session[len(self._name) + 1 :] for session in self._list_sessions(below)}
        places = {session: self._folder / path for session, path in paths.items()}
        gone = [session for session, place in places.items() if not _holds_document(place)]
        self._forget("session", gone)

    def _list_sessions(self, below: str) -> list[str]:
        """Return the names of the documents that the memory holds at this path or below it."""
        prefix = f"{self._name}/{below}"
        which = And((self._mine, Contains(Field("session"), prefix)))
        sessions: dict[str, None] = {}
        for offset in range(0, _ALL, _ROWS_A_PAGE):
            limits = {"limit": _ROWS_A_PAGE, "offset": offset}
            page = self._memory.list(filter=which, order="written", **limits)
            sessions |= dict.fromkeys(record.session or "" for record in page)
            if len(page) < _ROWS_A_PAGE:
                break
        whole = prefix.rstrip("/")
        return [name for name in sessions if name == whole or name.startswith(f"{whole}/")]

    def _find_all(self) -> list[tree.DocumentFile]:
        files: list[tree.DocumentFile] = []
        for found in tree.find_documents(self._root, exclude=self._options.exclude):
            if isinstance(found, tree.DocumentFile):
                files.append(found)
            elif isinstance(found, SkippedPart):
                self._tally.pass_over(found)
            else:
                place, problem = found
                self._tally.pass_over(Unreadable(place, "folder", problem.message))
        return files

    def _find_below(self, path: Path) -> list[tree.DocumentFile]:
        """Return the documents at a path that changed: one, or those of a folder that is new."""
        paths = [path]
        if path.is_dir() and not path.is_symlink() and path != self._root:
            inside = tree.find_documents(path)
            paths = [file.path for file in inside if isinstance(file, tree.DocumentFile)]
        exclude = self._options.exclude
        found = (tree.find_document(self._root, each, exclude=exclude) for each in paths)
        return list(filter(None, found))


def _check(scope: Scope, options: DocumentOptions) -> None:
    if scope.session is not None:
        problem = "each document is a session of its own, so none may be bound"
        remedy = "Leave --session and EKPHORY_SESSION out"
        raise ScopeError("session", scope.session, problem, remedy)
    if options.name is not None and not options.name.strip():
        raise InvalidInput("name", options.name, "is empty", "Give the collection's name")
    # What every passage will hold is checked once, before anything is read.
    sample = {"text": "-", "pool": options.pool, "session": options.name}
    make_draft(sample, scope=scope, now=now_utc())
