"""How a server is run: where it listens, who may come in, and how much at once."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path

from ekphory.errors import InvalidInput

# The key that whoever starts the server gives to it, as containers do; kept as a digest alone.

VARIABLE = "EKPHORY_SERVE_KEY"
_SHORTEST = 32


@dataclass(frozen=True, slots=True)
class GivenKey:
    """A key with all rights to every project, for as long as the server runs with it."""

    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, text: str) -> GivenKey:
        """Make it from the text that callers will send.

        Raises:
            InvalidInput: It could be guessed, or no header could carry it.
        """
        if len(text) < _SHORTEST or not text.isascii() or not text.isprintable() or " " in text:
            problem = f"a key has {_SHORTEST} or more visible ASCII characters"
            remedy = "Make one with `openssl rand -hex 32`"
            raise InvalidInput(VARIABLE, f"({len(text)} characters)", problem, remedy)
        return cls(hashlib.sha256(text.encode()).digest())

    def is_same(self, text: str) -> bool:
        """Whether a caller sent this key; takes the same time whatever was sent."""
        return hmac.compare_digest(hashlib.sha256(text.encode()).digest(), self.digest)


# How a server is run: where it listens, who may come in, and how much at a time.

DEFAULT_PORT = 8080
_LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is taken at a time; beyond it a request is refused with the status in brackets.

    Attributes:
        body_bytes: Size of a request's body [413].
        values: Elements of lists and objects that a body holds [413].
        depth: How deep lists and objects are nested in it [413].
        documents: Documents of one reranking request [413].
        batch: Texts of one embedding request [413].
        concurrency: Reads that are being answered, waiting ones included; beside them as many
            writes, and as many requests whose bodies are on their way [503]. One caller gets three
            quarters of each.
        per_second: Requests a second of one key, or of one address without a key, over a while;
            None for any number [429].
        org_per_second: Requests a second of one organisation, likewise [429].
        org_memories: Memories that one organisation may hold; None for any number [429].
        shard_concurrency: Requests of one shard of a cluster that are being answered, waiting ones
            included [503].
        threads: Reads that are worked on at the same moment; others wait.
        write_threads: Writes that are worked on at the same moment; those that wait for the disk
            are written in one commit.
        body_seconds: How long a request's body may take to arrive [408].
        header_seconds: How long a connection may take to send the head of a request before it is
            closed.
    """

    body_bytes: int = 8 * 2**20
    values: int = 50_000
    depth: int = 100
    documents: int = 1_000
    batch: int = 2_048
    concurrency: int = 512
    per_second: float | None = None
    org_per_second: float | None = None
    org_memories: int | None = None
    shard_concurrency: int = 128
    threads: int = 8
    write_threads: int = 4
    body_seconds: float = 60.0
    header_seconds: float = 20.0

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None and value <= 0:
                raise InvalidInput(entry.name, value, "lets nothing through", "Give more than 0")

    @property
    def concurrency_of_one_caller(self) -> int:
        """How many of those are one key's, or one address's without a key."""
        return math.ceil(self.concurrency * 0.75)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How one server is run.

    Attributes:
        store: Directory or Lance URI of the store.
        catalog: File of the catalog; None for one in the store's directory.
        embedder: What `load_embedder` takes; None for what the environment says.
        host: Address to listen on.
        port: Port to listen on; 0 for any that is free.
        workers: Processes that answer.
        require_key: Whether a key is needed on a loopback address too.
        key: A key beside those of the catalog, with all rights; where there is one, it is needed.
        origins: Web pages from other hosts that may ask; none by default.
        trusted_proxies: Addresses and networks of proxies whose X-Forwarded-For and
            X-Forwarded-Proto are believed; none by default.
        audit: File in which it is noted who read, wrote and forgot what; None for none.
        limits: How much is taken at a time.
    """

    store: str
    catalog: Path | None = None
    embedder: str | None = None
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    workers: int = 1
    require_key: bool = False
    key: GivenKey | None = None
    origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    audit: Path | None = None
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise InvalidInput("port", self.port, "must be a port", "Give 0 to 65535")
        if self.workers < 1:
            raise InvalidInput("workers", self.workers, "answers nothing", "Give at least 1")
        for proxy in self.trusted_proxies:
            if not _is_network(proxy):
                problem = "must be an address or a network"
                remedy = "Give one such as 10.0.0.7 or 10.0.0.0/24"
                raise InvalidInput("trusted_proxies", proxy, problem, remedy)

    @property
    def needs_key(self) -> bool:
        """Whether every request needs a key."""
        return self.require_key or self.key is not None or not is_loopback(self.host)

    @property
    def watches_tenants(self) -> bool:
        """Whether anything is limited by organisation, or noted in the audit log."""
        by_org = (self.limits.org_per_second, self.limits.org_memories)
        return self.audit is not None or any(limit is not None for limit in by_org)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


@lru_cache
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; a name other than localhost counts as not."""
    bare = host.strip("[]").lower()
    if bare in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False
