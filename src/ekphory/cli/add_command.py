"""`ekphory add`: remember one text."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import message_console, result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.metadata_option import read_metadata
from ekphory.cli.open_store import open_for_writing
from ekphory.cli.options import OutputOptions, StoreOptions
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.types import MemoryType

_PANEL = "The memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFields:
    """The fields of a memory beside its text; its session is that of the scope."""

    id: Annotated[
        str | None,
        typer.Option(help="Its id; it alone then decides what is there already.",
                     rich_help_panel=_PANEL),
    ] = None  # fmt: skip
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it happened, ISO 8601; else now.",
                     rich_help_panel=_PANEL),
    ] = None  # fmt: skip
    producer: Annotated[str | None, typer.Option(help="Who said it.", rich_help_panel=_PANEL)] = (
        None
    )
    produced_for: Annotated[
        str | None, typer.Option(help="Whom it was said to.", rich_help_panel=_PANEL)
    ] = None
    role: Annotated[
        str | None, typer.Option(help="Chat role: user, assistant, …", rich_help_panel=_PANEL)
    ] = None
    sequence: Annotated[
        int | None, typer.Option(help="Position within its session.", rich_help_panel=_PANEL)
    ] = None
    pool: Annotated[
        str | None, typer.Option(help="Its pool; agent_memory by default.", rich_help_panel=_PANEL)
    ] = None
    type: Annotated[
        str | None,
        typer.Option(
            help="episodic, semantic, procedural or unknown; else predicted.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    importance: Annotated[
        float | None, typer.Option(help="From 0 to 1; else predicted.", rich_help_panel=_PANEL)
    ] = None
    expires_at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="From then on it is hidden.", rich_help_panel=_PANEL),
    ] = None
    source: Annotated[
        str | None, typer.Option(help="Where it comes from.", rich_help_panel=_PANEL)
    ] = None
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A field of your own; repeatable.", rich_help_panel=_PANEL
        ),
    ] = None


SAMPLED = (
    "The text is longer than 60,000 characters: it is stored whole and found by its words, "
    "and 64 windows spread over it are searched by meaning. Import it as a document to have all "
    "of it searched so."
)


@command
def add(
    text: Annotated[str, typer.Argument(help="What to remember; - reads standard input.")],
    fields: MemoryFields,
    where: StoreOptions,
    output: OutputOptions,
) -> None:
    """Remember one text.

    On return it is durable. What is there already is skipped, not doubled.
    """
    metadata = read_metadata(fields.metadata)
    with open_for_writing(where) as memory:
        report = memory.add(
            _piped_text() if text == "-" else text,
            id=fields.id,
            at=fields.at,
            producer=fields.producer,
            produced_for=fields.produced_for,
            role=fields.role,
            sequence=fields.sequence,
            pool=fields.pool,
            type=cast("MemoryType | None", fields.type),
            importance=fields.importance,
            expires_at=fields.expires_at,
            source=fields.source,
            metadata=metadata,
        )
    if output.json:
        print_json(report)
    else:
        state = "Added" if report.added else "Already there:"
        said = f"{state} {report.ids[0]}" if report.ids else "Nothing new: only recalled memories"
        result_console().print(said, soft_wrap=True)
        if report.sampled:
            message_console().print(SAMPLED, style="dim")


def _piped_text() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "text", error.object[error.start : error.start + 8], "is not UTF-8", "Convert the text"
        ) from error
