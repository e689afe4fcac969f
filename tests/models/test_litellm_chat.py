"""Chat models that LiteLLM reaches, by the library itself and a local service."""

import json

import pytest
from tests.services.wire import Reply, running_service, says

from ekphory.http_service import ServiceRefusal, ServiceSettings, ServiceUnavailable
from ekphory.models.chat import ChatMessage, ChatOptions

pytest.importorskip("litellm")
# Importing LiteLLM takes seconds.
pytestmark = [
    pytest.mark.slow,
    # LiteLLM's own, of Pydantic's classes.
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier:UserWarning"),
]

from ekphory.models.litellm_chat import LiteLlmChat, LiteLlmSettings  # noqa: E402

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


def connect(wire, **others):
    return LiteLlmChat(
        LiteLlmSettings(
            model="openai/some-model",
            api_key="geheim-123",
            api_base=f"{wire.host}/v1",
            service=ServiceSettings(timeout=5.0, retries=0),
            **others,
        )
    )


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


def test_a_busy_service_is_told_of(wire):
    wire.replies = [refuses(503)] * 3
    with pytest.raises(ServiceUnavailable):
        connect(wire).complete(QUESTION)


def test_a_model_of_no_provider_is_refused(wire):
    unknown = LiteLlmSettings(model="some-model", service=ServiceSettings(timeout=1.0, retries=0))
    with pytest.raises(ServiceRefusal, match="LLM Provider NOT provided"):
        LiteLlmChat(unknown).complete(QUESTION)
    assert wire.asked == []


def test_settings_show_no_key(wire):
    assert "geheim" not in repr(connect(wire))
