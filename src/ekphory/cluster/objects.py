"""Small objects beside the shards, of which one process alone can write each first.

All that has to be decided between machines is decided by writing an object only where there is
none: who made the store, whose turn it is to write a shard, which state of a catalog is next.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from ekphory.errors import InvalidInput, MissingExtra, StoreError

LOCAL = "file-object-store://"
"""By this scheme Lance writes a directory as it does object storage: no file is ever changed."""
_PACKAGES = ("lance", "obstore")
_SCHEMES = ("s3", "gs", "az")


def find_root(uri: str, *, field: str = "store") -> str:
    """Return the Lance URI of a store of shards.

    Args:
        uri: A directory, or a URI on object storage.
        field: What gave it, for errors.

    Raises:
        InvalidInput: It names no place, or holds a key.
        MissingExtra: What a cluster needs is not installed.
    """
    if not all(map(find_spec, _PACKAGES)):
        raise MissingExtra("cluster", "A store of shards")
    parts = urlsplit(uri)
    if "@" in parts.netloc or parts.query:
        remedy = "Set keys in the environment, as the object store's own tools read them"
        raise InvalidInput(field, f"{parts.scheme}://…", "holds a key", remedy)
    for scheme in ("file://", LOCAL):
        uri = uri.removeprefix(scheme)
    is_local = "://" not in uri
    if not (uri.strip() if is_local else parts.scheme in _SCHEMES and parts.netloc):
        remedy = "Give a directory, s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH"
        raise InvalidInput(field, uri, "names no place", remedy)
    return f"{LOCAL}{Path(uri).expanduser().resolve()}" if is_local else uri.rstrip("/")


def name_place(root: str) -> str:
    """Return a Lance URI as a user names it: a directory by its path."""
    return root.removeprefix(LOCAL)


class _ObjectStream(io.RawIOBase):
    """What `obstore` reads, as Python's own streams."""

    def __init__(self, reader: Any) -> None:  # noqa: ANN401  obstore's reader, where it is installed
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._reader.seek(offset, whence))

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = bytes(self._reader.read(len(buffer)))
        buffer[: len(content)] = content
        return len(content)


class Objects:
    """The objects below one URI. Safe for several threads."""

    def __init__(self, root: str) -> None:
        """Take a URI as `find_root` returns it."""
        self._root = root
        self._library: Any = importlib.import_module("obstore")
        stores = importlib.import_module("obstore.store")
        with self._translate_errors("open", ""):
            if root.startswith(LOCAL):
                self._store: Any = stores.LocalStore(
                    root.removeprefix(LOCAL), mkdir=True, automatic_cleanup=True
                )
            else:
                self._store = stores.from_url(root)

    def put_new(self, name: str, content: bytes) -> bool:
        """Write an object where there is none; return whether it is there with this content."""
        with self._translate_errors("write", name):
            try:
                self._library.put(self._store, name, content, mode="create")
            except self._library.exceptions.AlreadyExistsError:
                # A request that was repeated finds what it wrote the first time.
                return self.get(name) == content
            return True

    def put(self, name: str, content: bytes) -> None:
        """Write an object, in place of any."""
        with self._translate_errors("write", name):
            self._library.put(self._store, name, content)

    def get(self, name: str) -> bytes | None:
        """Return an object's content; None where there is no such object."""
        with self._translate_errors("read", name):
            try:
                return bytes(self._library.get(self._store, name).bytes())
            except FileNotFoundError:
                return None

    def open(self, name: str) -> IO[bytes]:
        """Return an object's content as a stream that can be read anywhere."""
        with self._translate_errors("read", name):
            return io.BufferedReader(_ObjectStream(self._library.open_reader(self._store, name)))

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the objects in a folder, without it, in order."""
        return sorted(self.sizes(folder))

    def numbers(self, folder: str) -> list[int]:
        """Return the numbers that name objects in a folder, in order.

        What others have put there is passed over: a network file system hides deleted files.
        """
        return sorted(int(name) for name in self.names(folder) if name.isdecimal())

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return the length in bytes of each object in a folder, by its name there."""
        prefix = f"{folder}/" if folder else ""
        with self._translate_errors("list", folder):
            pages = self._library.list(self._store, prefix)
            found = {each["path"]: int(each["size"]) for page in pages for each in page}
        return {path.removeprefix(prefix): size for path, size in found.items()}

    def copy_from(self, other: Objects, name: str) -> None:
        """Write an object of another place, in place of any.

        Raises:
            FileNotFoundError: It is gone there.
        """
        library = self._library

        async def copy() -> bool:
            try:
                content = await library.get_async(other._store, name)
            except FileNotFoundError:
                return False
            await library.put_async(self._store, name, content.stream())
            return True

        with self._translate_errors("copy", name):
            is_there = asyncio.run(copy())
        if not is_there:
            raise FileNotFoundError(name)

    def delete(self, name: str) -> None:
        """Delete an object; one that is gone is passed over."""
        with self._translate_errors("delete", name):
            try:
                self._library.delete(self._store, name)
            except FileNotFoundError:
                return

    def delete_folder(self, folder: str) -> None:
        """Delete all objects in a folder."""
        names = [f"{folder}/{name}" for name in self.names(folder)]
        with self._translate_errors("delete", folder):
            if names:
                self._library.delete(self._store, names)

    def check_first_write_wins(self) -> None:
        """Check that the place honours writing only where there is nothing.

        Raises:
            StoreError: It does not, so that writers would overwrite each other.
        """
        name = f"checks/{uuid.uuid4().hex}"
        is_honoured = self.put_new(name, b"first") and not self.put_new(name, b"second")
        self.delete(name)
        if not is_honoured:
            raise StoreError(
                f"{name_place(self._root)}: this object storage overwrites an object that is to "
                "be written only where there is none (If-None-Match: *), so two writers would "
                "lose memories. "
                "Use one that honours it, such as Amazon S3 or MinIO."
            )

    @contextmanager
    def _translate_errors(self, verb: str, name: str) -> Iterator[None]:
        try:
            yield
        except (self._library.exceptions.BaseError, OSError) as error:
            cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise StoreError(
                f"{name_place(self._root)}/{name}: cannot {verb} it ({cause}). Check the object "
                "storage's address and rights in the environment."
            ) from error
