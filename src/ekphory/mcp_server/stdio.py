"""Serving the process that started this one, over its pipes."""

from __future__ import annotations

import logging.config
import signal
from pathlib import Path

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from ekphory.config import Settings
from ekphory.mcp_server.calls import Calls
from ekphory.mcp_server.memories import Memories, configured_scope
from ekphory.mcp_server.protocol import protocol_server
from ekphory.mcp_server.toolsets import Toolset, tools_of
from ekphory.mcp_server.unreadable import Incoming, hand_on
from ekphory.server.json_lines import LOG


def serve_stdio(settings: Settings, toolset: Toolset, *, catalog: Path | None = None) -> None:
    """Serve until the other end closes the pipe; on return every acknowledged write is on disk.

    Standard output carries the protocol alone; the log goes to standard error. Ctrl-C ends the
    process at once, which loses nothing that was acknowledged.

    Args:
        settings: The store, its models, and the scope that every call is bound to.
        toolset: Which tools are offered.
        catalog: File of the catalog, for MemMachine's tools; None for one in the store's directory.

    Raises:
        EkphoryError: The store or a model cannot be used.
    """
    # A thread waits for the pipe, and no exception would reach it there.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.config.dictConfig(LOG)
    memories = Memories(settings, catalog=catalog)
    calls = Calls(memories, tools_of(toolset, memories), configured_scope(settings))
    server = protocol_server(calls, caller_of=lambda _: None, on_end=memories.close)
    anyio.run(_serve, server)


async def _serve(server: Server[None]) -> None:
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream[Incoming](0)
        tasks.start_soon(hand_on, incoming, send, outgoing.send)
        async with receive:
            await server.run(receive, outgoing, server.create_initialization_options())
