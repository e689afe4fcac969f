import importlib.util
import json

import pytest
import typer
from tests.services.wire import running_service, says
from tests.training.tiny_encoder import TEXTS, write_tiny_encoder
from typer.testing import CliRunner

from ekphory.errors import InvalidInput
from ekphory.models.loading import load_embedder, read_calibration
from ekphory.models.onnx_embedder import OnnxEmbedder
from ekphory.retrieval.calibration import FITTED, read_fitted
from ekphory_lab.cli.train_commands import fitted_target, gate, reranker_calibration
from ekphory_lab.training.embedder_config import CONFIGS
from ekphory_lab.training.gates import gate_conversations

PLACES = ("--data", "data", "--base", "base", "--target", "target")


def run(function, *arguments):
    """Run a command of the lab as an application of its own."""
    application = typer.Typer()
    application.command()(function)
    return CliRunner().invoke(application, list(map(str, arguments)), env={"COLUMNS": "200"})


def test_the_exported_model_loads(ekphory, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    write_tiny_encoder(source)
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    result = ekphory.run(
        "train", "export", "--source", str(source), "--target", str(target), "--name", "tiny",
        "--calibration", str(texts),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{target}: tiny@")
    assert OnnxEmbedder(target).encode(["the cat"]).shape == (1, 32)


def test_a_missing_model_is_named(ekphory, tmp_path):
    sentence = ekphory.failure(
        "train", "export", "--source", str(tmp_path / "nowhere"), "--target", str(tmp_path / "out")
    )
    assert "nowhere" in sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is not None, reason="the [torch] extra is installed"
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("embedder", *PLACES),
        ("reranker", *PLACES),
    ],
)
def test_without_torch_the_extra_is_named(ekphory, arguments):
    assert "ekphory[torch]" in ekphory.failure("train", *arguments)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("model", "configurations"),
    [
        (
            "embedder",
            "small, refined, settled, conversing, anchored, documented, remembering, base",
        ),
        ("reranker", "small, tiny, refined, following, 0.6b, 4b"),
    ],
)
def test_an_unknown_configuration_is_named(ekphory, model, configurations):
    sentence = ekphory.failure("train", model, *PLACES, "--config", "huge")
    assert "huge" in sentence
    assert configurations in sentence


@pytest.mark.parametrize("config", CONFIGS)
def test_the_help_names_every_configuration(ekphory, config):
    assert config in ekphory.run("train", "embedder", "--help").stdout


@pytest.mark.torch
def test_a_chat_teacher_needs_a_configured_model(ekphory, monkeypatch):
    monkeypatch.delenv("EKPHORY_CHAT_URL", raising=False)

    sentence = ekphory.failure("train", "reranker", *PLACES, "--teacher", "chat")

    assert "EKPHORY_CHAT_URL" in sentence


def test_a_bundled_reranker_is_unpacked_by_its_name(ekphory, tmp_path):
    target = tmp_path / "weights"

    told = ekphory.run(
        "train", "unpack", "--source", "ekphory-rerank-tiny", "--target", str(target)
    ).stdout

    assert "unpacked from ekphory-rerank-tiny" in told
    assert sorted(path.name for path in target.iterdir()) == [
        "config.json",
        "ekphory_reranker.safetensors",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_what_is_no_model_to_unpack_is_named(ekphory, tmp_path):
    sentence = ekphory.failure(
        "train", "unpack", "--source", "ekphory-rerank-huge", "--target", str(tmp_path / "out")
    )

    assert "source='ekphory-rerank-huge': no such directory" in sentence
    assert "ekphory-rerank-small, ekphory-rerank-tiny" in sentence


def test_an_export_without_a_model_says_what_is_missing(ekphory, tmp_path):
    from tests.training.reranker.tiny_reranker import word_examples

    from ekphory_lab.training.reranker.examples import write_examples

    write_examples(word_examples(8, 1), tmp_path / "held_back.jsonl.gz")
    sentence = ekphory.failure(
        "train", "export-reranker", "--source", str(tmp_path), "--target", str(tmp_path / "out"),
        "--calibration", str(tmp_path / "held_back.jsonl.gz"),
    )  # fmt: skip

    assert "tokenizer.json: no such file" in sentence


def test_samples_are_written_one_a_line(ekphory, tmp_path):
    file = tmp_path / "made" / "samples.jsonl"
    result = ekphory.run("train", "generate", "--count", "30", "--out", str(file))
    assert result.exit_code == 0, result.output
    assert f"{file}: 30 samples" in result.stdout
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 30
    assert set(rows[0]) == {"query", "positive", "negatives"}
    assert set(rows[0]["negatives"][0]) == {"kind", "text", "days_ago", "type", "importance"}


def test_the_counts_are_given_as_json(ekphory, tmp_path):
    found = ekphory.json(
        "train", "generate", "--count", "30", "--split", "test", "--out", str(tmp_path / "s.jsonl")
    )
    assert found["report"]["samples"] == 30
    assert sum(found["report"]["negatives"].values()) == 30 * 7


def test_an_unknown_half_is_named(ekphory, tmp_path):
    sentence = ekphory.failure(
        "train", "generate", "--split", "dev", "--out", str(tmp_path / "s.jsonl")
    )
    assert "dev" in sentence
    assert not (tmp_path / "s.jsonl").exists()


def knowing_the_answers(dataset):
    """Return a reranking service that scores what answers with 1 and everything else with 0."""
    texts = {
        (pool, passage.id): passage.indexed_text
        for pool, passages in dataset.pools.items()
        for passage in passages
    }
    answers = {}
    for query in dataset.queries:
        found = {texts[query.pool, answer] for answer in dataset.qrels[query.key]}
        answers.setdefault(query.text, set()).update(found)

    def answer(request):
        right = answers[request.body["query"]]
        scores = [float(text in right) for text in request.body["documents"]]
        rows = [{"index": place, "relevance_score": each} for place, each in enumerate(scores)]
        return says({"results": rows})

    return running_service(answer)


@pytest.mark.slow
def test_a_gate_is_learned_on_each_feature_and_written(training_folder, tmp_path):
    target = tmp_path / "gate.json"
    with knowing_the_answers(gate_conversations(training_folder)) as service:
        result = run(
            gate, "--data", training_folder, "--reranker", service.host, "--target", target
        )
    assert result.exit_code == 0, result.output
    for feature in ("cosine_spread", "probability_spread", "probability_gap", "best_probability"):
        assert feature in result.stdout
    file = read_fitted(target, kind="gate")
    assert file.models["embedder"] == load_embedder(None).identity.model_id
    assert file.values["feature"] == "best_probability"
    assert 0 <= file.values["low"] < file.values["high"]
    assert len(file.data) == 4
    assert file.measured["other training conversations, questions"] > 0


def test_a_feature_that_no_gate_compares_is_refused_at_once(tmp_path):
    result = run(
        gate, "--data", tmp_path, "--feature", "length", "--target", tmp_path / "gate.json"
    )
    assert result.exit_code == 1
    assert "must be a feature of a gate" in result.stderr


@pytest.mark.slow
def test_a_service_that_knows_the_answers_gets_a_steep_curve_and_a_picture(
    training_folder,
    tmp_path,
):
    target = tmp_path / "card.json"
    with knowing_the_answers(gate_conversations(training_folder)) as service:
        result = run(
            reranker_calibration,
            "--data",
            training_folder,
            "--reranker",
            service.host,
            "--target",
            target,
            "--json",
        )
    assert result.exit_code == 0, result.output
    told, fitted = json.loads(result.stdout), read_calibration(target)
    assert told["reranker"] == fitted.reranker
    assert fitted.card.slope > 0
    assert fitted.card.thresholds["0.9"] > 0.5
    assert target.with_suffix(".svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_a_service_that_tells_nothing_apart_gets_no_curve(training_folder, tmp_path):
    def alike(request):
        count = len(request.body["documents"])
        return says({"results": [{"index": n, "relevance_score": 0.5} for n in range(count)]})

    target = tmp_path / "card.json"
    with running_service(alike) as service:
        result = run(
            reranker_calibration,
            "--data",
            training_folder,
            "--reranker",
            service.host,
            "--target",
            target,
        )
    assert result.exit_code == 1
    assert "do not rise with what answers" in result.stderr
    assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--target", "card.svg"], 1, "is where the picture goes"),
        (["--target", "/dev/null/card.json"], 1, "must be a file that can be written"),
        (["--target", "/"], 1, "must be a file that can be written"),
        (["--target", "card.json", "--read", "0"], 2, "read"),
    ],
)
def test_what_cannot_be_fitted_is_told_before_anything_is_scored(
    tmp_path, arguments, code, problem
):
    result = run(reranker_calibration, "--data", tmp_path, "--reranker", "bundled", *arguments)
    assert (result.exit_code, problem in result.stderr) == (code, True)


def test_in_a_checkout_the_packages_own_file_is_written():
    assert fitted_target(None, "gate.json") == FITTED / "gate.json"


def test_a_file_that_is_given_is_taken(tmp_path):
    assert fitted_target(tmp_path / "mine.json", "gate.json") == tmp_path / "mine.json"


def test_an_installed_package_is_not_written_to_unasked(tmp_path):
    folder = tmp_path / "lib" / "ekphory" / "fitted"
    with pytest.raises(InvalidInput, match=r"Give --target gate\.json"):
        fitted_target(None, "gate.json", folder=folder)


@pytest.mark.parametrize("function", [gate, reranker_calibration])
def test_a_missing_reranker_is_named(tmp_path, function):
    target = tmp_path / "fitted.json"
    result = run(
        *(function, "--data", tmp_path, "--reranker", tmp_path / "nowhere", "--target", target)
    )
    assert result.exit_code == 1
    assert "no such model directory" in result.stderr
