"""`ekphory train` of what reads statements and dialogues: changes, captures, questions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ekphory.cli.command import command, print_result, show_note, step_bar
from ekphory.cli.options import OutputOptions
from ekphory.errors import InvalidInput
from ekphory_lab.cli.train_commands import (
    TargetOption,
    fitted_target,
    leave_changes_undetected,
    print_measured,
    require_torch,
)

if TYPE_CHECKING:
    from ekphory_lab.training.upper_layers import UpperLayers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderRun:
    """Where a reader's training begins, and where it writes.

    Attributes:
        base (--base DIR): all-MiniLM-L6-v2, in floats.
        target (--target DIR): Of the run; goes on where it is.
    """

    base: Path
    target: Path

    def check(self) -> None:
        """Check that there are weights to begin from, before minutes go into the pairs.

        Raises:
            InvalidInput: There are none.
        """
        if not (self.base / "model.safetensors").is_file():
            remedy = "Give the folder of all-MiniLM-L6-v2, or the folder model of a run"
            raise InvalidInput("base", str(self.base), "holds no model.safetensors", remedy)

    def save(self, model: UpperLayers) -> Path:
        """Write what was trained, and return its folder."""
        from ekphory_lab.training.run_files import MODEL_FOLDER
        from ekphory_lab.training.upper_layers import save_upper_layers

        folder = self.target / MODEL_FOLDER
        save_upper_layers(model, self.base, folder)
        return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderExport:
    """What is exported, and where to.

    Attributes:
        source (--source DIR): The folder model of a run, or an exported reranker.
        target (--target DIR): Gets the ONNX model.
    """

    source: Path
    target: Path


# `ekphory train export-shared-layers`.


@command
def export_shared_layers(output: OutputOptions, places: ReaderExport) -> None:
    """Export the two lower layers of a reranker, above which readers are trained."""
    from ekphory_lab.training.upper_export import export_shared_layers as export

    revision = export(places.source, places.target)
    shown = {"target": places.target, "revision": revision}
    print_result(output, shown, f"{places.target}: revision {revision}")


# `ekphory train asked-state`.


@command
def asked_state(output: OutputOptions, target: TargetOption = None) -> None:
    """Learn which questions ask for an earlier state, and write it; no evaluation data is read."""
    from ekphory.retrieval.asked_state import ASKED_STATE_FILE
    from ekphory.retrieval.calibration import write_fitted
    from ekphory_lab.training.asked_state import learn_asked_state
    from ekphory_lab.training.changes import read_scenarios

    place = fitted_target(target, ASKED_STATE_FILE.name)
    file = learn_asked_state(read_scenarios(), command="ekphory train asked-state")
    write_fitted(place, file)
    shown = {"target": place, "measured": file.measured, "weights": len(file.values["weights"])}
    print_measured(output, shown, file.measured, f"{place}: written")


# `ekphory train labels`.


@command
def labels(output: OutputOptions, target: TargetOption = None) -> None:
    """Fit when a label fits a text, and write it; no evaluation data is read."""
    from ekphory.capture.services import LABELS_FILE
    from ekphory.models.loading import load_embedder
    from ekphory.retrieval.calibration import write_fitted
    from ekphory_lab.training.changes import read_scenarios
    from ekphory_lab.training.labels import learn_labels

    place = fitted_target(target, LABELS_FILE.name)
    file = learn_labels(read_scenarios(), load_embedder(None), command="ekphory train labels")
    write_fitted(place, file)
    shown = {"target": place, "measured": file.measured, "values": file.values}
    print_measured(output, shown, file.measured, f"{place}: written")


# `ekphory train hops`.


@command
def hops(output: OutputOptions, target: TargetOption = None, seed: int = 0) -> None:
    """Learn to follow evidence from memory to memory, and write it; no evaluation data is read.

    Args:
        seed: Decides which conversations lie beside.
    """
    from ekphory.agent.evidence import HOPS_FILE
    from ekphory.models.loading import load_embedder
    from ekphory.retrieval.calibration import write_fitted
    from ekphory_lab.training.hops import find_steps, hop_scopes, learn_hops

    place = fitted_target(target, HOPS_FILE.name)
    leave_changes_undetected()
    embedder = load_embedder(None)
    with step_bar() as progress, ExitStack() as kept_open:
        found = find_steps(hop_scopes(seed=seed), embedder, kept_open, progress)
        file = learn_hops(found, seed=seed, embedder=embedder)
    write_fitted(place, file)
    shown = {"target": place, "measured": file.measured, "hop": file.values["read"]["hop"]}
    print_measured(output, shown, file.measured, f"{place}: written")


# `ekphory train change-reader` and `export-change-reader`.


@command
def change_reader(output: OutputOptions, places: ReaderRun, epochs: int = 2) -> None:
    """Train what reads two statements, on the written scenarios; needs torch.

    Args:
        epochs: How often every pair is read.
    """
    require_torch()
    places.check()
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training import change_reader as reader
    from ekphory_lab.training.change_topics import read_topics
    from ekphory_lab.training.changes import read_scenarios
    from ekphory_lab.training.near_turns import (
        as_conversations,
        near_each,
        near_turns,
        read_stores,
        with_asides,
    )
    from ekphory_lab.training.texts import EXCHANGES, read_conversations

    config = reader.ChangeTraining(epochs=epochs)
    conversations = [*read_conversations(), *read_conversations(EXCHANGES)]
    embedder = load_embedder(None)
    pairs = reader.written_pairs(read_scenarios(), read_topics(), config)
    pairs += near_turns(conversations, embedder, most=config.near_turns)
    pairs += near_each(
        as_conversations(read_stores("training")), embedder, each=config.near_memories
    )
    assistants = [row for row in conversations if row["kind"] == "assistant"]
    pairs += near_each(assistants, embedder, each=config.near_answers)
    pairs = with_asides(pairs, conversations, one_in=config.asides)
    with show_note("training") as note:
        model = reader.train_change_reader(
            pairs, base=places.base, target=places.target, config=config, tell=note
        )
    folder = places.save(model)
    shown = f"{folder}: trained on {len(pairs):,} pairs"
    print_result(output, {"target": folder, "pairs": len(pairs)}, shown)


@command
def export_change_reader(output: OutputOptions, places: ReaderExport) -> None:
    """Export a trained change reader in 8 bits, with probabilities fitted beside it."""
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training import change_export as export
    from ekphory_lab.training.change_topics import TOPICS, read_topics
    from ekphory_lab.training.changes import (
        CHANGES,
        OTHER_PARTS,
        read_scenarios,
    )
    from ekphory_lab.training.near_turns import (
        STORES,
        as_conversations,
        near_each,
        near_turns,
        read_stores,
    )
    from ekphory_lab.training.probability_scopes import DEVELOPMENT_CONVERSATIONS
    from ekphory_lab.training.texts import read_conversations, sha256_of_texts

    data = {
        path.name: sha256_of_texts(path)
        for path in (CHANGES, TOPICS, DEVELOPMENT_CONVERSATIONS, STORES)
    }
    with show_note("exporting"):
        conversations, embedder = read_conversations(DEVELOPMENT_CONVERSATIONS), load_embedder(None)
        talk = near_turns(conversations, embedder, most=export.TALK_PAIRS)
        memories = {
            part: near_each(
                as_conversations(read_stores(part)), embedder, each=export.NEAR_MEMORIES
            )
            for part in OTHER_PARTS.values()
        }
        texts = export.WrittenPairs(read_scenarios(), read_topics(), talk, memories)
        outcomes = export.export_change_reader(places.source, places.target, texts=texts, data=data)
    told = [
        f"{name}: macro-F1 {outcome.macro_f1:g}, accuracy {outcome.accuracy:g}; it acts with "
        f"precision {outcome.precision:g} at recall {outcome.recall:g}"
        for name, outcome in outcomes.items()
    ]
    shown = "\n".join([*told, f"{places.target}: written"])
    print_result(output, {"target": places.target, "measured": outcomes}, shown)


# `ekphory train capture-reader` and `export-capture-reader`.


@command
def capture_reader(output: OutputOptions, places: ReaderRun, epochs: int = 4) -> None:
    """Train what reads dialogues, on the written transcripts; needs torch.

    Args:
        epochs: How often every message is read.
    """
    require_torch()
    places.check()
    from ekphory_lab.training.capture_reader import CaptureTraining, train_capture_reader
    from ekphory_lab.training.capture_texts import read_transcripts, transcripts_for

    transcripts = transcripts_for("training", read_transcripts())
    config = CaptureTraining(epochs=epochs)
    with show_note("training") as note:
        model = train_capture_reader(
            transcripts, base=places.base, target=places.target, config=config, tell=note
        )
    folder = places.save(model)
    shown = f"{folder}: trained on {len(transcripts):,} transcripts"
    print_result(output, {"target": folder}, shown)


@command
def export_capture_reader(output: OutputOptions, places: ReaderExport) -> None:
    """Export a trained capture reader in 8 bits, with probabilities fitted beside it."""
    from ekphory_lab.training import capture_export as export
    from ekphory_lab.training.capture_texts import CAPTURES, read_transcripts
    from ekphory_lab.training.texts import sha256_of_texts

    data = {CAPTURES.name: sha256_of_texts(CAPTURES)}
    with show_note("exporting"):
        outcome = export.export_capture_reader(
            places.source, places.target, transcripts=read_transcripts(), data=data
        )
    shown = {"target": places.target, "measured": outcome}
    print_measured(output, shown, asdict(outcome), f"{places.target}: written")
