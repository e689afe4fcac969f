"""`ekphory keys`: who may ask a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import plain, print_json
from ekphory.cli.options import OutputOptions
from ekphory.config import read_settings

if TYPE_CHECKING:
    from ekphory.catalog.access_keys import AccessKey, AccessKeys, Rights

_COLUMNS = ("id", "name", "org", "project", "rights", "created_at", "revoked_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions:
    """Whose keys."""

    store: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The store that is served; else EKPHORY_STORE."),
    ] = None
    catalog: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="As given to `ekphory serve`."),
    ] = None


@command
def create_key(
    where: CatalogOptions,
    output: OutputOptions,
    name: Annotated[str, typer.Option(help="What you call it.")] = "",
    org: Annotated[str | None, typer.Option(help="Only for this organisation.")] = None,
    project: Annotated[str | None, typer.Option(help="Only for this project of it.")] = None,
    rights: Annotated[
        str, typer.Option(help="read, write, or admin; each includes the former.")
    ] = ("write"),
) -> None:
    """Make a key. It is shown this once: the catalog keeps only a digest of it."""
    with _keys(where) as keys:
        made = keys.create(name=name, org=org, project=project, rights=cast("Rights", rights))
    if output.json:
        print_json({"key": made.text, **cast("dict[str, object]", plain(made.key))})
        return
    result_console().print(made.text, soft_wrap=True)
    message_console().print("Keep it: it cannot be shown again.", style="yellow")


@command
def list_keys(where: CatalogOptions, output: OutputOptions) -> None:
    """List the keys, revoked ones too; never the keys themselves."""
    with _keys(where) as keys:
        found = keys.all()
    if output.json:
        print_json({"keys": found})
    else:
        result_console().print(_table(found))


@command
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `ekphory keys list` says.")],
    where: CatalogOptions,
    output: OutputOptions,
) -> None:
    """Let a key be worth nothing from now on; a running server knows at once."""
    with _keys(where) as keys:
        keys.revoke(key_id)
    if output.json:
        print_json({"revoked": key_id})
    else:
        result_console().print(f"{key_id} is revoked.")


@contextmanager
def _keys(where: CatalogOptions) -> Iterator[AccessKeys]:
    from ekphory.catalog.access_keys import AccessKeys
    from ekphory.catalog.database import Database
    from ekphory.service.catalog_file import catalog_file

    store = where.store or read_settings().store
    database = Database(catalog_file(store, where.catalog))
    try:
        yield AccessKeys(database)
    finally:
        database.close()


def _table(keys: list[AccessKey]) -> Table:
    table = Table(*_COLUMNS)
    for key in keys:
        table.add_row(*(str(getattr(key, column) or "") for column in _COLUMNS))
    return table
