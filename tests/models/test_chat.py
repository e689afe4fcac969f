import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import read_cases
from tests.services.wire import Reply, running_service, says

from ekphory.errors import InvalidInput, ServiceError
from ekphory.http_service import ServiceSettings
from ekphory.models.chat import (
    ChatMessage,
    ChatOptions,
    ChatSettings,
    ChatUsage,
    OpenAIChat,
    find_breach,
    find_json_object,
    strip_thinking,
)
from ekphory.models.loading import load_chat

CASES = read_cases(__file__)

SERVICE = ServiceSettings(timeout=5.0, retries=1, backoff=0.01)
SETTINGS = ChatSettings(model="m", api_key="geheim-123", service=SERVICE)
QUESTION = [ChatMessage("system", "Be short."), ChatMessage("user", "What is green?")]
ANSWER = {"properties": {"answer": {"type": "string"}}, "required": ["answer"]}
SCHEMA = {"type": "object", **ANSWER, "additionalProperties": False}


def answers(content):
    message = {"role": "assistant", "content": content}
    return says({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def refuses(status, param=None):
    error = {"message": "no", "type": "invalid_request_error", "param": param}
    return Reply(status, json.dumps({"error": error}).encode())


@pytest.fixture
def wire():
    with running_service(lambda _: answers('{"answer": "Grass."}')) as service:
        yield service


@pytest.fixture
def connect(wire, close_at_end):
    return lambda settings=SETTINGS: close_at_end(OpenAIChat(wire.host, settings=settings))


def formats(wire):
    """How JSON was asked for, request by request."""
    return [body.get("response_format", {}).get("type", "text") for body in wire.bodies]


@pytest.mark.parametrize("usage", [None, [], "none", {"prompt_tokens": "12"}])
def test_a_service_that_counts_no_tokens_is_understood_all_the_same(connect, wire, usage):
    wire.replies = [answers("Grass.")]
    wire.replies[0].body = json.dumps(json.loads(wire.replies[0].body) | {"usage": usage}).encode()
    chat = connect()
    assert chat.complete(QUESTION) == "Grass."
    assert chat.usage == ChatUsage(answers=1)


def test_the_messages_are_sent_and_the_text_comes_back(connect, wire):
    wire.replies = [answers(" Grass.\n")]

    settings = replace(SETTINGS, extra_fields={"chat_template_kwargs": {"thinking": False}})
    options = ChatOptions(max_tokens=9, temperature=0.7)
    text = connect(settings).complete(QUESTION, options=options)

    (request,) = wire.asked
    assert text == "Grass."
    assert request.path == "/v1/chat/completions"
    assert request.headers["Authorization"] == "Bearer geheim-123"
    assert request.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "What is green?"},
        ],
        "max_tokens": 9,
        "temperature": 0.7,
        "chat_template_kwargs": {"thinking": False},
    }


@pytest.mark.parametrize(("body", "problem"), CASES["no answers"])
def test_what_is_no_answer_is_an_error_with_its_reason(connect, wire, body, problem):
    wire.replies = [Reply(body=body.encode())]

    with pytest.raises(ServiceError, match=problem):
        connect().complete(QUESTION, options=ChatOptions(max_tokens=9))


@pytest.mark.parametrize("status", [400, 422])
def test_a_service_without_schemas_is_asked_for_an_object(connect, wire, status):
    wire.replies = [Reply(status)]

    assert connect().complete_json(QUESTION, SCHEMA) == {"answer": "Grass."}

    system = wire.bodies[1]["messages"][0]["content"]
    assert formats(wire) == ["json_schema", "json_object"]
    assert system.startswith("Be short.\n\nAnswer with one JSON object")
    assert system.endswith(json.dumps(SCHEMA))


def test_a_service_without_json_is_asked_in_words(connect, wire):
    wire.replies = [Reply(400), Reply(400), answers('Gladly:\n```json\n{"answer": "Moss."}\n```')]
    chat = connect()

    assert chat.complete_json(QUESTION[1:], SCHEMA) == {"answer": "Moss."}
    chat.complete_json(QUESTION, SCHEMA)

    # What it does not support is remembered.
    assert formats(wire) == ["json_schema", "json_object", "text", "text"]
    assert [message["role"] for message in wire.bodies[2]["messages"]] == ["system", "user"]


def test_a_refusal_for_another_reason_is_not_remembered(connect, wire):
    wire.replies = [Reply(400), Reply(400), Reply(400)]
    chat = connect()

    with pytest.raises(ServiceError, match="status 400"):
        chat.complete_json(QUESTION, SCHEMA)
    chat.complete_json(QUESTION, SCHEMA)

    assert formats(wire) == ["json_schema", "json_object", "text", "json_schema"]


@pytest.mark.parametrize("reply", [refuses(400, "messages"), Reply(401), Reply(404)])
def test_a_refusal_that_is_not_about_the_format_is_an_error_at_once(connect, wire, reply):
    wire.replies = [reply]

    with pytest.raises(ServiceError, match="status 40"):
        connect().complete_json(QUESTION, SCHEMA)
    assert len(wire.asked) == 1


def test_a_service_that_knows_neither_max_tokens_nor_temperature_is_asked_without(connect, wire):
    wire.replies = [refuses(400, "max_tokens"), refuses(400, "temperature")]
    chat = connect()

    chat.complete(QUESTION, options=ChatOptions(max_tokens=9))
    chat.complete(QUESTION, options=ChatOptions(max_tokens=9))

    fields = [set(body) - {"model", "messages"} for body in wire.bodies]
    assert fields[:2] == [{"max_tokens", "temperature"}, {"max_completion_tokens", "temperature"}]
    assert fields[2:] == [{"max_completion_tokens"}] * 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("Grass.", "answered no JSON object"),
        ("[1]", "answered no JSON object"),
        ('{"answer": "Gra', "answered no JSON object"),
        ('{"answer": 7}', r"broke the schema.*\$\.answer: 7 is not of type"),
    ],
)
def test_an_answer_that_breaks_the_schema_says_where(connect, wire, content, problem):
    wire.replies = [answers(content)]

    with pytest.raises(ServiceError, match=problem):
        connect().complete_json(QUESTION, SCHEMA)


def test_json_is_asked_for_by_its_schema(connect, wire):
    # What is not a schema is refused before anything is sent.
    with pytest.raises(InvalidInput, match="schema"):
        connect().complete_json(QUESTION, {"type": 5})
    assert wire.asked == []
    # Json is asked for by its schema.
    assert connect().complete_json(QUESTION, SCHEMA) == {"answer": "Grass."}

    assert wire.bodies[0]["messages"][0]["content"] == "Be short."
    described = {"name": "answer", "schema": SCHEMA, "strict": True}
    asked = wire.bodies[0]["response_format"]
    assert asked == {"type": "json_schema", "json_schema": described}


def test_the_key_is_never_shown(connect, wire):
    wire.replies = [Reply(401, b"key geheim-123 is wrong")]
    chat = connect()

    problem = "chat service at .* status 401.*Check the key"
    with pytest.raises(ServiceError, match=problem) as caught:
        chat.complete(QUESTION)

    assert "geheim" not in f"{caught.value} {chat!r} {SETTINGS!r}"


def test_a_url_and_a_model_make_a_chat(wire):
    # A url and a model make a chat.
    chat = load_chat(wire.host, model="small", api_key="k")
    chat.complete(QUESTION)
    chat.close()

    assert chat.name == wire.bodies[0]["model"] == "small"
    assert wire.asked[0].headers["Authorization"] == "Bearer k"
    # A chat without a model is refused.
    with pytest.raises(InvalidInput, match="model"):
        load_chat("http://localhost", model=None)


@pytest.mark.parametrize(
    ("answer", "breach"),
    [
        ({"queries": ["tea", "milk"]}, None),
        ({}, "$: 'queries' is a required property"),
        ({"queries": "tea"}, "$.queries: 'tea' is not of type 'array'"),
        ({"queries": ["tea", 1]}, "$.queries[1]: 1 is not of type 'string'"),
    ],
)
def test_a_breach_says_where_and_how(answer, breach):
    strings = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": {"queries": strings}, "required": ["queries"]}
    assert find_breach(answer, schema) == breach


@pytest.mark.parametrize(("text", "kept"), CASES["thoughts"])
def test_what_was_thought_aloud_is_left_out(text, kept):
    assert strip_thinking(text) == kept


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *CASES["objects"],
        ('{"a": NaN}', None),
        ('{"a": 1', None),
        ("[1, 2]", None),
        ("no", None),
        ("{" * 100_000, None),
        ('{"a":' * 100_000, None),
    ],
)
def test_the_first_object_is_found_wherever_it_stands(text, found):
    assert find_json_object(text) == found


@given(
    st.text(st.characters(exclude_characters="{")),
    st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())),
    st.text(),
)
def test_an_object_between_words_comes_back_as_it_was(before, content, after):
    assert find_json_object(before + json.dumps(content) + after) == content
