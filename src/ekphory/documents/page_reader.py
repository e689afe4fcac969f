"""Reading a page that is a picture: the protocol, and which reader a name means."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import InvalidInput

Picture = NDArray[np.uint8]
"""Shape (height, width, 3): red, green, blue."""
OWN_READER = "own"
NO_READER = "off"


class PageReader(Protocol):
    """Reads the text in the picture of a page."""

    @property
    def name(self) -> str:
        """What tells its results from those of another reader."""
        ...

    def read(self, picture: Picture) -> str:
        """Give the lines of text from top to bottom; empty where the page has none.

        Raises:
            MissingExtra: It needs what is not installed.
            ServiceError: A remote reader failed.
        """
        ...


def find_page_reader(
    name: str = OWN_READER, *, model: str | None = None, api_key: str | None = None
) -> PageReader | None:
    """Give the reader that a name means; its models are loaded with the first page.

    Args:
        name: `own` for the models of `[docs]`, which need no network; `off` for none; or the URL
            of an OpenAI-compatible service with a model that sees.
        model: Name of the model to ask a service for.
        api_key: The service's key.

    Raises:
        InvalidInput: The name is none of these, or a service lacks its model.
    """
    if name == NO_READER:
        return None
    if name == OWN_READER:
        from ekphory.documents.own_page_reader import OwnPageReader

        return OwnPageReader()
    if not name.startswith(("http://", "https://")):
        raise InvalidInput(
            "ocr", name, "no such page reader", f"Give {OWN_READER}, {NO_READER}, or a URL."
        )
    if not model:
        raise InvalidInput("model", model, "a service is asked for a model", "Name one that sees.")
    from ekphory.documents.remote_page_reader import RemotePageReader

    return RemotePageReader(name, model=model, api_key=api_key)
