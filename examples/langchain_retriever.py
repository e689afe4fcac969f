"""Memories as documents of LangChain, found and then ordered by a reranker.

pip install 'ekphory[langchain]'
python examples/langchain_retriever.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from ekphory.frameworks.langchain import EkphoryCompressor, EkphoryRetriever
from ekphory.memory import Memory

CONVERSATION = (
    ("Mara", "2026-05-02", "I sold the old car, it cost more than it was worth"),
    ("Jon", "2026-05-09", "We painted the kitchen yellow, Mara chose the colour"),
    ("Mara", "2026-06-01", "For the commute I bought a blue bicycle"),
    ("Jon", "2026-06-03", "My bicycle was stolen at the station"),
)


def chain(memory: Memory) -> Runnable[str, list[Document]]:
    """Return a chain from a question to the two documents that answer it best."""
    retriever = EkphoryRetriever(memory=memory, k=10)
    compressor = EkphoryCompressor(top_n=2)
    best = RunnableLambda(
        lambda given: compressor.compress_documents(given["documents"], given["question"])
    )
    return {"documents": retriever, "question": RunnablePassthrough()} | best


def main() -> None:
    """Remember a conversation and ask it."""
    with TemporaryDirectory() as folder, Memory(folder) as memory:
        memory.add_many(
            {"text": text, "producer": producer, "at": at} for producer, at, text in CONVERSATION
        )
        for document in chain(memory).invoke("What does Mara ride to work?"):
            told = document.metadata
            print(f"{told['relevance_score']:.2f} {told['producer']}: {document.page_content}")


if __name__ == "__main__":
    main()
