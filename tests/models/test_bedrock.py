"""Amazon Bedrock in its own protocol, at a local service that is asked by boto3 itself."""

import json

import pytest
from tests.services.wire import Reply, running_service, says

from ekphory.errors import InvalidInput, ServiceError
from ekphory.http_service import ServiceRefusal, ServiceSettings, ServiceUnavailable
from ekphory.memory import Memory
from ekphory.models.bedrock import BedrockChat, BedrockEmbedder, BedrockReranker, BedrockSettings
from ekphory.models.chat import ChatMessage, ChatOptions
from ekphory.models.reranker import RerankPassage, RerankQuery

SECRET = "geheim-123"
TITAN = "amazon.titan-embed-text-v2:0"
COHERE = "cohere.embed-multilingual-v3"
CLAUDE = "anthropic.claude-haiku-4-5"
RERANK = "cohere.rerank-v3-5:0"
QUESTION = [ChatMessage("system", "Be short."), ChatMessage("user", "What is green?")]


def settings(model_id, **others):
    return BedrockSettings(
        model_id=model_id,
        region="eu-central-1",
        aws_access_key_id="AKIAEXAMPLE",
        aws_secret_access_key=SECRET,
        service=ServiceSettings(timeout=5.0, retries=1),
        **others,
    )


def numbers(text):
    return [float(len(text)), 1.0, 0.0]


def answer(request):
    """Answer as the models do that the path names."""
    if request.path == "/rerank":
        sources = [each["inlineDocumentSource"]["textDocument"] for each in request.body["sources"]]
        shares = [each["text"].count("a") / len(each["text"]) for each in sources]
        rows = [{"index": index, "relevanceScore": share} for index, share in enumerate(shares)]
        return says({"results": rows[::-1]})
    if request.path.endswith("/converse"):
        return converses("Grass.")
    if "titan" in request.path:
        text = request.body["inputText"]
        return says({"embedding": numbers(text), "inputTextTokenCount": len(text.split())})
    vectors = [numbers(text) for text in request.body["texts"]]
    found = {"float": vectors} if "v4" in request.path else vectors
    return says({"embeddings": found, "response_type": "embeddings_floats"})


def converses(text, ending="end_turn"):
    message = {"role": "assistant", "content": [{"text": text}]}
    usage = {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}
    measured = {"latencyMs": 1}
    return says(
        {"output": {"message": message}, "stopReason": ending, "usage": usage, "metrics": measured}
    )


def refuses(status, code, message):
    body = json.dumps({"message": message}).encode()
    return Reply(status, body, headers={"x-amzn-ErrorType": code})


@pytest.fixture
def wire(monkeypatch):
    with running_service(answer) as service:
        for api in ("BEDROCK_RUNTIME", "BEDROCK_AGENT_RUNTIME"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{api}", service.host)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_CONFIG_FILE", "unused")
        monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
        yield service


def test_titan_is_asked_for_one_text_at_a_time_and_gives_them_in_their_order(wire, close_at_end):
    embedder = close_at_end(BedrockEmbedder(settings(TITAN)))

    vectors = embedder.encode(["a", "b" * 2, "c" * 3])

    assert str(embedder.identity) == "amazon.titan-embed-text-v2:0@bedrock (3-d)"
    assert (vectors[:, 0] / vectors[:, 1]).round(4).tolist() == [1.0, 2.0, 3.0]
    assert (vectors**2).sum(axis=1).round(4).tolist() == [1.0, 1.0, 1.0]
    assert {request.path for request in wire.asked} == {
        "/model/amazon.titan-embed-text-v2%3A0/invoke"
    }
    assert sorted(body["inputText"] for body in wire.bodies[1:]) == ["a", "bb", "ccc"]


@pytest.mark.parametrize("model_id", [COHERE, "us.cohere.embed-v4:0"])
def test_cohere_is_told_what_is_a_query_and_what_a_document(wire, close_at_end, model_id):
    embedder = close_at_end(BedrockEmbedder(settings(model_id)))

    embedder.encode(["tea", "milk"])
    embedder.encode_query(["tea?"])
    embedder.encode_query(["tea?"])

    assert [(body["input_type"], body["texts"]) for body in wire.bodies] == [
        ("search_document", ["dimension"]),
        ("search_document", ["tea", "milk"]),
        ("search_query", ["tea?"]),
    ]


def test_no_texts_ask_nothing(wire, close_at_end):
    embedder = close_at_end(BedrockEmbedder(settings(COHERE)))
    assert embedder.encode([]).shape == (0, 3)
    assert embedder.encode_query([]).shape == (0, 3)
    assert len(wire.asked) == 1


def test_memories_are_found_by_a_model_of_bedrock(wire, close_at_end, tmp_path):
    embedder = close_at_end(BedrockEmbedder(settings(TITAN)))
    with Memory(tmp_path, embedder=embedder) as memory:
        memory.add("tea")
        assert [hit.text for hit in memory.search("tea")] == ["tea"]


def test_requests_are_signed_by_the_credentials_and_hold_no_secret(wire, close_at_end):
    close_at_end(BedrockEmbedder(settings(TITAN)))
    (request,) = wire.asked
    signed = request.headers["Authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/")
    assert "/eu-central-1/bedrock/aws4_request" in signed
    assert SECRET not in str(request)


def test_credentials_are_read_as_awss_own_tools_read_them(wire, close_at_end, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    close_at_end(BedrockEmbedder(BedrockSettings(model_id=TITAN)))
    assert "Credential=AKIAOTHER/" in wire.asked[0].headers["Authorization"]
    assert "/us-west-2/" in wire.asked[0].headers["Authorization"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("no", "not JSON"),
        ("[]", "answered no embeddings"),
        ('{"embeddings": []}', "was sent 1 texts and gave 0 embeddings"),
        ('{"embeddings": [["a"]]}', "holds no numbers"),
        ('{"embeddings": [[0, 0]]}', "zero or not finite"),
        ('{"embeddings": [[1, 0]]}', "gave vectors of length 2, before 3"),
        ('{"embeddings": [[[1, 0, 0]]]}', "gave embeddings of shape"),
        ('{"embeddings": [[1e300, 1, 1]]}', "zero or not finite"),
    ],
)
def test_a_wrong_answer_is_told(wire, close_at_end, content, told):
    embedder = close_at_end(BedrockEmbedder(settings(COHERE)))
    wire.replies = [Reply(body=content.encode())]
    with pytest.raises(ServiceError, match=told):
        embedder.encode(["tea"])


def test_a_refusal_is_told_with_what_aws_said_and_without_the_secret(wire):
    wire.replies = [refuses(403, "AccessDeniedException", f"not AKIAEXAMPLE with {SECRET}")]
    with pytest.raises(ServiceRefusal) as refused:
        BedrockEmbedder(settings(TITAN))
    assert refused.value.status == 403
    assert "AccessDeniedException: not *** with ***" in str(refused.value)
    assert "(model 'amazon.titan-embed-text-v2:0') answered status 403" in str(refused.value)
    assert len(wire.asked) == 1


def test_a_busy_service_is_asked_again_and_then_told_of(wire, close_at_end):
    embedder = close_at_end(BedrockEmbedder(settings(TITAN)))
    wire.replies = [refuses(429, "ThrottlingException", "slower")]
    assert len(embedder.encode(["tea"])) == 1
    wire.replies = [refuses(429, "ThrottlingException", "slower")] * 2
    with pytest.raises(ServiceUnavailable, match="slower"):
        embedder.encode(["tea"])


def test_a_service_that_is_not_there_is_told_of(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://127.0.0.1:9")
    with pytest.raises(ServiceUnavailable, match="could not be asked"):
        BedrockEmbedder(settings(TITAN))


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"region": "not a region"}, "region='not a region'"),
        ({"model_id": "amazon.nova-embed"}, "must be an embedding model of Amazon Titan or Cohere"),
        ({"aws_secret_access_key": None}, "aws_secret_access_key=None"),
        ({"region": None}, "set AWS_DEFAULT_REGION"),
    ],
)
def test_what_no_model_can_be_asked_by_is_refused(wire, others, told):
    given = {
        "model_id": TITAN,
        "region": "eu-central-1",
        "aws_access_key_id": "AKIAEXAMPLE",
        "aws_secret_access_key": SECRET,
    }
    with pytest.raises(InvalidInput, match=told):
        BedrockEmbedder(BedrockSettings(**(given | others)))
    assert wire.asked == []


def test_a_profile_of_aws_that_is_not_there_is_told_by_its_name(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(InvalidInput, match="AWS_PROFILE='nobody'"):
        BedrockEmbedder(settings(TITAN))


def test_a_chat_goes_through_converse(wire, close_at_end):
    more = {"top_k": 50}
    chat = close_at_end(BedrockChat(settings(CLAUDE, additional_model_request_fields=more)))

    said = chat.complete(QUESTION, options=ChatOptions(max_tokens=20, temperature=0.0))

    assert said == "Grass."
    assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (9, 2)
    assert wire.asked[0].path == "/model/anthropic.claude-haiku-4-5/converse"
    assert wire.bodies == [
        {
            "system": [{"text": "Be short."}],
            "messages": [{"role": "user", "content": [{"text": "What is green?"}]}],
            "inferenceConfig": {"maxTokens": 20, "temperature": 0.0},
            "additionalModelRequestFields": {"top_k": 50},
        }
    ]


def test_an_answer_in_json_is_asked_for_in_words(wire, close_at_end):
    chat = close_at_end(BedrockChat(settings(CLAUDE)))
    wire.replies = [converses('Here: {"answer": "Grass."}')]
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    assert chat.complete_json(QUESTION, schema) == {"answer": "Grass."}
    assert '"properties"' in wire.bodies[0]["system"][0]["text"]


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("max_tokens", "was cut off after 150 tokens"),
        ("guardrail_intervened", "filtered its answer"),
        ("content_filtered", "filtered its answer"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused(wire, close_at_end, ending, told):
    chat = close_at_end(BedrockChat(settings(CLAUDE)))
    wire.replies = [converses("Gra", ending)]
    with pytest.raises(ServiceError, match=told):
        chat.complete(QUESTION)


def test_a_model_that_takes_no_temperature_is_asked_without_one(wire, close_at_end):
    chat = close_at_end(BedrockChat(settings(CLAUDE)))
    told = "`temperature` is not supported by this model."
    wire.replies = [refuses(400, "ValidationException", told)]
    assert chat.complete(QUESTION) == "Grass."
    assert chat.complete(QUESTION) == "Grass."
    named = [sorted(body["inferenceConfig"]) for body in wire.bodies]
    assert named == [["maxTokens", "temperature"], ["maxTokens"], ["maxTokens"]]


def test_passages_are_scored_in_their_order_over_all_pages(wire, close_at_end):
    reranker = close_at_end(BedrockReranker(settings(RERANK)))
    wire.replies = [
        says({"results": [{"index": 1, "relevanceScore": 0.9}], "nextToken": "more"}),
        says({"results": [{"index": 0, "relevanceScore": 0.2}]}),
    ]

    scores = reranker.score(RerankQuery("q"), [RerankPassage("b"), RerankPassage("aa")])

    assert scores.tolist() == pytest.approx([0.2, 0.9])
    assert [body.get("nextToken") for body in wire.bodies] == [None, "more"]
    told = wire.bodies[0]["rerankingConfiguration"]["bedrockRerankingConfiguration"]
    assert told == {
        "numberOfResults": 2,
        "modelConfiguration": {
            "modelArn": "arn:aws:bedrock:eu-central-1::foundation-model/cohere.rerank-v3-5:0"
        },
    }
    assert reranker.name == "bedrock:cohere.rerank-v3-5:0"


def test_a_passage_without_a_score_is_told(wire, close_at_end):
    reranker = close_at_end(BedrockReranker(settings(RERANK)))
    wire.replies = [says({"results": [{"index": 0, "relevanceScore": 0.2}]})]
    with pytest.raises(ServiceError, match="was sent 2 passages and scored 1"):
        reranker.score(RerankQuery("q"), [RerankPassage("b"), RerankPassage("aa")])


def test_no_passages_ask_nothing_of_the_reranker(wire, close_at_end):
    reranker = close_at_end(BedrockReranker(settings(RERANK)))
    assert reranker.score(RerankQuery("q"), []).shape == (0,)
    assert wire.asked == []


def test_half_of_a_surrogate_pair_is_sent_as_a_question_mark(wire, close_at_end):
    half = "half \ud800"
    close_at_end(BedrockEmbedder(settings(TITAN))).encode([half])
    close_at_end(BedrockChat(settings(CLAUDE))).complete([ChatMessage("user", half)])
    reranker = close_at_end(BedrockReranker(settings(RERANK)))
    reranker.score(RerankQuery(half), [RerankPassage(half)])
    _, embedded, said, ranked = wire.bodies
    assert embedded["inputText"] == "half ?"
    assert said["messages"][0]["content"] == [{"text": "half ?"}]
    assert ranked["queries"][0]["textQuery"]["text"] == "half ?"
    assert ranked["sources"][0]["inlineDocumentSource"]["textDocument"]["text"] == "half ?"


def test_settings_show_no_credentials():
    shown = repr(settings(TITAN, aws_session_token="token-9"))
    assert SECRET not in shown
    assert "token-9" not in shown
    assert "AKIAEXAMPLE" not in shown
