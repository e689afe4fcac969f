"""`AsyncMemory`: the same verbs as `Memory`, awaitable, each made from the one implementation."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ekphory.agent.cancellation import cancellable
from ekphory.memory import Memory
from ekphory.models.chat import Chat
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RerankingModel
from ekphory.retrieval.pipeline import Pipeline

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _awaitable(
    verb: Callable[Concatenate[Memory, Arguments], Result],
) -> Callable[Concatenate[AsyncMemory, Arguments], Coroutine[Any, Any, Result]]:
    @functools.wraps(verb)
    async def call(
        self: AsyncMemory, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        cancelled = threading.Event()
        with cancellable(cancelled):
            try:
                return await asyncio.to_thread(verb, self.memory, *args, **kwargs)
            except asyncio.CancelledError:
                # A session of the agent looks for this, and ends.
                cancelled.set()
                raise

    return call


class AsyncMemory:
    """A `Memory` whose verbs run in threads and are awaited.

    Example:
        async with AsyncMemory("./memories") as memory:
            await memory.add("The staging key rotates on Mondays")
    """

    def __init__(  # noqa: PLR0913  the scope has five fields
        self,
        path: str | Path,
        *,
        org: str | None = None,
        project: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        embedder: EmbeddingModel | str | None = None,
        reranker: RerankingModel | str | None = None,
        chat: Chat | str | None = None,
        preset: str | Pipeline | None = None,
    ) -> None:
        self.memory = Memory(
            path,
            org=org,
            project=project,
            agent=agent,
            user=user,
            session=session,
            embedder=embedder,
            reranker=reranker,
            chat=chat,
            preset=preset,
        )

    add = _awaitable(Memory.add)
    add_messages = _awaitable(Memory.add_messages)
    add_many = _awaitable(Memory.add_many)
    add_exported = _awaitable(Memory.add_exported)
    search = _awaitable(Memory.search)
    get = _awaitable(Memory.get)
    list = _awaitable(Memory.list)
    count = _awaitable(Memory.count)
    history = _awaitable(Memory.history)
    update = _awaitable(Memory.update)
    forget = _awaitable(Memory.forget)
    export = _awaitable(Memory.export)
    health = _awaitable(Memory.health)
    repair = _awaitable(Memory.repair)
    verify = _awaitable(Memory.verify)
    close = _awaitable(Memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
