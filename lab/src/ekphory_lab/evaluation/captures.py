"""What `Memory.capture` keeps, drops and refuses, beside labels.

Transcripts are of the form of `capture_dev`: one JSON object a line, in gzip or not.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from ekphory import Memory
from ekphory.capture.selection import Captured
from ekphory_lab.evaluation.datasets import read_each
from ekphory_lab.evaluation.runner import Progress

LEAST_OF_A_CLASS = 7
"""So many examples a class has whose F1 counts."""


@dataclass(frozen=True, slots=True)
class LabelledCapture:
    """What of a transcript is worth remembering.

    Attributes:
        evidence: Places of the messages that say it.
        class_: What it is.
        entities: What it names.
    """

    evidence: frozenset[int]
    class_: str
    entities: frozenset[str]


@dataclass(frozen=True, slots=True)
class LabelledTranscript:
    """Messages and what is to become of them.

    Attributes:
        id: Names it.
        messages: As `Memory.capture` takes them.
        keep: What is worth remembering.
        drop: Places of messages that are worth nothing.
        secrets: Parts of messages that nothing may show.
        steering: Places of messages that try to steer a model.
    """

    id: str
    messages: tuple[Mapping[str, Any], ...]
    keep: tuple[LabelledCapture, ...]
    drop: frozenset[int]
    secrets: tuple[str, ...]
    steering: frozenset[int]


def read_labelled_transcripts(file: Path) -> list[LabelledTranscript]:
    """Read labelled transcripts.

    Raises:
        DatasetError: A line is not of that form, or there is none.
    """
    return read_each(file, _transcript_of, what="labelled transcript")


def _transcript_of(row: Mapping[str, Any]) -> LabelledTranscript:
    keep = (
        LabelledCapture(frozenset(each["evidence"]), each["class"], _folded(each["entities"]))
        for each in row["keep"]
    )
    return LabelledTranscript(
        id=row["id"],
        messages=tuple(row["messages"]),
        keep=tuple(keep),
        drop=frozenset(row["drop"]),
        secrets=tuple(row["secrets"]),
        steering=frozenset(row["injection"]),
    )


def _folded(names: Sequence[str]) -> frozenset[str]:
    return frozenset(name.casefold() for name in names)


@dataclass(slots=True)
class CaptureCounts:
    """What was found, over all transcripts.

    Attributes:
        labelled, kept, found: Labels, kept memories, and labels that a kept memory holds with at
            most one message more.
        classes: Of each found one the wanted and the given class.
        named: Entities that are right, given and wanted, of the found ones.
        to_drop, dropped: Messages to drop, and those of them in no evidence.
        secrets: How many of them a memory, a search or a file under the store still shows.
        steering: Messages that steer and are evidence.
    """

    labelled: int = 0
    kept: int = 0
    found: int = 0
    classes: list[tuple[str, str]] = field(default_factory=list)
    named: Counter[str] = field(default_factory=Counter)
    to_drop: int = 0
    dropped: int = 0
    secrets: int = 0
    steering: int = 0

    def add(self, transcript: LabelledTranscript, kept: Sequence[Captured], shown: str) -> None:
        """Count one transcript, of which `shown` is all text that can be found afterwards."""
        evidence = [frozenset(each.evidence) for each in kept]
        used: frozenset[int] = frozenset().union(*evidence)
        self.labelled += len(transcript.keep)
        self.kept += len(kept)
        for wanted in transcript.keep:
            self._add_label(wanted, kept, evidence)
        self.to_drop += len(transcript.drop)
        self.dropped += len(transcript.drop - used)
        self.steering += len(transcript.steering & used)
        self.secrets += sum(secret in shown for secret in transcript.secrets)

    def _add_label(
        self, wanted: LabelledCapture, kept: Sequence[Captured], evidence: Sequence[frozenset[int]]
    ) -> None:
        for captured, its_own in zip(kept, evidence, strict=True):
            if wanted.evidence <= its_own and len(its_own - wanted.evidence) <= 1:
                names = _folded([each.text for each in captured.entities])
                self.found += 1
                self.classes.append((wanted.class_, captured.class_))
                right = len(names & wanted.entities)
                self.named.update(right=right, given=len(names), wanted=len(wanted.entities))
                return

    def figures(self) -> dict[str, float]:
        """Return the shares and counts that are reported."""
        common = Counter(wanted for wanted, _ in self.classes)
        scores = [self._f1(name) for name, n in common.items() if n >= LEAST_OF_A_CLASS]
        told = self.named["given"] + self.named["wanted"]
        return {
            "kept": round(self.found / max(1, self.labelled), 4),
            "size": round(self.kept / max(1, self.labelled), 4),
            "dropped": round(self.dropped / max(1, self.to_drop), 4),
            "class accuracy": round(sum(a == b for a, b in self.classes) / max(1, self.found), 4),
            "class F1": round(fmean(scores), 4) if scores else 0.0,
            "entities F1": round(2 * self.named["right"] / max(1, told), 4),
            "secrets": self.secrets,
            "steering": self.steering,
        }

    def _f1(self, name: str) -> float:
        hits = sum(wanted == given == name for wanted, given in self.classes)
        told = sum((wanted == name) + (given == name) for wanted, given in self.classes)
        return 2 * hits / told


def measure_captures(
    transcripts: Sequence[LabelledTranscript], *, progress: Progress
) -> dict[str, float]:
    """Capture each transcript into a store of its own, and count."""
    counts = CaptureCounts()
    for number, transcript in enumerate(transcripts, start=1):
        with (
            tempfile.TemporaryDirectory() as root,
            Memory(f"{root}/store", project="capture") as memory,
        ):
            report = memory.capture(transcript.messages, session=transcript.id)
            memory.settle(timeout=120)
            counts.add(transcript, report.kept, "\n".join(_shown(memory, Path(root), transcript)))
        progress("capture", number, len(transcripts))
    return counts.figures()


def _shown(memory: Memory, root: Path, transcript: LabelledTranscript) -> Iterator[str]:
    """Yield all text that a person or a program could find of a store."""
    for record in memory.list(limit=1000):
        yield f"{record}\n{record.text}"
    for message in transcript.messages:
        yield memory.search(message["content"][:500], k=20).to_prompt(max_tokens=4000)
    for path in root.rglob("*"):
        if path.is_file():
            yield path.read_bytes().decode("utf-8", "ignore")
