"""The recipes of the bundled models, and a tiny one that is run."""

import gzip
import json
import re

import pytest
from tests.cli.command_line import CommandLine
from tests.training.small_files import READING, text_of
from tests.training.test_gates import write_training_files
from tests.training.trainable_encoder import write_trainable_encoder

from ekphory.errors import DatasetError, InvalidInput
from ekphory.models.captures import bundled_capture_reader
from ekphory.models.changes import bundled_change_reader
from ekphory.models.onnx_models import OnnxEmbedder, load_bundled
from ekphory.models.reranker import BUNDLED_RERANKERS, bundled_reranker, model_id
from ekphory.models.shared_layers import SharedLayers
from ekphory_lab.cli.commands import COMMANDS
from ekphory_lab.training.embedder_config import CONFIGS as EMBEDDERS
from ekphory_lab.training.recipes import RECIPES, read_recipe, unfinished_steps
from ekphory_lab.training.reranker.config import CONFIGS as RERANKERS
from ekphory_lab.training.run_files import weights_hash
from ekphory_lab.training.sources import SOURCES
from ekphory_lab.training.texts import CONVERSATIONS, sha256_of, sha256_of_texts

READERS = {
    "ekphory-change-reader": bundled_change_reader,
    "ekphory-capture-reader": bundled_capture_reader,
}
SHARED = "ekphory-shared-layers"
NAMES = ("ekphory-small", *BUNDLED_RERANKERS, SHARED, *READERS)
FOLDERS = dict.fromkeys(("base", "data", "conversations", "output"), "/made")
OPTION = re.compile(r"--[a-z-]+")


@pytest.fixture
def ekphory(tmp_path):
    return CommandLine(tmp_path / "store")


def test_every_bundled_model_has_a_recipe_that_names_its_revision():
    revisions = {"ekphory-small": load_bundled().record.revision, SHARED: SharedLayers().revision}
    revisions |= {
        name: model_id(bundled_reranker(name)).partition("@")[2] for name in BUNDLED_RERANKERS
    }
    revisions |= {name: load().name.partition("@")[2] for name, load in READERS.items()}

    assert {path.stem for path in RECIPES.glob("*.toml")} == set(NAMES)
    assert {name: read_recipe(name).bundled for name in NAMES} == revisions


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_names_commands_configurations_and_data_that_exist(ekphory, name):
    recipe = read_recipe(name)
    [training] = [group for group in COMMANDS.groups if group.name == "train"]
    commands = {entry.name for entry in training.entries}
    for step in recipe.steps:
        command, *_ = step.arguments(FOLDERS)
        assert command in commands - {"unpack"}
        known = ekphory.run("train", command, "--help", COLUMNS="200").stdout
        assert set(OPTION.findall(step.command)) <= set(OPTION.findall(known))
        if step.config:
            config = {"embedder": EMBEDDERS, "reranker": RERANKERS}[command][step.config]
            drawn = {SOURCES[each].name for each in config.mix if each in SOURCES}
            assert (step.seed, set(step.data)) == (config.seed, drawn)
        assert set(step.data) <= set(recipe.data)
    assert recipe.steps[-1].leaves == name
    # A step starts from what an earlier one left, or from other weights that the recipe names.
    left = {recipe.further["folder"]} if recipe.further else set()
    for step in recipe.steps:
        named = set(re.findall(r"{output}/([^ /]+)", step.command))
        left.add(step.leaves.partition("/")[0])
        assert named <= left
    # What comes with the package has the hash of the recipe.
    for each, sha256 in recipe.data.items():
        folder = CONVERSATIONS.parent / each
        assert not folder.is_dir() or sha256_of_texts(folder) == sha256


def test_what_is_no_recipe_or_another_one_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="Give ekphory-capture-reader, ekphory-change-reader"):
        read_recipe("ekphory-huge")
    # The steps of another recipe are not taken over.
    (tmp_path / "finished.json").write_text(json.dumps({"teacher-0": "another command"}))
    with pytest.raises(InvalidInput, match="has a step teacher-0 of another recipe"):
        unfinished_steps(read_recipe("ekphory-small"), tmp_path)
    (tmp_path / "other.toml").write_text('name = "other"')

    with pytest.raises(DatasetError, match=r"other\.toml: must be a recipe"):
        read_recipe(str(tmp_path / "other.toml"))


def test_the_plan_is_shown_without_a_run(ekphory, tmp_path):
    found = ekphory.json(
        "train", "recipe", "ekphory-rerank-tiny", "--data", "data", "--output", str(tmp_path),
        "--dry-run",
    )  # fmt: skip

    assert [each["name"] for each in found["steps"]][-3:] == [
        "rerank-teacher", "rerank-exiting", "ekphory-rerank-tiny",
    ]  # fmt: skip
    assert not any(each["finished"] for each in found["steps"])
    assert {each["distance"] for each in found["steps"]} == {"not remade yet"}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write_training_files(folder)
    for name, row in READING.items():
        rows = "".join(
            json.dumps({key: f"{value} {n}" if isinstance(value, str) else value
                        for key, value in row.items()}) + "\n"
            for n in range(8)
        )  # fmt: skip
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    return folder


@pytest.fixture
def base(tmp_path, monkeypatch):
    package = tmp_path / "packages" / "tiny_base"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    return write_trainable_encoder(package / "model")


def write_recipe(path, base, data, *, source):
    hashes = {"base": weights_hash(base), "sgd": sha256_of(data / "sgd_train.jsonl.gz")}
    path.write_text(text_of("tiny_recipe.toml").format(**hashes, source=source))
    return path


@pytest.mark.long
@pytest.mark.torch
def test_a_recipe_is_run_to_its_end_and_no_finished_step_again(ekphory, base, data, tmp_path):
    path, output = tmp_path / "tiny.toml", tmp_path / "made"
    command = ("train", "recipe", str(path), "--data", str(data), "--output", str(output))
    write_recipe(path, base, data, source="nowhere")
    failed = ekphory.run(*command)
    assert "step tiny failed" in failed.stderr
    first = [(output / place).stat().st_mtime_ns for place in ("teacher", "refined/model")]

    write_recipe(path, base, data, source="refined")
    assert all(each["finished"] for each in ekphory.json(*command)["steps"])

    assert [(output / place).stat().st_mtime_ns for place in ("teacher", "refined/model")] == first
    assert OnnxEmbedder(output / "tiny").encode(["the cat"]).shape == (1, 32)
    assert unfinished_steps(read_recipe(str(path)), output) == []


def test_other_data_or_base_weights_are_refused(ekphory, base, data, tmp_path):
    path = write_recipe(tmp_path / "tiny.toml", base, data, source="refined")
    places = ("--data", str(data), "--output", str(tmp_path / "made"))
    sgd, weights = data / "sgd_train.jsonl.gz", base / "model.safetensors"
    for file, said in ((sgd, "not the data of the recipe"), (weights, "not those of the recipe")):
        kept = file.read_bytes()
        file.write_text("")
        assert said in ekphory.failure("train", "recipe", str(path), *places)
        file.write_bytes(kept)
    # Other weights that a recipe names must lie in the output's folder.
    further = 'further = { folder = "larger", sha256 = "0" }\n'
    path.write_text(further + path.read_text())
    assert "larger is unpacked" in ekphory.failure("train", "recipe", str(path), *places)
    # A package that is not there is named.
    path.write_text(path.read_text().replace("tiny-base", "no-such-base"))
    said = ekphory.failure("train", "recipe", str(path), *places)
    assert "Run `pip install no-such-base`" in said
