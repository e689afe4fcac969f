"""What the state of a store means, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ekphory.store.store import StoreHealth

_MANY_SMALL_FRAGMENTS = 64
_MANY_VERSIONS = 512
_INDEX_FROM = 20_000
_COVERED_ENOUGH = 0.7
_SCOPES_NAMED = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What was looked at.
        state: Whether it is fine, worth knowing, or something that `--repair` mends.
        sentence: The finding, for people.
    """

    subject: str
    state: Literal["fine", "note", "repairable"]
    sentence: str


def examine(health: StoreHealth) -> tuple[Finding, ...]:
    """Judge every part of a store's state."""
    return (
        _contents(health),
        _size(health),
        _fragments(health),
        _versions(health),
        _index(health),
        _orphans(health),
        _upkeep(health),
    )


def _contents(health: StoreHealth) -> Finding:
    sentence = (
        f"{_counted(health.memories, 'memory', 'memories')}, "
        f"{_counted(health.history, 'earlier version', 'earlier versions')} and "
        f"{_counted(health.vectors, 'vector', 'vectors')}."
    )
    return Finding("contents", "fine", sentence)


def _size(health: StoreHealth) -> Finding:
    if health.bytes is None:
        return Finding("bytes", "note", "Its size is not measured: it is no local directory.")
    each = f", {health.bytes / health.memories:,.0f} bytes a memory" if health.memories else ""
    return Finding("bytes", "fine", f"{_readable(health.bytes)} on disk{each}.")


def _fragments(health: StoreHealth) -> Finding:
    files = _counted(health.fragments, "data file", "data files")
    if health.small_fragments > _MANY_SMALL_FRAGMENTS:
        sentence = (
            f"{files}, of which {health.small_fragments:,} are small; merged, they read faster."
        )
        return Finding("fragments", "repairable", sentence)
    return Finding("fragments", "fine", f"{files}, {health.small_fragments:,} of them small.")


def _versions(health: StoreHealth) -> Finding:
    kept = _counted(health.versions, "version", "versions")
    if health.versions > _MANY_VERSIONS:
        return Finding("versions", "repairable", f"{kept} are kept on disk; old ones can go.")
    return Finding("versions", "fine", f"{kept} kept on disk.")


def _index(health: StoreHealth) -> Finding:
    covered = health.vector_index_rows
    if covered is None:
        if health.vectors < _INDEX_FROM:
            sentence = "No vector index, and none needed: so few vectors are searched exactly."
            return Finding("index", "fine", sentence)
        sentence = (
            f"No vector index yet; it is built once a scope of over {_INDEX_FROM:,} vectors "
            "is searched."
        )
        return Finding("index", "note", sentence)
    share = covered / health.vectors if health.vectors else 1.0
    sentence = f"The vector index covers {covered:,} of {health.vectors:,} vectors ({share:.0%})"
    if share < _COVERED_ENOUGH:
        return Finding("index", "repairable", f"{sentence}; the others are scanned.")
    return Finding("index", "fine", f"{sentence}.")


def _orphans(health: StoreHealth) -> Finding:
    scopes = health.orphaned_scopes
    if not scopes:
        return Finding("scopes", "fine", "Every scope holds a memory that can be found.")
    named = ", ".join(scopes[:_SCOPES_NAMED]) + (", …" if len(scopes) > _SCOPES_NAMED else "")
    sentence = (
        f"{_counted(len(scopes), 'scope holds', 'scopes hold')} nothing but expired memories or "
        f"history: {named}. Wipe them with `ekphory forget --purge` if they are not wanted."
    )
    return Finding("scopes", "note", sentence)


def _upkeep(health: StoreHealth) -> Finding:
    if health.upkeep_failure is None:
        return Finding("upkeep", "fine", "Upkeep succeeds.")
    return Finding("upkeep", "repairable", health.upkeep_failure)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _readable(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
