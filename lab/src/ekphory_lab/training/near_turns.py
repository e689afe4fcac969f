"""Pairs of memories that a store finds near each other, and that mostly change nothing.

What the change reader is asked about is what the store finds near a new memory. In conversations
that is mostly talk about the same things; few of it revises anything. So such pairs are trained on
as unrelated, but for turns that a written question about a change names. The written stores in
`stores/`, of facts, instructions and wishes, change nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekphory.models.changes import StatementPair
from ekphory.models.embedder import EmbeddingModel
from ekphory.models.late_bound import read_passages
from ekphory.types import MemoryRecord
from ekphory_lab.training import changes, texts
from ekphory_lab.training.change_topics import Topic, read_topics, topic_pairs
from ekphory_lab.training.changes import LabelledPair, Part, Scenario, of_part, read_scenarios

# How many pairs the change reader is trained on, of each kind.

UNRELATED, PLAIN_UNRELATED, PERSONS_UNRELATED = 3, 8, 24
"""Most unrelated pairs of a scenario that tells changes by their consequences, or plainly, or that
is all that is known of a person."""
EVERY_RARE = 4
"""Of the scenarios in files of rare kinds, which are regular, one in so many."""
OF_A_TOPIC = 12
NEAR_TURNS = 4_000
"""Pairs of neighbouring talk."""
NEAR_MEMORIES, NEAR_ANSWERS = 1, 1
"""How often each memory of a written store, and each turn of a chat with an assistant, is paired
with one near it."""
ASIDES = 4
"""Of all pairs one in so many has a turn about something else beside a text."""


def training_pairs(embedder: EmbeddingModel) -> list[LabelledPair]:
    """Return all pairs that the change reader is trained on."""
    conversations = [*texts.read_conversations(), *texts.read_conversations(texts.EXCHANGES)]
    assistants = [row for row in conversations if row["kind"] == "assistant"]
    pairs = written_pairs(read_scenarios(), read_topics())
    pairs += near_turns(conversations, embedder, most=NEAR_TURNS)
    stores = as_conversations(read_stores("training"))
    pairs += near_each(stores, embedder, each=NEAR_MEMORIES)
    pairs += near_each(assistants, embedder, each=NEAR_ANSWERS)
    return with_asides(pairs, conversations, one_in=ASIDES)


def written_pairs(scenarios: Sequence[Scenario], topics: Sequence[Topic]) -> list[LabelledPair]:
    """Return the pairs of the written scenarios and topics."""
    rest = list(scenarios)
    drawn = []
    for beginning in (changes.PERSONS, changes.PLAIN, changes.RARE):
        drawn.append([each for each in rest if each.name.startswith(beginning)])
        rest = [each for each in rest if not each.name.startswith(beginning)]
    persons, plain, rare = drawn
    oblique = [*rest, *rare[::EVERY_RARE]]
    return [
        *changes.pairs_for("training", persons, most_unrelated=PERSONS_UNRELATED),
        *changes.pairs_for("training", plain, most_unrelated=PLAIN_UNRELATED),
        *changes.pairs_for("training", oblique, most_unrelated=UNRELATED),
        *topic_pairs("training", topics, each=OF_A_TOPIC),
    ]


# Pairs that lie near each other.

STORES = Path(__file__).parent / "stores"
STORE_STATEMENTS = 20
"""A scenario of so many statements is a store too, in which a little changes."""
NEAREST = 5
"""So many of the turns nearest to one are paired with it."""
NEAREST_BEFORE = 6
"""The same among a few turns before it, which may be about something else altogether: so many are
compared where a store holds few memories."""
MOST_BEFORE = 64
LONGEST_ASIDE = 120
"""Characters of a turn that is put beside a statement."""


def near_turns(
    rows: Sequence[Mapping[str, Any]], embedder: EmbeddingModel, *, most: int, seed: int = 25
) -> list[LabelledPair]:
    """Return pairs of turns, as many of each conversation.

    Args:
        rows: Conversations, as `read_conversations` gives them.
        embedder: Tells what lies near.
        most: Pairs in all.
        seed: Decides which turns are taken.
    """
    chance = Random(seed)  # noqa: S311  no secret
    share = -(-most // max(1, len(rows)))
    found: list[LabelledPair] = []
    for row in rows:
        found += _of_conversation(row, embedder, chance, most=share)
    return found[:most]


def near_each(
    rows: Sequence[Mapping[str, Any]], embedder: EmbeddingModel, *, each: int, seed: int = 25
) -> list[LabelledPair]:
    """Return pairs of turns, each turn so many times with one near it.

    Args:
        rows: Conversations, or written stores `as_conversations`.
        embedder: Tells what lies near.
        each: How often each is paired.
        seed: Decides with which.
    """
    chance = Random(seed)  # noqa: S311  no secret
    found: list[LabelledPair] = []
    for _ in range(each):
        for row in rows:
            found += _of_conversation(row, embedder, chance)
    return found


def with_asides(
    pairs: Sequence[LabelledPair],
    rows: Sequence[Mapping[str, Any]],
    *,
    one_in: int,
    seed: int = 25,
) -> list[LabelledPair]:
    """Return the pairs, one in so many with a turn about something else before or after a text.

    People tell what changed among other things. Both texts get turns of one conversation, or one
    of them does.

    Args:
        pairs: The pairs.
        rows: Conversations, as `read_conversations` gives them.
        one_in: One pair in so many gets asides.
        seed: Decides which pairs, and which turns.
    """
    chance = Random(seed)  # noqa: S311  no secret
    talk = [
        [turn["text"] for turn in row["turns"] if len(turn["text"]) <= LONGEST_ASIDE]
        for row in rows
    ]
    talk = [texts for texts in talk if len(texts) > 1]
    found = []
    for pair, kind in pairs:
        if chance.randrange(one_in) == 0:
            asides = chance.sample(chance.choice(talk), 2)
            asides[chance.randrange(2)] *= chance.randrange(2)
            pair = StatementPair(
                _beside(pair.older, asides[0], chance), _beside(pair.newer, asides[1], chance)
            )
        found.append((pair, kind))
    return found


def _beside(record: MemoryRecord, aside: str, chance: Random) -> MemoryRecord:
    texts = [record.text, aside]
    chance.shuffle(texts)
    return replace(record, text=" ".join(texts).strip())


def read_stores(part: Part) -> list[Scenario]:
    """Return the written stores of one part: those in which nothing changes, and the others."""
    large = [each for each in read_scenarios() if len(each.statements) >= STORE_STATEMENTS]
    return of_part(part, [*read_scenarios(STORES), *large])


def held_back_stores() -> list[tuple[dict[str, str], ...]]:
    """Return the memories of written stores that no reader was trained or fitted on."""
    return [store.memories() for store in of_part("held back", read_scenarios(STORES))]


def as_conversations(stores: Sequence[Scenario]) -> list[dict[str, Any]]:
    """Return written stores two and two as conversations, in the order of their dates.

    Two together hold things that have nothing to do with each other, as stores of people do. Which
    two turns are written to be related stands beside them, by the turns' keys.
    """
    half = (len(stores) + 1) // 2
    found = []
    for place in range(half):
        turns: list[dict[str, Any]] = [
            {"text": each.text, "at": each.at, "speaker": each.producer, "key": (store.name, key)}
            for store in stores[place::half]
            for key, each in store.statements.items()
        ]
        related = {
            ((store.name, older), (store.name, newer))
            for store in stores[place::half]
            for older, newer in store.relations
        }
        turns.sort(key=lambda turn: turn["at"])
        found.append({"turns": turns, "questions": [], "related": related})
    return found


def _of_conversation(
    row: Mapping[str, Any], embedder: EmbeddingModel, chance: Random, *, most: int | None = None
) -> list[LabelledPair]:
    turns = [_record(place, turn) for place, turn in enumerate(row["turns"])]
    vectors = read_passages(embedder, [turn.indexed_text for turn in turns]).content
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    changed = {
        turn
        for question in row["questions"]
        if question["category"] == "update"
        for turn in question["turns"]
    }
    pairs = set()
    drawn = len(turns) if most is None else min(most, len(turns))
    for place in chance.sample(range(len(turns)), drawn):
        other = _draw_near(cosines[place], place, chance)
        older, newer = sorted((place, other))
        keys = row["turns"][older].get("key"), row["turns"][newer].get("key")
        if not {older, newer} & changed and keys not in row.get("related", ()):
            pairs.add((older, newer))
    return [
        (StatementPair(turns[older], turns[newer]), "unrelated") for older, newer in sorted(pairs)
    ]


def _draw_near(cosines: NDArray[np.float32], place: int, chance: Random) -> int:
    """Return a turn that a store would compare with one: of all, or of a few before it."""
    if place == 0 or chance.random() < 1 / 2:
        # Itself comes last.
        return int(chance.choice(np.argsort(-cosines)[:-1][:NEAREST].tolist()))
    start = max(0, place - chance.randint(1, MOST_BEFORE))
    nearest = np.argsort(-cosines[start:place])[:NEAREST_BEFORE]
    return start + int(chance.choice(nearest.tolist()))


def _record(place: int, turn: Mapping[str, Any]) -> MemoryRecord:
    at = turn["at"] if isinstance(turn["at"], datetime) else datetime.fromisoformat(turn["at"])
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return MemoryRecord(
        id=str(place), text=turn["text"], at=at, created_at=at, producer=turn["speaker"]
    )
