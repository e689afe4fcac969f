"""Memories as nodes of LlamaIndex, found and then ordered by a reranker.

pip install 'ekphory[llama-index]'
python examples/llama_index_retriever.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from ekphory.frameworks.llama_index import EkphoryRerank, EkphoryRetriever
from ekphory.memory import Memory

CONVERSATION = (
    ("Mara", "2026-05-02", "I sold the old car, it cost more than it was worth"),
    ("Jon", "2026-05-09", "We painted the kitchen yellow, Mara chose the colour"),
    ("Mara", "2026-06-01", "For the commute I bought a blue bicycle"),
    ("Jon", "2026-06-03", "My bicycle was stolen at the station"),
)


def query_engine(memory: Memory) -> RetrieverQueryEngine:
    """Return an engine that answers from the two memories which answer a question best."""
    return RetrieverQueryEngine.from_args(
        EkphoryRetriever(memory, k=10),
        # Stands in for a language model: put the one you use here.
        llm=MockLLM(),
        node_postprocessors=[EkphoryRerank(top_n=2)],
    )


def main() -> None:
    """Remember a conversation and ask it."""
    with TemporaryDirectory() as folder, Memory(folder) as memory:
        memory.add_many(
            {"text": text, "producer": producer, "at": at} for producer, at, text in CONVERSATION
        )
        answer = query_engine(memory).query("What does Mara ride to work?")
        for found in answer.source_nodes:
            print(f"{found.score:.2f} {found.metadata['producer']}: {found.text}")


if __name__ == "__main__":
    main()
