"""`ekphory train` of what reads statements and dialogues: changes, captures, questions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from ekphory.retrieval.calibration import FittedFile
    from ekphory_lab.training.run_files import RunPlaces


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderRun:
    """Where a reader's training begins, and where it writes.

    Attributes:
        base (--base DIR): all-MiniLM-L6-v2, in floats; or what training goes on from, the folder
            `model` of a run or of an exported reader.
        target (--target DIR): Of the run; goes on where it is.
    """

    base: Path
    target: Path

    def check(self) -> RunPlaces:
        """Return both, where there are weights to begin from, before minutes go into the pairs.

        Raises:
            InvalidInput: There are none.
        """
        from ekphory.models.model_record import MODEL_FILE, RECORD_FILE
        from ekphory_lab.training.run_files import RunPlaces

        base = self.base
        if (base / MODEL_FILE).is_file() and (base / RECORD_FILE).is_file():
            from ekphory_lab.training.exported_readers import write_as_trained

            base = write_as_trained(base, self.target / "base")
        if not (base / "model.safetensors").is_file():
            remedy = "Give the folder of all-MiniLM-L6-v2, of a run's model, or of a reader"
            raise InvalidInput("base", str(base), "holds no model.safetensors", remedy)
        return RunPlaces(base=base, target=self.target)


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
    from ekphory_lab.training.reader_export import export_shared_layers as export

    revision = export(places.source, places.target)
    shown = {"target": places.target, "revision": revision}
    print_result(output, shown, f"{places.target}: revision {revision}")


# `ekphory train asked-state`.


@command
def asked_state(output: OutputOptions, target: TargetOption = None) -> None:
    """Learn which questions ask for an earlier state, and write it; no evaluation data is read."""
    from ekphory.retrieval.asked_state import ASKED_STATE_FILE
    from ekphory_lab.training.asked_state import learn_asked_state
    from ekphory_lab.training.changes import read_scenarios

    place = fitted_target(target, ASKED_STATE_FILE.name)
    file = learn_asked_state(read_scenarios())
    _write_learned(output, place, file, weights=len(file.values["weights"]))


def _write_learned(
    output: OutputOptions,
    place: Path,
    file: FittedFile,
    **shown: Any,  # noqa: ANN401  whatever JSON can hold
) -> None:
    from ekphory.retrieval.calibration import write_fitted

    write_fitted(place, file)
    content = {"target": place, "measured": file.measured, **shown}
    print_measured(output, content, file.measured, f"{place}: written")


# `ekphory train labels`.


@command
def labels(output: OutputOptions, target: TargetOption = None) -> None:
    """Fit when a label fits a text, and write it; no evaluation data is read."""
    from ekphory.capture.services import LABELS_FILE
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.changes import read_scenarios
    from ekphory_lab.training.labels import learn_labels

    place = fitted_target(target, LABELS_FILE.name)
    file = learn_labels(read_scenarios(), load_embedder(None))
    _write_learned(output, place, file, values=file.values)


# `ekphory train hops`.


@command
def hops(output: OutputOptions, target: TargetOption = None, seed: int = 0) -> None:
    """Learn to follow evidence from memory to memory, and write it; no evaluation data is read.

    Args:
        seed: Decides which conversations lie beside.
    """
    from ekphory.agent.evidence import HOPS_FILE
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.hops import find_steps, hop_scopes, learn_hops

    place = fitted_target(target, HOPS_FILE.name)
    leave_changes_undetected()
    embedder = load_embedder(None)
    with step_bar() as progress, ExitStack() as kept_open:
        found = find_steps(hop_scopes(seed=seed), embedder, kept_open, progress)
        file = learn_hops(found, seed=seed, embedder=embedder)
    _write_learned(output, place, file, hop=file.values["read"]["hop"])


# `ekphory train change-reader` and `export-change-reader`.


@command
def change_reader(output: OutputOptions, places: ReaderRun, epochs: int = 2) -> None:
    """Train what reads two statements, on the written scenarios; needs torch.

    Args:
        epochs: How often every pair is read.
    """
    require_torch()
    run = places.check()
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training import readers
    from ekphory_lab.training.near_turns import training_pairs

    config, pairs = readers.ChangeTraining(epochs=epochs), training_pairs(load_embedder(None))
    with show_note("training") as note:
        folder = readers.train_change_reader(pairs, places=run, config=config, tell=note)
    shown = f"{folder}: trained on {len(pairs):,} pairs"
    print_result(output, {"target": folder, "pairs": len(pairs)}, shown)


@command
def export_change_reader(output: OutputOptions, places: ReaderExport) -> None:
    """Export a trained change reader in 8 bits, with probabilities fitted beside it."""
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training import reader_export

    with show_note("exporting"):
        outcomes = reader_export.export_change_reader(
            places.source, places.target, texts=reader_export.read_pairs(load_embedder(None))
        )
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
    run = places.check()
    from ekphory_lab.training import capture_texts, readers
    from ekphory_lab.training.changes import of_part

    transcripts = of_part("training", capture_texts.read_transcripts())
    config = readers.CaptureTraining(epochs=epochs)
    with show_note("training") as note:
        folder = readers.train_capture_reader(transcripts, places=run, config=config, tell=note)
    shown = f"{folder}: trained on {len(transcripts):,} transcripts"
    print_result(output, {"target": folder}, shown)


@command
def export_capture_reader(output: OutputOptions, places: ReaderExport) -> None:
    """Export a trained capture reader in 8 bits, with probabilities fitted beside it."""
    from ekphory_lab.training.capture_texts import read_transcripts
    from ekphory_lab.training.reader_export import export_capture_reader as export

    with show_note("exporting"):
        outcome = export(places.source, places.target, transcripts=read_transcripts())
    shown = {"target": places.target, "measured": outcome}
    print_measured(output, shown, asdict(outcome), f"{places.target}: written")
