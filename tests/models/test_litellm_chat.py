"""Chat models that LiteLLM reaches, by the library itself and a local service."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from tests.services.wire import Reply, running_service, says

from ekphory.http_service import ServiceRefusal, ServiceSettings, ServiceUnavailable
from ekphory.models.chat import ChatMessage, ChatOptions
from ekphory.models.litellm_chat import LiteLlmChat, LiteLlmSettings

if find_spec("litellm") is None:
    pytest.skip("LiteLLM is not installed", allow_module_level=True)
# Importing LiteLLM takes seconds.
pytestmark = [
    pytest.mark.slow,
    # LiteLLM's own, of Pydantic's classes.
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier:UserWarning"),
]

QUESTION = [ChatMessage("system", "Be short."), ChatMessage("user", "What is green?")]


def answers(content):
    message = {"role": "assistant", "content": content}
    used = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return says({"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                 "choices": [choice], "usage": used})  # fmt: skip


def refuses(status):
    return Reply(status, json.dumps({"error": {"message": "no geheim-123"}}).encode())


@pytest.fixture
def wire():
    with running_service(lambda _: answers("Grass.")) as service:
        yield service


def settings(wire, *, retries=0, **others):
    return LiteLlmSettings(
        model="openai/some-model",
        api_key="geheim-123",
        api_base=f"{wire.host}/v1",
        service=ServiceSettings(timeout=5.0, retries=retries, backoff=0.01),
        **others,
    )


def connect(wire, **others):
    return LiteLlmChat(settings(wire, **others))


def test_a_question_goes_through_litellm_to_the_provider_that_the_model_names(wire):
    chat = connect(wire, extra_kwargs={"seed": 7})

    said = chat.complete(QUESTION, options=ChatOptions(max_tokens=20, temperature=0.0))

    assert said == "Grass."
    assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (9, 2)
    (request,) = wire.asked
    assert request.path == "/v1/chat/completions"
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["authorization"] == "Bearer geheim-123"
    assert request.body["model"] == "some-model"
    assert request.body["seed"] == 7
    assert request.body["max_tokens"] == 20
    assert [each["content"] for each in request.body["messages"]] == ["Be short.", "What is green?"]


def test_an_answer_in_json_is_asked_for_in_words(wire):
    wire.replies = [answers('{"answer": "Grass."}')]
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    assert connect(wire).complete_json(QUESTION, schema) == {"answer": "Grass."}
    assert '"properties"' in wire.bodies[0]["messages"][0]["content"]


def test_a_refusal_is_told_without_the_key(wire):
    wire.replies = [refuses(401)]
    with pytest.raises(ServiceRefusal) as refused:
        connect(wire).complete(QUESTION)
    assert refused.value.status == 401
    assert "(model 'openai/some-model') answered status 401" in str(refused.value)
    assert "geheim" not in str(refused.value)
    assert str(refused.value).endswith("Check the key.")


@pytest.mark.parametrize("retries", [0, 1])
def test_a_busy_service_is_asked_again_as_often_as_is_wanted_and_then_told_of(wire, retries):
    wire.replies = [refuses(503)] * 9
    with pytest.raises(ServiceUnavailable, match="answered status 503"):
        connect(wire, retries=retries).complete(QUESTION)
    assert len(wire.asked) == 1 + retries


def test_what_else_litellm_is_told_may_be_how_long_to_wait_and_neither_streams_nor_repeats(wire):
    more = {"timeout": 9.0, "num_retries": 5, "stream": True}
    chat = connect(wire, extra_kwargs=more)
    assert chat.complete(QUESTION) == "Grass."
    wire.replies = [refuses(503)]
    with pytest.raises(ServiceUnavailable):
        chat.complete(QUESTION)
    assert len(wire.asked) == 2


def test_half_of_a_surrogate_pair_in_a_question_is_sent_as_a_question_mark(wire):
    assert connect(wire).complete([ChatMessage("user", "half \ud800")]) == "Grass."
    assert wire.bodies[0]["messages"][0]["content"] == "half ?"


def test_no_variables_are_taken_from_a_file_of_the_working_directory(tmp_path):
    (tmp_path / ".env").write_text("OPENAI_API_BASE=http://elsewhere.invalid", encoding="utf-8")
    program = (
        "import os\n"
        "from ekphory.models.litellm_chat import LiteLlmChat, LiteLlmSettings\n"
        "LiteLlmChat(LiteLlmSettings(model='openai/m'))\n"
        "print(os.environ.get('OPENAI_API_BASE'))"
    )
    environment = {name: each for name, each in os.environ.items() if name != "LITELLM_MODE"}
    # A program in a file would be looked for beside it.
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert ran.stdout == "None\n"


def test_a_service_that_is_not_there_is_told_of():
    asked = LiteLlmSettings(
        model="openai/some-model",
        api_key="k",
        api_base="http://127.0.0.1:9/v1",
        service=ServiceSettings(timeout=5.0, retries=0),
    )
    with pytest.raises(ServiceUnavailable, match="could not be asked"):
        LiteLlmChat(asked).complete(QUESTION)


def test_a_model_that_takes_no_temperature_is_asked_without_one(wire):
    told = json.dumps({"error": {"message": "temperature is not supported"}}).encode()
    wire.replies = [Reply(400, told)]
    assert connect(wire).complete(QUESTION) == "Grass."
    assert ["temperature" in body for body in wire.bodies] == [True, False]


def test_a_model_of_no_provider_is_refused(wire):
    unknown = LiteLlmSettings(model="some-model", service=ServiceSettings(timeout=1.0, retries=0))
    with pytest.raises(ServiceRefusal, match="LLM Provider NOT provided"):
        LiteLlmChat(unknown).complete(QUESTION)
    assert wire.asked == []


def test_settings_show_no_key(wire):
    asked = settings(wire, extra_kwargs={"aws_secret_access_key": "geheim-456"})
    assert "geheim" not in repr(asked)
    assert "geheim" not in repr(LiteLlmChat(asked))
    assert "://" not in repr(LiteLlmChat(LiteLlmSettings(model="openai/some-model")))
