"""`ekphory train embedder` and `ekphory train components`: train the bundled embedder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ekphory.cli.command import command
from ekphory.cli.consoles import result_console
from ekphory.cli.json_output import print_json
from ekphory.cli.options import OutputOptions
from ekphory.cli.progress import step_bar
from ekphory.errors import MissingExtra


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What changes a configuration."""

    config: Annotated[
        str,
        typer.Option(
            help="small, refined, settled, conversing, anchored, documented or remembering (384 "
            "numbers), or base (768)."
        ),
    ] = "small"
    steps: Annotated[int | None, typer.Option(help="Else the configuration's.", min=1)] = None
    seed: Annotated[int | None, typer.Option(help="Else the configuration's.")] = None


@command
def embedder(
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the training files.")],
    base: Annotated[
        Path, typer.Option(metavar="DIR", help="Base weights, a sentence-transformers directory.")
    ],
    target: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to write; a stopped run there goes on.")
    ],
    chosen: RunOptions,
    output: OutputOptions,
    teacher: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Exported model to follow; else the bundled one."),
    ] = None,
) -> None:
    """Train the embedder on questions and conversations; run it again to go on after a stop."""
    _require_torch()
    from ekphory.models.loading import load_embedder
    from ekphory.training.embedder_config import config_named
    from ekphory.training.embedder_run import RunPlaces, train_embedder
    from ekphory.training.group_stream import load_training_data

    config = config_named(chosen.config)
    config = replace(
        config,
        steps=chosen.steps or config.steps,
        seed=config.seed if chosen.seed is None else chosen.seed,
    )
    training = load_training_data(data, list(config.mix))
    followed = load_embedder(teacher)
    named = {"teacher": str(followed.identity)}
    training = replace(training, hashes={**training.hashes, **named})
    with step_bar() as progress:
        model = train_embedder(
            config,
            training,
            followed,
            places=RunPlaces(base=base, target=target),
            progress=lambda _, done, total: progress("training", done, total),
        )
    if output.json:
        print_json({"model": model, "steps": config.steps})
    else:
        result_console().print(f"{model}: {config.steps} steps", soft_wrap=True)


@command
def components(
    model: Annotated[Path, typer.Option(metavar="DIR", help="A trained embedder's directory.")],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the whole.")],
    output: OutputOptions,
    count: Annotated[int, typer.Option(help="How many generated samples.", min=1)] = 4000,
    seed: Annotated[int, typer.Option(help="Of the samples and their order.")] = 20,
) -> None:
    """Train age, type and importance of a trained embedder; its encoder stays as it is."""
    _require_torch()
    from ekphory.training.component_training import ComponentConfig, train_components
    from ekphory.training.encoder_directory import load_agent_encoder, save_agent_encoder
    from ekphory.training.memories.generate import generate

    encoder = load_agent_encoder(model)
    samples = list(generate("train", seed=seed, count=count))
    with step_bar() as progress:
        report = train_components(
            encoder, samples, config=ComponentConfig(seed=seed), progress=progress
        )
    save_agent_encoder(encoder, target)
    if output.json:
        print_json({"model": target, "report": report})
        return
    result_console().print(
        f"{target}: the answer comes first for {report.first_with:.1%} of the queries, by content "
        f"alone for {report.first_without:.1%}; types {report.type_accuracy:.1%}, importance off "
        f"by {report.importance_error:.3f}",
        soft_wrap=True,
    )


@command
def average(
    base: Annotated[Path, typer.Option(metavar="DIR", help="Where the training started.")],
    trained: Annotated[Path, typer.Option(metavar="DIR", help="What it ended with.")],
    share: Annotated[float, typer.Option(help="Share of the trained weights, from 0 to 1.")],
    target: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the average.")],
    output: OutputOptions,
) -> None:
    """Average a trained embedder's encoder with its base: less forgotten, most of it learned."""
    _require_torch()
    from ekphory.training.encoder_directory import load_agent_encoder, save_agent_encoder
    from ekphory.training.weight_average import averaged

    mixed = averaged(load_agent_encoder(base), load_agent_encoder(trained), share=share)
    save_agent_encoder(mixed, target)
    if output.json:
        print_json({"model": target, "share": share})
    else:
        result_console().print(f"{target}: {share:g} trained", soft_wrap=True)


def _require_torch() -> None:
    for name in ("torch", "transformers", "safetensors"):
        if find_spec(name) is None:
            raise MissingExtra("torch", "Training")
    if find_spec("bm25s") is None:
        raise MissingExtra("eval", "Training")
