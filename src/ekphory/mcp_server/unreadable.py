"""Messages that the SDK cannot read: refused in words, where it would leave the client waiting."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any

from anyio.streams.memory import MemoryObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

Incoming = SessionMessage | Exception
_REMEDY = (
    "The message cannot be read. Send JSON-RPC 2.0, one message a line, in which no text holds "
    "half of a surrogate pair."
)


async def hand_on(
    incoming: AsyncIterable[Incoming],
    readable: MemoryObjectSendStream[Incoming],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Hand on what can be read, and answer requests that cannot be."""
    async with readable:
        async for item in incoming:
            refusal = _refusal(item) if isinstance(item, ValidationError) else None
            if refusal is None:
                await readable.send(item)
            else:
                await answer(refusal)


def _refusal(error: ValidationError) -> SessionMessage | None:
    """Give the answer to the request in an unreadable line; None where no request is found."""
    line = error.errors(include_url=False)[0]["input"]
    try:
        # More lenient than the SDK, as far as is needed to find the id.
        message: Any = json.loads(line) if isinstance(line, str) else None
    except ValueError:
        return None
    is_request = isinstance(message, dict) and "method" in message
    request_id = message.get("id") if is_request else None
    if not isinstance(request_id, str | int):
        return None
    problem = types.ErrorData(code=types.PARSE_ERROR, message=_REMEDY)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=problem))
