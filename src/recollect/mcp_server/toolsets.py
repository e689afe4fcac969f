"""The sets of tools that a server can offer."""

from __future__ import annotations

from typing import Literal

from recollect.mcp_server.explain import EXPLAIN
from recollect.mcp_server.forget import FORGET
from recollect.mcp_server.listing import LIST
from recollect.mcp_server.memmachine import ADD_MEMORY, DELETE_MEMORY, SEARCH_MEMORY
from recollect.mcp_server.recall import RECALL
from recollect.mcp_server.remember import REMEMBER
from recollect.mcp_server.tool import AnyTool
from recollect.mcp_server.update import UPDATE

Toolset = Literal["recollect", "memmachine"]

# A model reads all of them in every conversation: six at most.
TOOLSETS: dict[Toolset, tuple[AnyTool, ...]] = {
    "recollect": (REMEMBER, RECALL, FORGET, UPDATE, LIST, EXPLAIN),
    "memmachine": (ADD_MEMORY, SEARCH_MEMORY, DELETE_MEMORY),
}
