"""The options of `ekphory import` that only documents have."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ekphory.config import Settings
from ekphory.errors import InvalidInput

if TYPE_CHECKING:
    from ekphory.documents.page_reader import PageReader
    from ekphory.importers import DocumentOptions

_PANEL = "Documents"
PageReaderName = Literal["own", "chat", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFlags:
    """What an import of documents does beyond reading them."""

    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Follow changes until Ctrl-C, which loses nothing.",
            rich_help_panel=_PANEL,
        ),
    ] = False
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Forget documents that were imported from here and are gone.",
            rich_help_panel=_PANEL,
        ),
    ] = False
    pool: Annotated[
        str | None,
        typer.Option(help="Where they go; else reference_library.", rich_help_panel=_PANEL),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(
            help="What the folder is called in the store, in place of its path, so that it may "
            "be moved.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Of text files that are not UTF-8, such as cp1252; else they are refused.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB",
            help="Pass over files and folders of this name, such as drafts or '*.tmp.md'; with a / "
            "of this path below the folder. Repeatable.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    ocr: Annotated[
        PageReaderName | None,
        typer.Option(
            help="Who reads scanned pages: own models (the default), the chat service of "
            "EKPHORY_CHAT_URL, whose model must see, or nobody.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def refuse_for(self, chosen: str) -> None:
        """Refuse the flags where something else than documents is imported.

        Raises:
            InvalidInput: One was given.
        """
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value != entry.default:
                raise InvalidInput(
                    entry.name, value, f"{chosen} has no such option", "It is for documents."
                )

    def to_options(self, settings: Settings) -> DocumentOptions:
        """Give the options of the import, the chat service from the environment.

        Raises:
            InvalidInput: One cannot be used.
        """
        from ekphory.documents.exclusion import Exclusion
        from ekphory.importers.documents import DOCUMENT_POOL, DocumentOptions

        return DocumentOptions(
            pool=self.pool or DOCUMENT_POOL,
            name=self.name,
            gone="forget" if self.prune else "keep",
            encoding=self.encoding,
            page_reader=_page_reader(self.ocr or "own", settings),
            exclude=Exclusion(tuple(self.exclude or ())),
        )


def _page_reader(name: PageReaderName, settings: Settings) -> PageReader | None:
    from ekphory.documents.page_reader import find_page_reader

    if name != "chat":
        return find_page_reader(name)
    if not (settings.chat_url and settings.chat_model):
        raise InvalidInput(
            "ocr",
            name,
            "no chat service with a model is known",
            "Set EKPHORY_CHAT_URL and EKPHORY_CHAT_MODEL.",
        )
    return find_page_reader(
        settings.chat_url, model=settings.chat_model, api_key=settings.chat_api_key
    )
