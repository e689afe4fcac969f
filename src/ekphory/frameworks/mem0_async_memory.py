"""`AsyncMemory`, shaped as mem0's: the verbs of `mem0_memory.Memory`, awaitable."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ekphory.frameworks.mem0_memory import Memory
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.reranker import RerankingModel

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _awaitable(
    verb: Callable[Concatenate[Memory, Arguments], Result],
) -> Callable[Concatenate[AsyncMemory, Arguments], Coroutine[Any, Any, Result]]:
    @functools.wraps(verb)
    async def call(
        self: AsyncMemory, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await asyncio.to_thread(verb, self.memory, *args, **kwargs)

    return call


class AsyncMemory:
    """A `Memory` of `mem0_memory` whose verbs run in threads; the arguments are the same."""

    def __init__(
        self,
        config: object = None,
        *,
        path: str | Path | None = None,
        org: str | None = None,
        project: str | None = None,
        embedder: EmbeddingModel | None = None,
        reranker: RerankingModel | None = None,
    ) -> None:
        self.memory = Memory(
            config, path=path, org=org, project=project, embedder=embedder, reranker=reranker
        )

    @classmethod
    async def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open the store of `EKPHORY_STORE`; awaited, as in mem0."""
        return cls(config_dict)

    add = _awaitable(Memory.add)
    search = _awaitable(Memory.search)
    get = _awaitable(Memory.get)
    get_all = _awaitable(Memory.get_all)
    update = _awaitable(Memory.update)
    delete = _awaitable(Memory.delete)
    delete_all = _awaitable(Memory.delete_all)
    history = _awaitable(Memory.history)
    reset = _awaitable(Memory.reset)
    close = _awaitable(Memory.close)
