"""Keys: made, shown once, kept as digests, recognised in constant time, revoked."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
from dataclasses import asdict, dataclass, fields
from typing import Literal, get_args

from ekphory.catalog.database import Database, NotThere
from ekphory.errors import InvalidInput
from ekphory.legacy import KEY_PREFIXES
from ekphory.types import now_utc

Rights = Literal["read", "write", "admin"]
"""Each includes those before it: `write` may read, `admin` may also delete projects."""

KEY_PREFIX = KEY_PREFIXES[0]
"""How every key starts, so that it is known as one wherever it turns up."""
_ID_BYTES = 6
_SECRET_BYTES = 32
_NO_DIGEST = bytes(hashlib.sha256().digest_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """What is known of a key; never the key itself.

    Attributes:
        id: Names the key in lists and logs.
        name: What its owner calls it.
        org, project: What it is bound to; None for any.
        rights: What may be done with it.
        created_at, revoked_at: ISO 8601; None for one that is in use.
    """

    id: str
    name: str
    org: str | None
    project: str | None
    rights: Rights
    created_at: str
    revoked_at: str | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at the only moment at which it can be read."""

    text: str
    key: AccessKey

    def __repr__(self) -> str:
        return f"NewKey({self.key.id!r})"


class AccessKeys:
    """The table of keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        *,
        name: str = "",
        org: str | None = None,
        project: str | None = None,
        rights: Rights = "write",
    ) -> NewKey:
        """Make a key.

        Raises:
            InvalidInput: The rights are unknown, a name is blank, or a project is given without
                its organisation.
        """
        if rights not in get_args(Rights):
            problem = "no such rights"
            raise InvalidInput("rights", rights, problem, f"Give {' or '.join(get_args(Rights))}")
        for field, bound in (("org", org), ("project", project)):
            if bound is not None and not bound.strip():
                remedy = "Name it, or leave it out for a key that reaches all"
                raise InvalidInput(field, bound, "is blank", remedy)
        if project is not None and org is None:
            raise InvalidInput("project", project, "belongs to no organisation", "Give org too")
        key = AccessKey(
            id=secrets.token_hex(_ID_BYTES),
            name=name,
            org=org,
            project=project,
            rights=rights,
            created_at=now_utc().isoformat(),
        )
        text = f"{KEY_PREFIX}{key.id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        self._database.insert("access_keys", {**asdict(key), "digest": _digest(text)})
        return NewKey(text, key)

    def recognise(self, text: str) -> AccessKey | None:
        """Return the key that this text is, or None where it is none that is in use."""
        rows = self._database.read("SELECT * FROM access_keys WHERE id = ?", (_read_id(text),))
        expected = rows[0]["digest"] if rows else _NO_DIGEST
        # Compared also where there is no such key, so that the time tells nothing.
        is_same = hmac.compare_digest(_digest(text), expected)
        if not is_same or not rows or rows[0]["revoked_at"] is not None:
            return None
        return _read_key(rows[0])

    def all(self) -> list[AccessKey]:
        """Return all keys, the newest last, revoked ones too."""
        return list(map(_read_key, self._database.read("SELECT * FROM access_keys ORDER BY rowid")))

    def any_in_use(self) -> bool:
        """Whether anybody could come in with a key."""
        found = self._database.read("SELECT 1 FROM access_keys WHERE revoked_at IS NULL LIMIT 1")
        return bool(found)

    def revoke(self, key_id: str) -> None:
        """Let a key be worth nothing from now on; doing so again changes nothing.

        Raises:
            NotThere: There is no key with that id.
        """
        found = self._database.write(
            "UPDATE access_keys SET revoked_at = ifnull(revoked_at, ?) WHERE id = ?",
            (now_utc().isoformat(), key_id),
        )
        if not found:
            raise NotThere(f"There is no key {key_id!r}. `ekphory keys list` names them.")


def _digest(text: str) -> bytes:
    # A fast digest is enough: the secret is 256 random bits, which nobody can try out.
    return hashlib.sha256(text.encode()).digest()


def _read_id(text: str) -> str:
    known = text.startswith(KEY_PREFIXES) and text.isascii()
    return text.split("_")[1] if known else ""


def _read_key(row: sqlite3.Row) -> AccessKey:
    return AccessKey(**{entry.name: row[entry.name] for entry in fields(AccessKey)})
