"""One Lance table: its connection, its errors, its newest version, and what tells of damage."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from hashlib import blake2b
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import lancedb

from ekphory import legacy
from ekphory.errors import EkphoryError, StoreError
from ekphory.protocol_buffers import encode_number, read_fields
from ekphory.threads import ForkSafeLock

# Memory.

_ARENA_MAX = -8
_MMAP_THRESHOLD = -3
_ARENAS = 2
_LARGE = 256 * 1024


def bound_memory() -> None:
    """Set two limits of glibc's allocator for this process; elsewhere, do nothing.

    Lance reads on many threads. By default each gets a pool of its own, which keeps what is freed,
    and freed blocks of up to 32 MiB stay in the pools: half as much again as is in use (decision
    0007). What the environment sets (`MALLOC_ARENA_MAX`, `MALLOC_MMAP_THRESHOLD_`) stands.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    library = ctypes.CDLL(None)
    if "MALLOC_ARENA_MAX" not in os.environ:
        library.mallopt(_ARENA_MAX, _ARENAS)
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        library.mallopt(_MMAP_THRESHOLD, _LARGE)


# What LanceDB raises, and reading in spite of it.

ALL_ROWS = 2**31 - 1
"""Lance's limit for a query that has none: left out, it reads ten rows."""
Given = ParamSpec("Given")
Result = TypeVar("Result")

_READ_ATTEMPTS = 5


@contextmanager
def translate_lance_errors(verb: str, uri: str) -> Iterator[None]:
    """Turn whatever LanceDB raises within the block, panics included, into a `StoreError`."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, EkphoryError) or not _is_of_lance(error):
            raise
        raise StoreError(
            f"{uri}: cannot {verb} the store: {cause_of(error)}. "
            "Check the disk's space and the directory's permissions; "
            "`ekphory doctor --verify` names what is damaged, and `ekphory restore` brings a "
            "backup back."
        ) from error


def with_lance_errors_translated(
    verb: str,
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Make a method of an object with a `_uri` raise what `translate_lance_errors` raises."""

    def decorate(method: Callable[Given, Result]) -> Callable[Given, Result]:
        @wraps(method)
        def call(*arguments: Given.args, **options: Given.kwargs) -> Result:
            owner: Any = arguments[0]
            with translate_lance_errors(verb, owner._uri):
                return method(*arguments, **options)

        return call

    return decorate


def read_anew(uri: str, read: Callable[[], Result], *, renew: Callable[[], object]) -> Result:
    """Read, and once more at the newest version where files of an older one are gone.

    Another process may purge or repair the store between the choice of a version and its reading.
    """
    for _ in range(_READ_ATTEMPTS - 1):
        try:
            with translate_lance_errors("read", uri):
                return read()
        except StoreError as error:
            if not is_of_gone_version(error):
                raise
        with translate_lance_errors("read", uri):
            renew()
    with translate_lance_errors("read", uri):
        return read()


def is_of_gone_version(error: StoreError) -> bool:
    """Whether files of a version are missing, as they are once the store was purged or repaired."""
    # The second is what LanceDB says of a version itself.
    return any(words in str(error).lower() for words in ("not found", "no longer exists"))


def _is_of_lance(error: BaseException) -> bool:
    # A panic in Rust derives from BaseException alone, as does what ends a program.
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def cause_of(error: BaseException) -> str:
    """Return the first line of what Lance says, without the place in its source."""
    if type(error).__name__ in ("PanicException", "RustPanic"):
        return "a file of it is damaged, so that reading it broke off"
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r",? ?/\S+\.rs:\d+:\d+", "", line).rstrip(". ")


# Connections, also in a process that was forked from one that had used LanceDB.

_PACKAGE = "lancedb"
_NATIVE = "lancedb._lancedb"
_METADATA_BYTES = 64 * 2**20
"""Lance keeps what it knows of every version for its readers: by default up to a gigabyte."""
_guard = ForkSafeLock()
_process: int | None = None
"""Which process has used the library that is loaded; None if none has."""

# What it warns of is what `_load_anew` prevents.
warnings.filterwarnings("ignore", message="lancedb fork support is experimental")


def connect(uri: str) -> lancedb.db.DBConnection:
    """Connect to the Lance database at `uri`.

    Raises:
        StoreError: This process was forked, and the library could not be loaded for it.
    """
    global _process
    with _guard:
        if _process not in (None, os.getpid()):
            _load_anew()
        _process = os.getpid()
        package = importlib.import_module(_PACKAGE)
        session = package.Session(metadata_cache_size_bytes=_METADATA_BYTES)
        connection: lancedb.db.DBConnection = package.connect(uri, session=session)
        return connection


def _load_anew() -> None:
    """Load LanceDB's library a second time, as a fork cannot use the one that it inherited.

    Threads of the parent wait in a table of the library (parking_lot's). In a fork they are gone,
    but the table still points to their memory, which new threads are given: the fork crashes or
    hangs (decision 0020). A library from another file has a table of its own.
    """
    inherited = Path(str(sys.modules[_NATIVE].__file__))
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]
    try:
        with tempfile.TemporaryDirectory(prefix="ekphory-fork-") as directory:
            copied = shutil.copyfile(inherited, Path(directory) / inherited.name)
            _load_native(copied)
            # A fork of this process takes the same file.
            sys.modules[_NATIVE].__file__ = str(inherited)
    except OSError as error:
        raise StoreError(
            f"{inherited}: could not be loaded anew for this forked process ({error}). Make "
            f"{inherited.stat().st_size >> 20} MiB free in {tempfile.gettempdir()}, or start the "
            "process with multiprocessing's 'spawn' or 'forkserver'."
        ) from error


def _load_native(path: Path) -> None:
    loader = ExtensionFileLoader(_NATIVE, str(path))
    spec = spec_from_file_location(_NATIVE, path, loader=loader)
    if spec is None:
        raise OSError(f"{path} cannot be loaded as an extension module")
    module = module_from_spec(spec)
    sys.modules[_NATIVE] = module
    loader.exec_module(module)


# The files that commits leave behind: they show, in a moment, that nobody wrote to a table.


class CommitFiles:
    """Looks into the folder where every commit of a Lance table puts a file of its number.

    Lance itself finds the newest version there, but takes milliseconds to open it.
    """

    def __init__(self, folder: Path | None) -> None:
        """Name the folder; None where there is no local one."""
        self._folder = folder

    def end_at(self, version: int) -> bool:
        """Return whether this commit is surely the last; False means that the table must be asked.

        Files are removed from the oldest on, so nothing follows one that is there without the next.
        """
        if self._folder is None:
            return False
        try:
            # Network file systems look anew only at what is opened; Windows opens no folder.
            opened = os.open(self._folder, os.O_RDONLY)
        except OSError:
            # The table says what is wrong, and better.
            return False
        try:
            return _is_in(opened, version) and not _is_in(opened, version + 1)
        finally:
            os.close(opened)

    def count(self) -> int:
        """Return how many there are, as far as they can be listed."""
        if self._folder is None or not self._folder.is_dir():
            return 0
        return len(os.listdir(self._folder))  # noqa: PTH208  sooner


def _is_in(folder: int, version: int) -> bool:
    try:
        os.stat(commit_file(version), dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


Read = TypeVar("Read")


class SharedReading(Generic[Read]):
    """Reads something that others may change at any moment. Safe for several threads.

    Who asks while a reading runs waits for the next one, together with all who came meanwhile: what
    they get is at least as new as their question, and many callers cost two readings at a time.
    """

    def __init__(self, read: Callable[[], Read]) -> None:
        """Say what is read.

        Args:
            read: Reads anew; called by one thread at a time.
        """
        self._read = read
        self._reading = threading.Lock()
        self._begun = 0
        self._last: tuple[int, Read] | None = None

    def get(self) -> Read:
        """Return what a reading found that began after this call.

        Raises:
            Exception: Whatever `read` raises; the next caller reads again.
        """
        wanted = self._begun + 1
        with self._reading:
            if self._last is not None and self._last[0] >= wanted:
                return self._last[1]
            self._begun += 1
            number = self._begun
            found = self._read()
            self._last = (number, found)
            return found


# Manifests, which name the files that a version of a table needs.

NEWEST_FIRST = 2**64 - 1
"""Lance names a manifest after this less its version, so that the newest comes first."""
_FRAGMENT = 2
"""Number of the field that holds a fragment: its number in 1, its files in 2, their paths in 1."""
_NUMBERED_UPWARD = 2**63
_MANIFEST = re.compile(r"(\d+)\.manifest")
_DELETIONS = re.compile(r"\d+-\d+-(\d+)\.(?:arrow|bin)")
_LONG_NUMBER = re.compile(rb"[\x80-\xff]+[\x00-\x7f]")
_FILE_NAME = re.compile(rb"[\w-]+\.(?:lance|txn)")
_TOLD_APART = 24
"""The last characters of a file's name, most of them random, that no other file has."""


def commit_file(version: int) -> str:
    """Return the name of a version's manifest: the newest comes first in a list of names.

    Tables of an early format have other names, so that every commit there looks like another's.
    """
    return f"{NEWEST_FIRST - version:020}.manifest"


def find_manifest(table: Path, version: int) -> Path:
    """Return the path of a version's manifest."""
    folder = table / "_versions"
    named = folder / commit_file(version)
    return named if named.is_file() else folder / f"{version}.manifest"


def find_manifests(folder: Path) -> dict[int, Path]:
    """Return the manifests in a table's folder of versions, by version."""
    found: dict[int, Path] = {}
    for path in folder.glob("*.manifest"):
        named = _MANIFEST.fullmatch(path.name)
        if named is not None:
            number = int(named[1])
            found[NEWEST_FIRST - number if number >= _NUMBERED_UPWARD else number] = path
    return found


def list_needed_files(table: Path, *manifests: bytes) -> Iterator[Path]:
    """Yield the files that one of these manifests names, themselves left out.

    Lance gives every file a random name, which stands in the manifest of each state that needs
    it: that of an index as sixteen bytes, that of deletions as a number, those of others as text.
    """
    # What stands before a name may be letters too, so names are told apart by their ends.
    ends = {name[-_TOLD_APART:] for each in manifests for name in _FILE_NAME.findall(each)}
    numbers = b"".join({number for each in manifests for number in _LONG_NUMBER.findall(each)})
    for path in sorted(path for path in table.rglob("*") if path.is_file()):
        folder, *rest = path.relative_to(table).parts
        name = path.name.encode()
        if folder == "_indices":
            named = any(_index_is_named(rest[0], each) for each in manifests)
        elif folder == "_deletions":
            named = _deletions_are_named(path.name, numbers)
        elif len(name) >= _TOLD_APART and _FILE_NAME.fullmatch(name):
            named = name[-_TOLD_APART:] in ends
        else:
            named = folder != "_versions" and any(name in each for each in manifests)
        if named:
            yield path


def list_data_files(manifest: bytes) -> dict[int, str]:
    """Return the name of the data file of each fragment, by the fragment's number.

    Raises:
        StoreError: It is damaged.
    """
    try:
        start = int.from_bytes(manifest[-16:-8], "little")
        length = int.from_bytes(manifest[start : start + 4], "little")
        whole = manifest[start + 4 : start + 4 + length]
        fragments = [
            _values(bytes(field.value))
            for field in read_fields(whole)
            if field.number == _FRAGMENT and isinstance(field.value, bytes)
        ]
        return {int(each.get(1, 0)): _values(each[2])[1].decode() for each in fragments}
    except (IndexError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise StoreError(
            f"a manifest of the store is damaged ({error}). Restore a backup with "
            "`ekphory restore`."
        ) from error


def _values(message: bytes) -> dict[int, Any]:
    return {field.number: field.value for field in read_fields(message)}


def _deletions_are_named(name: str, manifest: bytes) -> bool:
    number = _DELETIONS.fullmatch(name)
    if number is None:
        # Lance begins a file under such a name; a kill leaves it so.
        return not name.startswith(".tmp")
    return encode_number(int(number[1])) in manifest


def _index_is_named(folder: str, manifest: bytes) -> bool:
    try:
        return uuid.UUID(folder).bytes in manifest
    except ValueError:
        # No name that Lance gives today: rather too many files than too few.
        return True


# The note of the newest state, by which damage and loss are seen.
#
# Lance keeps no checksum of a manifest, and takes a folder without any for a table that is yet to
# be made. The note holds the number of the newest version that was written, and a digest of its
# manifest with the lists of deleted rows that it names.

STATE_FILE = ".ekphory.state.json"
_Note = tuple[int, str]


class StateNote:
    """Notes the newest state of one table, and checks what is on disk against it.

    A note may be older than the newest version: a process was killed between the two, or did not
    write one. It is never newer, unless versions were lost.
    """

    def __init__(self, table: Path) -> None:
        """Take the folder of a table, which need not be there yet."""
        self._table = table
        self._path = legacy.adopt_file(table.parent / STATE_FILE)
        self._digests: dict[str, bytes] = {}

    def write(self, version: int) -> None:
        """Note a version that was just written, and is durable whatever becomes of the note."""
        part = self._path.with_name(f"{STATE_FILE}.{os.getpid()}.{threading.get_ident()}")
        # Where it cannot be written, the earlier one stays and is true as well.
        with suppress(OSError):
            content = {"version": version, "digest": self._digest(version)}
            part.write_text(json.dumps(content) + "\n", encoding="utf-8")
            part.replace(self._path)

    def tidy(self) -> None:
        """Remove what writers left that were killed; the caller holds the writer's lock."""
        for part in self._path.parent.glob(f"{STATE_FILE}.*"):
            with suppress(OSError):
                part.unlink()

    def data_files(self, version: int) -> dict[int, str]:
        """Return the path of each fragment's data file below the store, by fragment number."""
        manifest = find_manifest(self._table, version).read_bytes()
        folder = f"{self._table.name}/data"
        return {number: f"{folder}/{name}" for number, name in list_data_files(manifest).items()}

    def check(self) -> None:
        """Check that the newest state is there, and as it was written.

        Raises:
            StoreError: It held something and the versions are gone, or the newest one is damaged.
        """
        for _ in range(_READ_ATTEMPTS):
            # Read before the versions are: what comes in between only makes those newer.
            noted = self._read()
            newest = self._find_newest()
            if newest is None:
                witness = self._find_witness(noted)
                # Another process may have made the table meanwhile, and written to it.
                if witness is None:
                    return
                if self._find_newest() is None:
                    raise self._emptied(witness)
                continue
            if noted is None or newest > noted[0]:
                return
            if newest < noted[0]:
                raise self._lost(noted[0], newest)
            with suppress(FileNotFoundError):
                if self._digest(newest) == noted[1]:
                    return
            # Another process may have written meanwhile, and removed what is not needed since.
            if self._read() == noted and self._find_newest() == newest:
                raise self._damaged(newest)

    def _find_newest(self) -> int | None:
        return max(find_manifests(self._table / "_versions"), default=None)

    def _find_witness(self, noted: _Note | None) -> Path | None:
        """Return a file that is only where something was written; None where nothing was."""
        if noted is not None:
            return self._path
        return next((path for path in self._table.glob("data/*") if path.is_file()), None)

    def _emptied(self, witness: Path) -> StoreError:
        return StoreError(
            f"{self._table / '_versions'}: holds no version of the table, though {witness} shows "
            "that the store held memories. Restore a backup with `ekphory restore`, or begin anew "
            "in another folder: what was derived of the former memories is still in this one."
        )

    def _lost(self, noted: int, newest: int) -> StoreError:
        return StoreError(
            f"{find_manifest(self._table, noted)}: is gone, so what was written after version "
            f"{newest} is lost. Restore a backup with `ekphory restore`; to go on with version "
            f"{newest}, remove {self._path}."
        )

    def _damaged(self, newest: int) -> StoreError:
        return StoreError(
            f"{find_manifest(self._table, newest)}: was damaged since it was written, or a list of "
            "deleted rows that it names was. Restore a backup with `ekphory restore`; to read "
            f"what can still be read, remove {self._path}."
        )

    def _read(self) -> _Note | None:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            version, digest = content["version"], content["digest"]
            if type(version) is not int or not isinstance(digest, str):
                raise TypeError("version must be a number, and digest a string")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError(
                f"{self._path}: cannot be read ({error}). Remove it: the next write makes it anew. "
                "Then look for other damage with `ekphory doctor --verify`."
            ) from error
        return version, digest

    def _digest(self, version: int) -> str:
        manifest = find_manifest(self._table, version).read_bytes()
        whole = blake2b(manifest, digest_size=16)
        folder = self._table / "_deletions"
        names = sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208  sooner
        for name in names:
            # A file with another name is no list: a writer that was killed leaves what it began.
            if not (_DELETIONS.fullmatch(name) and _deletions_are_named(name, manifest)):
                continue
            if name not in self._digests:
                content = (folder / name).read_bytes()
                self._digests[name] = blake2b(content, digest_size=16).digest()
            whole.update(name.encode() + self._digests[name])
        return whole.hexdigest()


# The newest version, asked of the table only after somebody else wrote to it.


SoleWriter = Callable[[], bool]
"""Whether nobody but this process can have written since this process last did."""


def never() -> bool:
    """Return that others may write too."""
    return False


class NewestVersion:
    """Follows the versions of one table. Safe for several threads.

    Asking the table takes milliseconds, and a look at its folder of commits shows whether there is
    anything to ask: a commit after the last one that is known.

    Attributes:
        table: The table.
    """

    def __init__(
        self,
        uri: str,
        table: lancedb.table.Table,
        *,
        commits: CommitFiles,
        on_change: Callable[[], None] = lambda: None,
        sole_writer: SoleWriter = never,
    ) -> None:
        """Take a table.

        Args:
            uri: Where the store is, for what errors say.
            table: The table, which is brought to the newest version.
            commits: Its folder of commits.
            on_change: Called when somebody else wrote, before anybody gets the new version.
            sole_writer: While it holds, the table is not asked.
        """
        self._on_change = on_change
        self._uri = uri
        self._sole_writer = sole_writer
        self.table = table
        self._commits = commits
        self._guard = threading.Lock()
        self._seen = int(table.version)
        self._reading = SharedReading(self._read)

    @property
    def seen(self) -> int:
        """Number of the newest version that was seen or written, without looking again."""
        return self._seen

    def get(self) -> int:
        """Return the number of the newest version, of whichever process.

        Raises:
            StoreError: The table cannot be read.
        """
        return self._reading.get()

    def note_own(self, version: int) -> int:
        """Take in a commit of this process; return the version that was seen before it."""
        with self._guard:
            before, self._seen = self._seen, version
            return before

    def _read(self) -> int:
        before = self._seen
        if self._sole_writer() or self._commits.end_at(before):
            return self._seen
        with translate_lance_errors("read", self._uri):
            self.table.checkout_latest()
            version = int(self.table.version)
        if version != before:
            self._on_change()
        with self._guard:
            # A commit of ours that came meanwhile is newer than what the table said.
            if self._seen == before:
                self._seen = version
            return self._seen


_FENCING_ATTEMPTS = 5


def fence_table(uri: str, table_name: str) -> None:
    """Commit to a table what changes no row, and conflicts with what others have begun to commit.

    An append or a merging of files that began before it fails, and it fails itself where anything
    was committed since it looked; then it looks again.

    Raises:
        StoreError: Others commit all the time, or the table cannot be read.
    """
    lance = importlib.import_module("lance")
    for attempt in range(1, _FENCING_ATTEMPTS + 1):
        dataset = lance.dataset(f"{uri}/{table_name}.lance")
        same = [fragment.metadata for fragment in dataset.get_fragments()]
        operation = lance.LanceOperation.Merge(same, dataset.lance_schema)
        try:
            lance.LanceDataset.commit(
                dataset, operation, read_version=dataset.version, max_retries=0
            )
        except OSError:
            if attempt == _FENCING_ATTEMPTS:
                raise
        else:
            return


def commits_folder(uri: str, table_name: str) -> Path | None:
    """Return the folder into which a table's commits go; None where it is not a local one."""
    return None if is_remote(uri) else Path(uri) / f"{table_name}.lance" / "_versions"


def is_remote(uri: str) -> bool:
    """Return whether a store lies on object storage, where Lance's own cleanup has to do."""
    return "://" in uri
