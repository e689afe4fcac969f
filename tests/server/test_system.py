"""Health, metrics, docs, request ids and the log."""

import json
import logging
import re
import time

import pytest
from tests.server.running import models

from ekphory.server.request_log import JsonLines

ALSO_OVER_A_CLUSTER = True


@pytest.fixture
def log(caplog):
    """Gives the log as it is written, one JSON object a line, once it has so many requests."""
    caplog.set_level(logging.INFO, logger="ekphory")
    formatter = JsonLines()

    def lines(requests):
        # A request is logged when its answer has been sent, which may reach the test before.
        while len([each for each in caplog.records if each.message == "request"]) < requests:
            time.sleep(0.005)
        return [json.loads(formatter.format(record)) for record in caplog.records]

    return lines


class BrokenReranker:
    """A model with a defect, whose message holds what it was given."""

    name = "broken"
    batch_size = 8

    def score(self, query, passages, /):
        raise ZeroDivisionError(query.text, passages)


def test_the_docs_ask_no_other_host(server):
    page = server.client.get("/docs").text
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert sources
    assert all(source.startswith("/") for source in sources)
    assert all(server.client.get(source).status_code == 200 for source in sources)


def test_every_path_documents_its_refusals(server):
    described = server.client.get("/openapi.json").json()["paths"]
    refusals = {"401", "403", "422", "429", "503"}
    for path, methods in described.items():
        for method in methods.values():
            assert refusals <= set(method["responses"]) or path.endswith("/health"), path


@pytest.mark.parametrize("path", ["/health", "/api/v2/health"])
def test_a_monitor_may_ask_for_the_head_of_health_alone(server, path):
    answered = server.client.head(path)
    assert (answered.status_code, answered.content) == (200, b"")


def test_metrics_count_by_route_and_never_by_what_was_asked(server, say):
    say("tea")
    server.client.get("/api/v2/traces/some-trace")
    measured = server.client.get("/metrics").text
    assert 'route="/api/v2/traces/{trace_id}"' in measured
    assert "some-trace" not in measured
    assert "ekphory_memories_added_total" in measured


@pytest.mark.parametrize(
    ("given", "same"), [("abc-1", True), ("a b", False), ("x" * 65, False), ("é", False)]
)
def test_a_request_has_an_id(server, given, same):
    headers = {"X-Request-ID": given.encode()}
    answered = server.client.get("/health", headers=headers).headers["X-Request-ID"]
    assert (answered == given) is same
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", answered)


def test_the_log_tells_what_was_asked_and_nothing_of_its_content(server, project, log):
    secret = server.keys.create().text
    said = {**project, "messages": [{"content": "whisper"}]}
    server.post("/memories?q=whisper", said, key=secret)
    server.post("/memories/search", {**project, "query": "whisper", "filter": "whisper ="})
    server.client.get("/api/v2/whisper")
    lines = [line for line in log(3) if line["message"] == "request"]
    assert [(line["route"], line["status"]) for line in lines] == [
        ("/api/v2/memories", 200),
        ("/api/v2/memories/search", 422),
        ("unknown", 404),
    ]
    written = json.dumps(log(3))
    assert not [text for text in ("whisper", secret) if text in written]
    assert lines[0]["caller"] == secret.split("_")[1]


def test_a_defect_is_answered_and_logged_without_its_text(serving, log):
    server = serving(used=models(reranker=BrokenReranker()))
    answered = server.client.post("/rerank", json={"query": "whisper", "documents": ["a"]})
    (line,) = log(1)
    assert answered.status_code == 500
    assert "whisper" not in answered.text + json.dumps(line)
    assert (line["level"], line["exception"]["type"]) == ("error", "ZeroDivisionError")
    assert line["exception"]["places"][-1].endswith(" score")
    assert line["request_id"] in answered.json()["message"]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (
            "/nowhere",
            404,
            "There is nothing at this path. /inspect shows the memories, /docs lists "
            "what can be asked.",
        ),
        ("/api/v2/memories", 405, "Method Not Allowed"),
    ],
)
def test_a_path_that_is_not_there_is_told_as_any_error(server, path, status, message):
    answered = server.client.get(path)
    assert answered.status_code == status
    detail = answered.json()["detail"]
    assert (detail["code"], detail["message"]) == (status, message)
