"""Opening the store and scope that a command line and the environment name."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.cli.options import StoreOptions
from ekphory.config import Settings, read_settings
from ekphory.errors import InvalidInput
from ekphory.store.state_note import STATE_FILE

if TYPE_CHECKING:
    from ekphory.memory import Memory


def settings_for(options: StoreOptions) -> Settings:
    """Give the environment's settings, overridden by the options that were given."""
    named = {entry.name: getattr(options, entry.name) for entry in fields(options)}
    given = {name: value for name, value in named.items() if value is not None}
    return replace(read_settings(), **given)


def open_for_writing(options: StoreOptions) -> Memory:
    """Open the store, and make it where there is none."""
    return _open(settings_for(options))


def open_existing(options: StoreOptions) -> Memory:
    """Open a store that must be there, so that a misspelt path is told and not created.

    Raises:
        InvalidInput: There is no store at the path.
    """
    settings = settings_for(options)
    if not _may_be_a_store(settings.store):
        raise InvalidInput(
            "store",
            settings.store,
            "there is no store",
            "Make one with `ekphory add` or `ekphory import`, or name another with --store",
        )
    return _open(settings)


def _open(settings: Settings) -> Memory:
    from ekphory.memory import Memory

    return Memory(
        settings.store,
        org=settings.org,
        project=settings.project,
        agent=settings.agent,
        user=settings.user,
        session=settings.session,
        embedder=settings.embedder,
        reranker=settings.reranker,
        chat=settings.chat_url,
        preset=settings.preset,
    )


def _may_be_a_store(path: str) -> bool:
    """Whether opening would find a store; a file and a URI are left to the store to judge."""
    if "://" in path:
        return True
    directory = Path(path).expanduser()
    if directory.is_file() or (directory / STATE_FILE).is_file():
        return True
    return any(directory.glob("*.lance"))
