"""Import of documents: a folder or a file, once, or again whenever it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ekphory.documents.blocks import LeftOut
from ekphory.documents.exclusion import NOTHING_EXCLUDED, Exclusion
from ekphory.documents.page_reader import PageReader, find_page_reader
from ekphory.documents.readers import reader_for
from ekphory.documents.settings import ReadingSettings
from ekphory.documents.tree import DocumentFile, document_at, documents_below
from ekphory.documents.watching import changes_below
from ekphory.errors import InvalidInput, MissingExtra, ScopeError
from ekphory.importers.document_sync import Collection, DocumentMemory, DocumentSync
from ekphory.importers.failures import failures_file
from ekphory.importers.record import Unreadable
from ekphory.importers.report import ImportInterrupted, ImportReport, Tally
from ekphory.moments import now_utc
from ekphory.records import draft
from ekphory.scope import Scope

DOCUMENT_POOL = "reference_library"
"""What a whole project looks things up in; code in a document stays with the text around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """What an import of documents does beyond reading them.

    Attributes:
        pool: Where the passages go.
        name: What names the documents in the store; None for the path of their folder. With a
            name of their own they stay the same when the folder is moved, or on another machine.
        gone: What becomes of documents that were imported and are no longer there.
        encoding: Of text files that are neither UTF-8 nor carry a byte order mark; None refuses
            them.
        page_reader: Reads pages that are pictures; None leaves them out.
        exclude: Files and folders below the folder that are passed over. Documents that were
            imported before stay, also where `gone` is `forget`: they are there.
    """

    pool: str = DOCUMENT_POOL
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
    memory: DocumentMemory,
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
        InvalidInput: An option cannot be used.
        ScopeError: The memory is bound to a session; each document is one of its own.
        MissingExtra: None of the documents can be read without `[docs]`.
        ImportInterrupted: Ctrl-C was pressed.
    """
    chosen = options or DocumentOptions()
    root = Path(path).resolve()
    with failures_file(root, failures_path) as failures:
        return _Import(memory, root, chosen, Tally(failures), on_progress or _ignore).run()


def watch_documents(
    memory: DocumentMemory,
    path: Path | str,
    *,
    options: DocumentOptions | None = None,
    failures_path: Path | None = None,
    on_progress: OnProgress | None = None,
    stopped: Callable[[], bool] | None = None,
) -> ImportReport:
    """Import documents, and again whenever one changes, until Ctrl-C.

    Args, errors: as `import_documents`; and
        stopped: Asked about twice a second; ends the watch like Ctrl-C.

    Returns:
        What was done in all.

    Raises:
        ImportInterrupted: Ctrl-C was pressed while documents were being read.
    """
    chosen = options or DocumentOptions()
    root = Path(path).resolve()
    with failures_file(root, failures_path) as failures:
        tally = Tally(failures)
        run = _Import(memory, root, chosen, tally, on_progress or _ignore)
        with closing(changes_below(root, stopped=stopped)) as rounds:
            _follow(run, rounds)
        return tally.report()


def _follow(run: _Import, rounds: Iterator[set[Path]]) -> None:
    """Import at once and after every change, until Ctrl-C between two imports."""
    try:
        # The watch begins before the first import, so that no change falls between.
        next(rounds)
        run.run()
        for changed in rounds:
            run.follow(changed)
    except ImportInterrupted:
        raise
    except KeyboardInterrupt:
        return


def _ignore(progress: DocumentProgress) -> None:
    del progress


class _Import:
    """One import of a root, which may be repeated for parts of it."""

    def __init__(
        self,
        memory: DocumentMemory,
        root: Path,
        options: DocumentOptions,
        tally: Tally,
        on_progress: OnProgress,
    ) -> None:
        _check(memory.scope, options)
        self._root = root
        self._folder = root if root.is_dir() else root.parent
        self._options = options
        self._tally = tally
        self._on_progress = on_progress
        name = options.name or self._folder.as_posix().rstrip("/")
        settings = ReadingSettings(encoding=options.encoding, page_reader=options.page_reader)
        collection = Collection(self._folder, name, options.pool, settings)
        self._sync = DocumentSync(memory, collection, tally)

    def run(self) -> ImportReport:
        """Import all of it."""
        return self._round(self._found(), ["" if self._root.is_dir() else self._root.name])

    def follow(self, changed: set[Path]) -> None:
        """Import what changed at these paths."""
        files = {file.path: file for path in sorted(changed) for file in self._files_at(path)}
        gone = [self._name(path) for path in sorted(changed) if self._has_gone(path)]
        if files or gone:
            self._round(list(files.values()), gone)

    def _round(self, files: list[DocumentFile], places: list[str]) -> ImportReport:
        """Import these, and look at these places for documents that are gone."""
        try:
            self._update(files)
            for place in places if self._options.gone == "forget" else ():
                self._sync.forget_gone(place)
        except KeyboardInterrupt as error:
            raise ImportInterrupted(self._tally.report()) from error
        report = self._tally.report()
        self._on_progress(DocumentProgress(len(files), len(files), report))
        return report

    def _has_gone(self, path: Path) -> bool:
        """Whether what may have held documents is no longer there; a root folder never counts."""
        if path.exists() or self._options.gone == "keep" or self._folder not in path.parents:
            return False
        if self._root != self._folder:
            return path == self._root
        return not any(part.startswith(".") for part in path.relative_to(self._root).parts)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def _update(self, files: list[DocumentFile]) -> None:
        done = 0

        def on_file() -> None:
            nonlocal done
            self._on_progress(DocumentProgress(done, len(files), self._tally.report()))
            done += 1

        self._sync.update(files, on_file)

    def _found(self) -> list[DocumentFile]:
        files: list[DocumentFile] = []
        for found in documents_below(self._root, exclude=self._options.exclude):
            if isinstance(found, DocumentFile):
                files.append(found)
            elif isinstance(found, LeftOut):
                self._tally.leave_out(found.reason)
            else:
                place, problem = found
                self._tally.fail(Unreadable(place, "folder", problem.message))
        _refuse_if_all_need_more(files)
        return files

    def _files_at(self, path: Path) -> list[DocumentFile]:
        """Give the documents at a path that changed: one, or those of a folder that is new."""
        if path.is_dir() and not path.is_symlink() and path != self._root:
            inside = (file for file in documents_below(path) if isinstance(file, DocumentFile))
            found = (self._file_at(file.path) for file in inside)
            return [file for file in found if file is not None]
        file = self._file_at(path)
        return [] if file is None else [file]

    def _file_at(self, path: Path) -> DocumentFile | None:
        return document_at(self._root, path, exclude=self._options.exclude)


def _check(scope: Scope, options: DocumentOptions) -> None:
    if scope.session is not None:
        raise ScopeError(
            "session",
            scope.session,
            "each document is a session of its own, so none may be bound",
            "Leave --session and EKPHORY_SESSION out",
        )
    if options.name is not None and not options.name.strip():
        raise InvalidInput("name", options.name, "is empty", "Give the collection's name")
    # What every passage will hold is checked once, before anything is read.
    sample = {"text": "-", "pool": options.pool, "session": options.name}
    draft(sample, scope=scope, now=now_utc())


def _refuse_if_all_need_more(files: list[DocumentFile]) -> None:
    """Raise where no document can be read; where some can, the others are told of one by one."""
    first: MissingExtra | None = None
    for file in files:
        reader = reader_for(file.path)
        missing = None if reader is None else reader.missing_extra()
        if missing is None:
            return
        first = first or missing
    if first is not None:
        raise first
