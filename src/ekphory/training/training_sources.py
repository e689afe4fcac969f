"""The sources that training draws from: where their rows lie, and what makes groups of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ekphory.training.conversation_files import CONVERSATIONS, read_conversations
from ekphory.training.document_files import DOCUMENTS, read_documents
from ekphory.training.groups_conversations import conversation_groups
from ekphory.training.groups_crd3 import crd3_groups
from ekphory.training.groups_documents import document_groups
from ekphory.training.groups_persona import persona_groups
from ekphory.training.groups_qmsum import qmsum_groups
from ekphory.training.groups_reading import (
    nq_groups,
    policyqa_groups,
    squad_groups,
    timeqa_groups,
)
from ekphory.training.groups_sgd import sgd_groups
from ekphory.training.question_groups import QuestionGroup
from ekphory.training.training_rows import Row, read_rows, sha256_of, sha256_of_texts


@dataclass(frozen=True, slots=True)
class TrainingSource:
    """Rows, and what makes groups of them.

    Attributes:
        name: Its file in the folder of training data; what a manifest calls it.
        groups: Makes one epoch of groups.
        read, hashed: Read the rows, and give their SHA-256.
        packaged: Where it lies in the package; None for a file in the folder of training data.
    """

    name: str
    groups: Callable[[Sequence[Row], Random], Iterator[QuestionGroup]]
    read: Callable[[Path], list[Row]] = read_rows
    hashed: Callable[[Path], str] = sha256_of
    packaged: Path | None = None

    def rows(self, folder: Path) -> list[Row]:
        """Read it.

        Raises:
            DatasetError: It is missing or malformed.
        """
        return self.read(self._path(folder))

    def sha256(self, folder: Path) -> str:
        """Give its hash, hexadecimal."""
        return self.hashed(self._path(folder))

    def _path(self, folder: Path) -> Path:
        return self.packaged or folder / self.name


SOURCES: Mapping[str, TrainingSource] = {
    "conversations": TrainingSource(
        "conversations",
        conversation_groups,
        read=read_conversations,
        hashed=sha256_of_texts,
        packaged=CONVERSATIONS,
    ),
    "documents": TrainingSource(
        "documents",
        document_groups,
        read=read_documents,
        hashed=sha256_of_texts,
        packaged=DOCUMENTS,
    ),
    "synthetic_persona_chat": TrainingSource("synthetic_persona_chat.jsonl.gz", persona_groups),
    "sgd": TrainingSource("sgd_train.jsonl.gz", sgd_groups),
    "crd3": TrainingSource("crd3.jsonl.gz", crd3_groups),
    "qmsum": TrainingSource("qmsum_train.jsonl.gz", qmsum_groups),
    "squad": TrainingSource("squad_sentences.jsonl.gz", squad_groups),
    "nq_gold": TrainingSource("nq_gold.jsonl.gz", nq_groups),
    "policyqa": TrainingSource("policyqa.jsonl.gz", policyqa_groups),
    "timeqa": TrainingSource("timeqa_train.jsonl.gz", timeqa_groups),
}
