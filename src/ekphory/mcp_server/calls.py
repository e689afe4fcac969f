"""Calls of tools: checked, run in the caller's scope, answered in data or in words, and logged."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ekphory.errors import EkphoryError, shorten
from ekphory.mcp_server.memories import Memories, scope_for
from ekphory.mcp_server.problems import (
    DEFECT,
    UnusableCall,
    checked_arguments,
    failure,
    is_of_the_caller,
)
from ekphory.mcp_server.tool import NEEDED, AnyTool
from ekphory.scope import Scope
from ekphory.server.caller import Caller
from ekphory.server.json_lines import places_of

Outcome = Literal["done", "refused", "failed", "defect"]
_log = logging.getLogger("ekphory.mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a client asks.

    Attributes:
        name: The tool's name.
        arguments: What is given to it.
        caller: Whoever has come in by HTTP; None for the process at the other end of the pipe,
            which is this machine's user.
    """

    name: str
    arguments: Mapping[str, Any]
    caller: Caller | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client is told.

    Attributes:
        texts: For the model.
        data: For programs; None where the call failed.
    """

    texts: tuple[str, ...]
    data: dict[str, Any] | None = None


class Calls:
    """Answers the calls of one set of tools over one store; safe to use from several threads."""

    def __init__(self, memories: Memories, tools: Sequence[AnyTool], scope: Scope) -> None:
        """Make them.

        Args:
            memories: The open store.
            tools: What is offered.
            scope: What every call is bound to; a key may narrow it.
        """
        self._memories = memories
        self._scope = scope
        self._tools = {tool.name: tool for tool in tools}

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """The tools that are offered."""
        return tuple(self._tools.values())

    def answer(self, call: Call) -> Reply:
        """Answer one call; whatever goes wrong is told in the reply."""
        started = time.perf_counter()
        failed: Exception | None = None
        try:
            reply = self._answered(call)
        except EkphoryError as error:
            failed = error
            reply = Reply((failure(error, names_places=call.caller is None),))
        except Exception as error:  # noqa: BLE001  outermost: told without its text, and logged
            failed = error
            reply = Reply((DEFECT,))
        self._note(call, time.perf_counter() - started, failed)
        return reply

    def _answered(self, call: Call) -> Reply:
        tool = self._tools.get(call.name)
        if tool is None:
            names = ", ".join(self._tools)
            raise UnusableCall(f"There is no tool {shorten(call.name)}. There are: {names}.")
        if call.caller is not None:
            call.caller.check_rights(NEEDED[tool.effect])
        given = checked_arguments(tool, call.arguments)
        with self._memories.opened(scope_for(call.caller, self._scope)) as memory:
            answered = tool.run(memory, given)
        return Reply(answered.texts, answered.data.model_dump(mode="json", exclude_none=True))

    def _note(self, call: Call, seconds: float, failed: Exception | None) -> None:
        fields: dict[str, Any] = {
            # A name may be any text: only those that are known are told.
            "tool": call.name if call.name in self._tools else "unknown",
            "outcome": _outcome(failed),
            "milliseconds": round(seconds * 1000, 2),
            "caller": call.caller.name if call.caller else None,
        }
        if failed is not None and not is_of_the_caller(failed):
            fields["exception"] = places_of(failed)
            _log.error("call", extra={"fields": fields})
        else:
            _log.info("call", extra={"fields": fields})


def _outcome(failed: Exception | None) -> Outcome:
    if failed is None:
        return "done"
    if is_of_the_caller(failed):
        return "refused"
    return "failed" if isinstance(failed, EkphoryError) else "defect"
