"""The sets of tools that a server can offer."""

from __future__ import annotations

from typing import Literal

from ekphory.mcp_server.explain import EXPLAIN
from ekphory.mcp_server.forget import FORGET
from ekphory.mcp_server.listing import LIST
from ekphory.mcp_server.memmachine import memmachine_tools
from ekphory.mcp_server.memories import Memories
from ekphory.mcp_server.project_features import ProjectFeatures
from ekphory.mcp_server.recall import RECALL
from ekphory.mcp_server.remember import REMEMBER
from ekphory.mcp_server.tool import AnyTool
from ekphory.mcp_server.update import UPDATE

Toolset = Literal["ekphory", "memmachine"]

# A model reads all of them in every conversation: six at most.
_OWN: tuple[AnyTool, ...] = (REMEMBER, RECALL, FORGET, UPDATE, LIST, EXPLAIN)


def tools_of(toolset: Toolset, memories: Memories) -> tuple[AnyTool, ...]:
    """Give a set of tools over a store.

    Raises:
        EkphoryError: MemMachine's tools need a catalog, and there can be none.
    """
    if toolset == "ekphory":
        return _OWN
    return memmachine_tools(ProjectFeatures(memories.service()))
