"""The sets of tools that a server can offer."""

from __future__ import annotations

from typing import Literal

from recollect.mcp_server.explain import EXPLAIN
from recollect.mcp_server.forget import FORGET
from recollect.mcp_server.listing import LIST
from recollect.mcp_server.memmachine import memmachine_tools
from recollect.mcp_server.memories import Memories
from recollect.mcp_server.project_features import ProjectFeatures
from recollect.mcp_server.recall import RECALL
from recollect.mcp_server.remember import REMEMBER
from recollect.mcp_server.tool import AnyTool
from recollect.mcp_server.update import UPDATE

Toolset = Literal["recollect", "memmachine"]

# A model reads all of them in every conversation: six at most.
_OWN: tuple[AnyTool, ...] = (REMEMBER, RECALL, FORGET, UPDATE, LIST, EXPLAIN)


def tools_of(toolset: Toolset, memories: Memories) -> tuple[AnyTool, ...]:
    """Give a set of tools over a store.

    Raises:
        RecollectError: MemMachine's tools need a catalog, and there can be none.
    """
    if toolset == "recollect":
        return _OWN
    return memmachine_tools(ProjectFeatures(memories.service()))
