"""The endless stream of question groups that a run trains on, mixed from all sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Protocol

from recollect.errors import InvalidInput
from recollect.training.conversation_files import conversations_sha256, read_conversations
from recollect.training.groups_conversations import conversation_groups
from recollect.training.groups_crd3 import crd3_groups
from recollect.training.groups_persona import persona_groups
from recollect.training.groups_qmsum import qmsum_groups
from recollect.training.groups_reading import (
    nq_groups,
    policyqa_groups,
    squad_groups,
    timeqa_groups,
)
from recollect.training.groups_sgd import sgd_groups
from recollect.training.long_messages import with_long_messages
from recollect.training.question_groups import QuestionGroup
from recollect.training.training_rows import Row, read_rows, sha256_of

Epoch = Callable[[Random], Iterator[QuestionGroup]]
"""Makes all groups of a source once; the generator decides order, names and wording."""


Groups = Callable[[Sequence[Row], Random], Iterator[QuestionGroup]]


class TrainingSource(Protocol):
    """Rows, and what makes groups of them."""

    @property
    def name(self) -> str:
        """What a manifest calls it."""

    @property
    def groups(self) -> Groups:
        """Makes one epoch of groups."""

    def rows(self, folder: Path) -> list[Row]:
        """Read it."""

    def sha256(self, folder: Path) -> str:
        """Give its hash, hexadecimal."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file in the folder of training data."""

    name: str
    groups: Groups

    def rows(self, folder: Path) -> list[Row]:
        """Read the file."""
        return read_rows(folder / self.name)

    def sha256(self, folder: Path) -> str:
        """Give the file's hash."""
        return sha256_of(folder / self.name)


@dataclass(frozen=True, slots=True)
class OwnConversations:
    """The conversations that come with the package."""

    name: str = "conversations"
    groups: Groups = conversation_groups

    def rows(self, folder: Path) -> list[Row]:  # noqa: ARG002  they lie in the package
        """Read them; the folder has none of them."""
        return read_conversations()

    def sha256(self, folder: Path) -> str:  # noqa: ARG002  they lie in the package
        """Give one hash of all of them."""
        return conversations_sha256()


SOURCES: Mapping[str, TrainingSource] = {
    "conversations": OwnConversations(),
    "synthetic_persona_chat": SourceFile("synthetic_persona_chat.jsonl.gz", persona_groups),
    "sgd": SourceFile("sgd_train.jsonl.gz", sgd_groups),
    "crd3": SourceFile("crd3.jsonl.gz", crd3_groups),
    "qmsum": SourceFile("qmsum_train.jsonl.gz", qmsum_groups),
    "squad": SourceFile("squad_sentences.jsonl.gz", squad_groups),
    "nq_gold": SourceFile("nq_gold.jsonl.gz", nq_groups),
    "policyqa": SourceFile("policyqa.jsonl.gz", policyqa_groups),
    "timeqa": SourceFile("timeqa_train.jsonl.gz", timeqa_groups),
}


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The sources of a run.

    Attributes:
        epochs: What makes each source's groups.
        hashes: SHA-256 of each file, by its name.
    """

    epochs: Mapping[str, Epoch]
    hashes: Mapping[str, str]


def load_training_data(folder: Path, names: Sequence[str]) -> TrainingData:
    """Read the files of the named sources.

    Raises:
        DatasetError: A file is missing or malformed.
        InvalidInput: A source is not known.
    """
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise InvalidInput("mix", unknown, "no such source", f"Known are {', '.join(SOURCES)}.")
    files = {name: SOURCES[name] for name in names}
    epochs = {name: partial(file.groups, file.rows(folder)) for name, file in files.items()}
    hashes = {file.name: file.sha256(folder) for file in files.values()}
    return TrainingData(epochs, hashes)


def mixed_groups(
    epochs: Mapping[str, Epoch],
    shares: Mapping[str, float],
    *,
    seed: int,
    long_messages: float = 0.0,
) -> Iterator[QuestionGroup]:
    """Give groups without end; the same seed gives the same groups.

    Args:
        epochs: What makes each source's groups; a source begins anew when it is used up.
        shares: How often a source is drawn; need not sum to 1.
        seed: Decides everything.
        long_messages: Share of the groups in which a speaker's turns are put together.
    """
    names = [name for name in shares if shares[name] > 0]
    weights = [shares[name] for name in names]
    streams = {name: _endless(epochs[name], f"{seed}:{name}") for name in names}
    draw = Random(seed)  # noqa: S311  no secret
    joining = Random(f"{seed}:long messages")  # noqa: S311  no secret
    while True:
        group = next(streams[draw.choices(names, weights)[0]])
        joined = joining.random() < long_messages and not group.dated
        yield with_long_messages(group, joining) if joined else group


def _endless(epoch: Epoch, seed: str) -> Iterator[QuestionGroup]:
    number = 0
    while True:
        yield from epoch(Random(f"{seed}:{number}"))  # noqa: S311  no secret
        number += 1
