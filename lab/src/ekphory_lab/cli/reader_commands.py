"""`ekphory train` of what reads statements and dialogues: changes, captures, questions."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ekphory.cli.command import command, print_result, show_note, step_bar
from ekphory.cli.options import OutputOptions
from ekphory.config import PREFIX
from ekphory_lab.cli.train_commands import TargetOption, fitted_target, require_torch

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
    told = [f"{name} {value:g}" for name, value in file.measured.items()]
    shown = {"target": place, "measured": file.measured, "weights": len(file.values["weights"])}
    print_result(output, shown, "\n".join([*told, f"{place}: written"]))


# `ekphory train hops`.


@command
def hops(
    output: OutputOptions,
    target: TargetOption = None,
    seed: Annotated[int, typer.Option(help="Decides which conversations lie beside.")] = 0,
) -> None:
    """Learn to follow evidence from memory to memory, and write it; no evaluation data is read."""
    from ekphory.agent.local_provider import HOPS_FILE
    from ekphory.models.loading import load_embedder
    from ekphory.retrieval.calibration import write_fitted
    from ekphory_lab.training.hops import find_steps, hop_scopes, learn_hops

    place = fitted_target(target, HOPS_FILE.name)
    # Whether a memory is superseded would move hits, at a time that depends on the machine.
    os.environ[f"{PREFIX}DETECT_CHANGES"] = "0"
    embedder = load_embedder(None)
    with step_bar() as progress, ExitStack() as kept_open:
        found = find_steps(hop_scopes(seed=seed), embedder, kept_open, progress)
        file = learn_hops(found, seed=seed, embedder=embedder)
    write_fitted(place, file)
    told = [f"{name} {value:g}" for name, value in file.measured.items()]
    shown = {"target": place, "measured": file.measured, "hop": file.values["hop"]}
    print_result(output, shown, "\n".join([*told, f"{place}: written"]))


# `ekphory train change-reader` and `export-change-reader`.


@command
def change_reader(
    output: OutputOptions,
    base: Annotated[Path, typer.Option(metavar="DIR", help="all-MiniLM-L6-v2, in floats.")],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Of the run; goes on where it is.")],
    epochs: Annotated[int, typer.Option(help="How often every pair is read.")] = 2,
) -> None:
    """Train what reads two statements, on the written scenarios; needs torch."""
    require_torch()
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.change_reader import (
        ChangeTraining,
        train_change_reader,
        written_pairs,
    )
    from ekphory_lab.training.change_topics import read_topics
    from ekphory_lab.training.changes import read_scenarios
    from ekphory_lab.training.near_turns import near_turns
    from ekphory_lab.training.run_files import MODEL_FOLDER
    from ekphory_lab.training.texts import EXCHANGES, read_conversations
    from ekphory_lab.training.upper_layers import save_upper_layers

    config = ChangeTraining(epochs=epochs)
    conversations = [*read_conversations(), *read_conversations(EXCHANGES)]
    pairs = written_pairs(read_scenarios(), read_topics(), config)
    pairs += near_turns(conversations, load_embedder(None), most=config.near_turns)
    with show_note("training") as note:
        model = train_change_reader(pairs, base=base, target=target, config=config, tell=note)
    save_upper_layers(model, base, target / MODEL_FOLDER)
    shown = f"{target / MODEL_FOLDER}: trained on {len(pairs):,} pairs"
    print_result(output, {"target": target / MODEL_FOLDER, "pairs": len(pairs)}, shown)


@command
def export_change_reader(
    output: OutputOptions,
    source: Annotated[Path, typer.Option(metavar="DIR", help="The folder model of a run.")],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Gets the ONNX model.")],
) -> None:
    """Export a trained change reader in 8 bits, with probabilities fitted beside it."""
    from ekphory.models.loading import load_embedder
    from ekphory_lab.training.change_export import TALK_PAIRS, WrittenPairs
    from ekphory_lab.training.change_export import export_change_reader as export_reader
    from ekphory_lab.training.change_topics import TOPICS, read_topics
    from ekphory_lab.training.changes import CHANGES, read_scenarios
    from ekphory_lab.training.near_turns import near_turns
    from ekphory_lab.training.probability_scopes import DEVELOPMENT_CONVERSATIONS
    from ekphory_lab.training.texts import read_conversations, sha256_of_texts

    data = {
        path.name: sha256_of_texts(path) for path in (CHANGES, TOPICS, DEVELOPMENT_CONVERSATIONS)
    }
    with show_note("exporting"):
        talk = near_turns(
            read_conversations(DEVELOPMENT_CONVERSATIONS), load_embedder(None), most=TALK_PAIRS
        )
        texts = WrittenPairs(read_scenarios(), read_topics(), talk)
        outcomes = export_reader(source, target, texts=texts, data=data)
    told = [
        f"{name}: macro-F1 {outcome.macro_f1:g}, accuracy {outcome.accuracy:g}; it acts with "
        f"precision {outcome.precision:g} at recall {outcome.recall:g}"
        for name, outcome in outcomes.items()
    ]
    shown = "\n".join([*told, f"{target}: written"])
    print_result(output, {"target": target, "measured": outcomes}, shown)


# `ekphory train capture-reader` and `export-capture-reader`.


@command
def capture_reader(
    output: OutputOptions,
    base: Annotated[Path, typer.Option(metavar="DIR", help="all-MiniLM-L6-v2, in floats.")],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Of the run; goes on where it is.")],
    epochs: Annotated[int, typer.Option(help="How often every message is read.")] = 4,
) -> None:
    """Train what reads dialogues, on the written transcripts; needs torch."""
    require_torch()
    from ekphory_lab.training.capture_reader import CaptureTraining, train_capture_reader
    from ekphory_lab.training.capture_texts import read_transcripts, transcripts_for
    from ekphory_lab.training.run_files import MODEL_FOLDER
    from ekphory_lab.training.upper_layers import save_upper_layers

    transcripts = transcripts_for("training", read_transcripts())
    config = CaptureTraining(epochs=epochs)
    with show_note("training") as note:
        model = train_capture_reader(
            transcripts, base=base, target=target, config=config, tell=note
        )
    save_upper_layers(model, base, target / MODEL_FOLDER)
    shown = f"{target / MODEL_FOLDER}: trained on {len(transcripts):,} transcripts"
    print_result(output, {"target": target / MODEL_FOLDER}, shown)


@command
def export_capture_reader(
    output: OutputOptions,
    source: Annotated[Path, typer.Option(metavar="DIR", help="The folder model of a run.")],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Gets the ONNX model.")],
) -> None:
    """Export a trained capture reader in 8 bits, with probabilities fitted beside it."""
    from ekphory_lab.training.capture_export import export_capture_reader as export_reader
    from ekphory_lab.training.capture_texts import CAPTURES, read_transcripts
    from ekphory_lab.training.texts import sha256_of_texts

    with show_note("exporting"):
        outcome = export_reader(
            source,
            target,
            transcripts=read_transcripts(),
            data={CAPTURES.name: sha256_of_texts(CAPTURES)},
        )
    told = [f"{name} {value:g}" for name, value in asdict(outcome).items()]
    shown = "\n".join([*told, f"{target}: written"])
    print_result(output, {"target": target, "measured": outcome}, shown)
