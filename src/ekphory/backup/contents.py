"""What a backup holds: its list of files with their digests, checked when it is read."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

from ekphory import legacy
from ekphory.errors import StoreError
from ekphory.service.catalog_file import CATALOG_FILE
from ekphory.store.lance_files import TABLE_FOLDER

CONTENTS_FILE = "ekphory-backup.json"
FORMAT_VERSION = 1
_VERSION_KEY = "ekphory_backup"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of a backup: its place, its length and its digest."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a backup holds.

    Attributes:
        ekphory: The version that made it.
        taken_at: When it began, as ISO 8601 in UTC.
        version: Which state of the store it is.
        schema_version, embedder: What the store was made with.
        memories, history: How many memories, and how many earlier versions.
        files: All files but the one that holds this.
    """

    ekphory: str
    taken_at: str
    version: int
    schema_version: int
    embedder: str
    memories: int
    history: int
    files: tuple[FileEntry, ...]

    @property
    def bytes(self) -> int:
        """Length of all files."""
        return sum(entry.bytes for entry in self.files)

    @property
    def has_catalog(self) -> bool:
        """Whether the server's catalog is among them."""
        return any(entry.path == CATALOG_FILE for entry in self.files)


def encode_contents(contents: Contents) -> bytes:
    """Give the text of the file that lists the others."""
    listed = {_VERSION_KEY: FORMAT_VERSION} | asdict(contents)
    return json.dumps(listed, indent=1, ensure_ascii=False).encode() + b"\n"


def decode_contents(text: bytes, *, where: str) -> Contents:
    """Read the file that lists the others.

    Raises:
        StoreError: It is damaged, of a newer ekphory, or names what no backup holds.
    """
    try:
        listed = legacy.current_keys(json.loads(text))
        if listed.pop(_VERSION_KEY) != FORMAT_VERSION:
            raise StoreError(
                f"{where}: made by a newer ekphory ({listed.get('ekphory')}). "
                "Upgrade it with: pip install --upgrade ekphory"
            )
        files = tuple(FileEntry(**entry) for entry in listed.pop("files"))
        contents = Contents(files=files, **listed)
        usable = all(isinstance(entry.bytes, int) and _is_ours(entry) for entry in files)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(where) from error
    if not usable:
        raise _damaged(where)
    return contents


def _is_ours(entry: FileEntry) -> bool:
    """Whether a file may be written where the backup says."""
    path = PurePosixPath(entry.path)
    inside = path.parts[:1] == (TABLE_FOLDER,) or entry.path == CATALOG_FILE
    plain = ".." not in path.parts and "\\" not in entry.path and ":" not in entry.path
    return inside and plain and _SHA256.fullmatch(entry.sha256) is not None


def _damaged(where: str) -> StoreError:
    return StoreError(f"{where}: {CONTENTS_FILE} is damaged. Take another backup of the store.")
