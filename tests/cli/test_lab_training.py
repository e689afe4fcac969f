import importlib.util
import json

import pytest
from tests.services.wire import running_service, says
from tests.training.tiny_encoder import TEXTS, write_tiny_encoder

from ekphory.errors import InvalidInput
from ekphory.models import Embedder
from ekphory.models.loading import load_embedder, read_calibration
from ekphory.models.onnx_models import OnnxEmbedder
from ekphory.models.reranker import SMALL_RERANKER, bundled_directory
from ekphory.retrieval.calibration import FITTED, read_fitted
from ekphory_lab.cli.train_commands import fitted_target
from ekphory_lab.training.embedder_config import CONFIGS
from ekphory_lab.training.gates import gate_conversations

CALIBRATE = "reranker-calibration"
PLACES = ("--data", "data", "--base", "base", "--target", "target")


@pytest.fixture
def refused(ekphory):
    """Runs `ekphory train` with arguments that must be refused, and returns the sentence."""
    return lambda *arguments: ekphory.failure("train", *map(str, arguments))


def test_the_exported_model_loads(train, tmp_path):
    source, target, texts = (tmp_path / name for name in ("source", "target", "texts.jsonl"))
    source.mkdir()
    write_tiny_encoder(source)
    texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    places = ("--source", source, "--target", target)
    told = train("export", *places, "--name", "tiny", "--calibration", texts)
    assert told.startswith(f"{target}: tiny@")
    assert OnnxEmbedder(target).encode(["the cat"]).shape == (1, 32)
    # Its card tells no results, since nothing was measured.
    card = (target / "README.md").read_text()
    assert 'model-index: [{"name": "tiny", "results": []}]' in card
    assert "32 numbers a text" in card


@pytest.mark.parametrize(
    ("command", "source", "said"),
    [
        ("export", "nowhere", "nowhere"),
        ("unpack", "huge", "source='huge': no such directory. Give one, or bundled, ekphory"),
    ],
)
def test_a_missing_model_is_named(refused, tmp_path, command, source, said):
    assert said in refused(command, "--source", source, "--target", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is not None, reason="the [torch] extra is installed"
)
@pytest.mark.parametrize("model", ["embedder", "reranker"])
def test_without_torch_the_extra_is_named(refused, model):
    assert "ekphory[torch]" in refused(model, *PLACES)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("embedder", "small, refined, settled, conversing, anchored, documented, remembering"),
        (
            "reranker",
            "small, tiny, refined, following, teacher, exchanging, exiting, 0.6b, 4b, staged",
        ),
    ],
)
def test_an_unknown_configuration_is_named(refused, model, known):
    sentence = refused(model, *PLACES, "--config", "huge")
    assert "huge" in sentence
    assert known in sentence


@pytest.mark.torch
@pytest.mark.parametrize("reader", ["change-reader", "capture-reader"])
def test_a_reader_is_refused_weights_that_are_not_there(refused, reader, tmp_path):
    sentence = refused(reader, "--base", "nowhere", "--target", tmp_path / "run")
    assert "base='nowhere': holds no model.safetensors" in sentence
    assert not (tmp_path / "run").exists()


@pytest.mark.torch
def test_a_reader_does_not_go_on_from_an_exported_model_of_another_kind(refused, tmp_path):
    reranker = bundled_directory(SMALL_RERANKER)
    sentence = refused("change-reader", "--base", reranker, "--target", tmp_path / "run")
    assert "Name one of these: capture reader, change reader." in sentence


@pytest.mark.torch
def test_a_reader_does_not_go_on_from_damaged_files(refused, tmp_path):
    bundled = bundled_directory(SMALL_RERANKER).parent / "change-reader"
    for name in ("model.json", "model.onnx"):
        (tmp_path / name).write_bytes((bundled / name).read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"cut short")
    run = ("change-reader", "--base", tmp_path, "--target", tmp_path / "run")
    assert "model.onnx: 9 bytes with SHA-256" in refused(*run)
    (tmp_path / "model.json").write_text("[")
    assert "model.json: is not the record of a model" in refused(*run)


def test_the_help_names_every_configuration(train):
    shown = train("embedder", "--help")
    assert [config for config in CONFIGS if config not in shown] == []


@pytest.mark.torch
def test_a_chat_teacher_needs_a_configured_model(refused):
    assert "EKPHORY_CHAT_URL" in refused("reranker", *PLACES, "--teacher", "chat")


@pytest.mark.slow
def test_teachers_are_compared_by_agreement_and_cost(ekphory, tmp_path):
    message = {"role": "assistant", "content": '{"better": "equal"}'}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 5}}
    options = ["--config", "smoke", "--questions", "2", "--answers", str(tmp_path / "kept.jsonl")]
    with running_service(lambda _: says(answer)) as service:
        chat = {"EKPHORY_CHAT_URL": f"{service.host}/v1", "EKPHORY_CHAT_MODEL": "undecided"}
        command = ("train", "compare-teachers", "--data", str(tmp_path), "--teacher", "chat")
        first, second = (
            json.loads(ekphory.run(*command, *options, "--json", **chat).stdout) for _ in range(2)
        )
        asked = len(service.asked)

    (cost,) = first["costs"]
    assert cost["answers"] == asked > 0
    assert cost["prompt tokens"] == 100 * asked
    assert cost["tokens per question"] == round(105 * asked / 2)
    assert second["costs"][0]["kept from before"] == asked
    pairs = {(each["first"], each["second"]): each for each in first["agreement"]}
    assert pairs["labels", "undecided"]["kendall"] is None
    assert pairs["labels", "bm25"]["questions"] == 2


def test_a_bundled_reranker_is_unpacked_by_its_name(train, tmp_path):
    told = train("unpack", "--source", "ekphory-rerank-tiny", "--target", tmp_path / "weights")
    assert "unpacked from ekphory-rerank-tiny" in told
    weights = ("config.json", "ekphory_reranker.safetensors", "model.safetensors")
    files = {*weights, "tokenizer.json", "tokenizer_config.json"}
    assert {path.name for path in (tmp_path / "weights").iterdir()} == files


def test_an_export_without_a_model_says_what_is_missing(refused, tmp_path):
    from tests.training.reranker.tiny_reranker import word_examples

    from ekphory_lab.training.reranker.examples import write_examples

    examples = tmp_path / "held_back.jsonl.gz"
    write_examples(word_examples(8, 1), examples)
    places = ("--source", tmp_path, "--target", tmp_path / "out", "--calibration", examples)
    assert "tokenizer.json: no such file" in refused("export-reranker", *places)


def test_samples_are_written_one_a_line_and_counted(train, refused, tmp_path):
    file = tmp_path / "made" / "samples.jsonl"
    generate = ("generate", "--count", 30, "--out", file)
    assert f"{file}: 30 samples" in train(*generate)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 30
    assert set(rows[0]) == {"query", "positive", "negatives"}
    assert set(rows[0]["negatives"][0]) == {"kind", "text", "days_ago", "type", "importance"}
    report = json.loads(train(*generate, "--split", "test", "--json"))["report"]
    assert (report["samples"], sum(report["negatives"].values())) == (30, 30 * 7)
    # An unknown half is named.
    assert "dev" in refused("generate", "--split", "dev", "--out", tmp_path / "s.jsonl")
    assert not (tmp_path / "s.jsonl").exists()


@pytest.mark.torch
@pytest.mark.slow
def test_an_embedder_is_trained_on_the_samples_that_generate_wrote(train, refused, tmp_path):
    from tests.training.trainable_encoder import write_trainable_encoder

    file, base = tmp_path / "samples.jsonl", write_trainable_encoder(tmp_path / "base")
    train("generate", "--count", 30, "--out", file)
    places = ("--data", file, "--base", base, "--target", tmp_path / "run")

    told = train(
        "embedder", *places, "--config", "refined", "--steps", 2, "--precision", "bfloat16"
    )

    assert told.strip() == f"{tmp_path / 'run' / 'model'}: 2 steps"
    model = Embedder.from_pretrained(tmp_path / "run" / "model")
    assert model.encode("the cat", days_ago=3, memory_type="episodic").shape == (1, 32)
    assert "float8" in refused("embedder", *places, "--precision", "float8")


@pytest.mark.torch
@pytest.mark.slow
def test_what_was_trained_or_averaged_has_a_card_without_results(train, tmp_path):
    from tests.training.trainable_encoder import write_trainable_encoder

    samples, run, mean = (tmp_path / name for name in ("samples.jsonl", "run", "mean"))
    base = write_trainable_encoder(tmp_path / "base")
    train("generate", "--count", 30, "--out", samples)
    places = ("--data", samples, "--base", base, "--target", run)
    train("embedder", *places, "--config", "refined", "--steps", 1, "--precision", "float32")
    train("average", "--base", base, "--trained", run / "model", "--share", 0.5, "--target", mean)

    for directory in (run / "model", mean):
        card = (directory / "README.md").read_text()
        assert f'model-index: [{{"name": "{directory.name}", "results": []}}]' in card
        assert 'days_ago=3, memory_type="semantic"' in card


@pytest.mark.torch
def test_training_data_that_are_not_there_are_told_as_such(refused):
    sentence = refused("embedder", *PLACES)
    assert "data='data': there is no such file or folder. Give the folder" in sentence


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


@pytest.mark.long
def test_a_gate_is_learned_on_each_feature_and_written(train, training_folder, tmp_path):
    target = tmp_path / "gate.json"
    with knowing_the_answers(gate_conversations(training_folder)) as service:
        places = ("--data", training_folder, "--reranker", service.host, "--target", target)
        told = train("gate", *places)
    for feature in ("cosine_spread", "probability_spread", "probability_gap", "best_probability"):
        assert feature in told
    file = read_fitted(target, kind="gate")
    assert file.models["embedder"] == load_embedder(None).identity.model_id
    assert file.values["feature"] == "best_probability"
    assert 0 <= file.values["low"] < file.values["high"]
    assert len(file.data) == 4
    assert file.measured["other training conversations, questions"] > 0


@pytest.mark.long
def test_a_service_that_knows_the_answers_gets_a_steep_curve_and_a_picture(
    train, training_folder, tmp_path
):
    target = tmp_path / "card.json"
    with knowing_the_answers(gate_conversations(training_folder)) as service:
        places = ("--data", training_folder, "--reranker", service.host, "--target", target)
        told = json.loads(train(CALIBRATE, *places, "--json"))
    fitted = read_calibration(target)
    assert told["reranker"] == fitted.reranker
    assert fitted.card.slope > 0
    assert fitted.card.thresholds["0.9"] > 0.5
    assert target.with_suffix(".svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_a_service_that_tells_nothing_apart_gets_no_curve(refused, training_folder, tmp_path):
    def alike(request):
        count = len(request.body["documents"])
        return says({"results": [{"index": n, "relevance_score": 0.5} for n in range(count)]})

    target = tmp_path / "card.json"
    with running_service(alike) as service:
        places = ("--data", training_folder, "--reranker", service.host, "--target", target)
        assert "do not rise with what answers" in refused(CALIBRATE, *places)
    assert not target.exists()


@pytest.mark.parametrize(
    ("command", "arguments", "problem"),
    [
        (CALIBRATE, ("--target", "card.svg"), "is where the picture goes"),
        (CALIBRATE, ("--target", "/dev/null/card.json"), "must be a file that can be written"),
        (CALIBRATE, ("--target", "/"), "must be a file that can be written"),
        (CALIBRATE, ("--target", "x", "--reranker", "/nowhere"), "no such model directory"),
        (
            "gate",
            ("--reranker", "mine"),
            "target=None: must be given where the reranker is none of",
        ),
        ("gate", ("--target", "x", "--reranker", "/nowhere"), "no such model directory"),
        ("gate", ("--target", "x", "--feature", "length"), "must be a feature of a gate"),
    ],
)
def test_what_cannot_be_fitted_is_told_before_anything_is_scored(
    refused, tmp_path, command, arguments, problem
):
    given = ("--data", tmp_path, "--reranker", "bundled", *arguments)
    assert problem in refused(command, *given)


def test_a_checkouts_own_file_is_written_and_an_installed_package_is_not_unasked(tmp_path):
    assert fitted_target(None, "hops.json") == FITTED / "hops.json"
    assert fitted_target(tmp_path / "mine.json", "hops.json") == tmp_path / "mine.json"
    folder = tmp_path / "lib" / "ekphory" / "fitted"
    with pytest.raises(InvalidInput, match=r"Give --target hops\.json"):
        fitted_target(None, "hops.json", folder=folder)
