"""Errors on the wire, as MemMachine's clients read them."""

from __future__ import annotations

from pydantic import BaseModel


class ErrorDetail(BaseModel):
    """What went wrong."""

    code: int
    message: str
    internal_error: str
    exception: str
    trace: str = ""


class ErrorAnswer(BaseModel):
    """An error; a text alone where nothing more is known."""

    detail: ErrorDetail | str
