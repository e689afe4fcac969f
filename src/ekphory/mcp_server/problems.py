"""What went wrong with a call, in words that a model can act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ekphory.catalog.failures import NotPermitted, NotThere
from ekphory.errors import EkphoryError, InvalidInput, MemoryNotFound, shorten
from ekphory.mcp_server.tool import AnyTool, Arguments
from ekphory.scope import SCOPE_FIELDS

DEFECT = "This is a defect of ekphory. The server's log says more; nothing is half written."
_HIDDEN = "The memory cannot do this at the moment. The server's log says why."
_SCOPE_NAMES = frozenset({*SCOPE_FIELDS, "pool", "org_id", "proj_id", "project_id", "user_id"})


class UnusableCall(EkphoryError):
    """A call of a tool that is not there, or with arguments that it does not take."""


_OF_THE_CALLER = (UnusableCall, InvalidInput, MemoryNotFound, NotPermitted, NotThere)


def checked_arguments(tool: AnyTool, given: Mapping[str, Any]) -> Arguments:
    """Read the arguments of a call.

    Raises:
        UnusableCall: Some cannot be used; says which, with value and remedy, a line each.
    """
    try:
        read: Arguments = tool.arguments.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        raise UnusableCall("\n".join(_refused(each, tool) for each in found)) from None
    return read


def is_of_the_caller(error: Exception) -> bool:
    """Whether the caller can put it right."""
    return isinstance(error, _OF_THE_CALLER)


def failure(error: EkphoryError, *, names_places: bool) -> str:
    """Say what failed.

    Args:
        error: What was raised.
        names_places: Whether whoever asks may read of paths and addresses of this machine.
    """
    if isinstance(error, MemoryNotFound):
        return (
            f"id={shorten(error.memory_id)}: no such memory. Take an id that a search or a "
            "listing gave."
        )
    if is_of_the_caller(error) or names_places:
        return str(error)
    return _HIDDEN


def _refused(found: Mapping[str, Any], tool: AnyTool) -> str:
    name = ".".join(str(part) for part in found["loc"])
    known = ", ".join(tool.arguments.model_fields)
    if found["type"] == "missing":
        return f"{name}: is missing. {tool.name} takes: {known}."
    value = shorten(found["input"])
    if found["type"] != "extra_forbidden":
        return f"{name}={value}: {found['msg']}."
    if name in _SCOPE_NAMES:
        return (
            f"{name}={value}: the scope comes from the server's configuration or the access key, "
            "never from a call. Leave it out."
        )
    return f"{name}={value}: no such argument. {tool.name} takes: {known}."
