"""A graph of LangGraph that remembers between runs. It needs no language model.

pip install 'ekphory[langgraph]'
python examples/langgraph_store.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from ekphory.frameworks.langgraph import EkphoryStore
from ekphory.memory import Memory

NAMESPACE = ("preferences", "mara")


class State(TypedDict, total=False):
    """What one run is about.

    Attributes:
        said: What the user says.
        recalled: What was said before that fits best, with its probability.
    """

    said: str
    recalled: list[tuple[float, str]]


def recall(state: State, *, store: BaseStore) -> State:
    """Look up what fits."""
    found = store.search(NAMESPACE, query=state["said"], limit=1)
    return {"recalled": [(item.score or 0.0, item.value["text"]) for item in found]}


def remember(state: State, *, store: BaseStore) -> State:
    """Keep what was said, unless it was a question."""
    if not state["said"].endswith("?"):
        store.put(NAMESPACE, state["said"], {"text": state["said"]})
    return {}


def compiled(store: BaseStore) -> CompiledStateGraph:
    """Return the graph, with a store."""
    builder = StateGraph(State)
    builder.add_node("recall", recall)
    builder.add_node("remember", remember)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "remember")
    builder.add_edge("remember", END)
    return builder.compile(store=store)


def main() -> None:
    """Tell the graph something, and ask it in another run, as after a restart."""
    with TemporaryDirectory() as folder:
        with Memory(folder) as memory:
            graph = compiled(EkphoryStore(memory))
            graph.invoke({"said": "I would rather take the train than fly"})
            graph.invoke({"said": "My sister is called Ines"})
        with Memory(folder) as memory:
            graph = compiled(EkphoryStore(memory))
            for question in ("How do I like to travel?", "What is my sister's name?"):
                ((probability, text),) = graph.invoke({"said": question})["recalled"]
                print(f"{question} {text} ({probability:.2f})")


if __name__ == "__main__":
    main()
