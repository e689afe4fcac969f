"""A question and a passage in plain words, for models that read two texts and nothing else."""

from __future__ import annotations

from ekphory.models.rerank_input import RerankPassage, RerankQuery
from ekphory.models.spoken_date import spoken_date


def query_in_words(query: RerankQuery) -> str:
    """Put before the question what is known of it; a bare question stays as it is.

    For example, on three lines: `The dialogue so far:`, `Anna: I moved to Lisbon.`,
    `Asked on 21 November 2026: when was that?`. The instruction is left out.
    """
    asked = query.text
    if query.now is not None:
        asked = f"Asked on {spoken_date(query.now)}: {query.text}"
    elif query.context:
        asked = f"Asked: {query.text}"
    said = ["The dialogue so far:", *query.context] if query.context else []
    return "\n".join([*said, asked])


def passage_in_words(passage: RerankPassage) -> str:
    """Put date and type before the passage: `[8 May 2023, semantic memory] Anna: I like tea`."""
    known: list[str] = []
    if passage.at is not None:
        known.append(spoken_date(passage.at))
    if passage.type is not None and passage.type != "unknown":
        known.append(f"{passage.type} memory")
    return f"[{', '.join(known)}] {passage.text}" if known else passage.text
