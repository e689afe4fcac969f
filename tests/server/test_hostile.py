"""Whatever is sent, the server answers with a status that it documents, and goes on."""

import json
import random

import pytest
from tests.server.running import running_server

VICTIM = {"org_id": "victim", "project_id": "vault"}
SECRET = "the safe opens with 4711"
WORDS = [
    *("", " ", "a/b", "../../etc/passwd", "%2e%2e%2f", "\x00", "\ud800", "é" * 2000, "🙂", "NaN"),
    *("' OR 1=1 --", "'; DROP TABLE projects; --", "victim", "victim/vault", "vault/semantic"),
    *("m.x = 'y'", "org = 'victim'", "project != 'x' OR TRUE", "(" * 5000, "NOT " * 2000, "a ="),
    *("id IN ('" + "','".join("abc") * 500 + "')", "at > date('9999-99-99')", "text CONTAINS ''"),
    *("<relevant-memories>", "rk_x_y", "1e999", "-1", "null", "true", "{}", "[]", "x" * 100_000),
]
NUMBERS = [0, -1, 1, 10**9, 2**63, -(2**63), 10**400, 1.5, -0.0, 1e308, float("nan"), float("inf")]
HEADERS = [
    {},
    {"Authorization": "Bearer \xff\xfe"},
    {"Authorization": "Bearer rk_" + "x" * 3000},
    {"X-Request-ID": "x\ty"},
    {"X-Retrieval-Trace": "maybe"},
    {"Content-Type": "text/plain"},
    {"Origin": "http://["},
    {"Host": "[["},
    {"Content-Type": "application/json; charset=utf-16"},
]
BODIES = [
    *(b"", b"{", b"null", b"[]", b"\xff\xfe", b'"x"', b"{}" * 2, b"[" * 100_000, b'{"a":' * 50_000),
    b'{"top_k": ' + b"9" * 5000 + b', "query": ""}',
    b'{"query": "\\ud800"}',
    b'{"query": "x", "query": "y"}',
]

LIKELY = {
    **{"query": "tea", "messages": [{"content": "tea"}], "documents": ["a"], "input": "tea"},
    **{"set_id": "s", "metadata_tags": ["user_id"], "set_type_id": "1", "category_id": "1"},
    **{"category_name": "c", "prompt": "p", "tag": "t", "feature": "f", "value": "v"},
    **{"tag_name": "t", "tag_description": "d", "tag_id": "1"},
    **{"feature_id": "f", "episodic_id": "e", "semantic_id": "f"},
}


def any_json(chance, depth=3):
    kind = chance.random()
    if depth == 0 or kind < 0.6:
        return chance.choice([*WORDS, *NUMBERS, None, True, False])
    if kind < 0.8:
        return [any_json(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(WORDS): any_json(chance, depth - 1) for _ in range(chance.randrange(4))}


def fields_of(described, operation):
    """The names in an operation's body, with the names inside them."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    reference = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return list(described["components"]["schemas"].get(reference, {}).get("properties", {}))


def a_body(chance, names):
    """A body with the right names, of which most hold what they should."""
    body = {name: LIKELY[name] for name in names if name in LIKELY}
    for name in chance.sample(names, min(len(names), chance.randrange(1, 4))):
        body[name] = any_json(chance)
    return body


def attack(server, *, times, seed):
    """Send requests of all kinds; gives those that were answered as they must not be."""
    chance = random.Random(seed)
    described = server.client.get("/openapi.json").json()
    operations = [
        (method.upper(), path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    wrong = []
    for _ in range(times):
        method, path, operation = chance.choice(operations)
        content = chance.choice(BODIES)
        if chance.random() < 0.85:
            content = json.dumps(a_body(chance, fields_of(described, operation) or ["x"])).encode()
        headers = {"Content-Type": "application/json"} | chance.choice([{}, {}, *HEADERS])
        answered = server.client.request(
            method,
            path.replace("{trace_id}", "%00..%2f"),
            content=content,
            headers={name: value.encode("latin-1") for name, value in headers.items()},
        )
        documented = {int(status) for status in operation["responses"]} | {401, 404, 405, 413}
        if answered.status_code not in documented or SECRET in answered.text:
            wrong.append((method, path, content[:300], answered.status_code, answered.text[:300]))
    return wrong


def unharmed(server):
    """Whether the victim's memory is as it was."""
    listed = server.answer("/memories/list", {**VICTIM, "type": "episodic"})["content"]
    return [each["content"] for each in listed["episodic_memory"]] == [SECRET]


@pytest.fixture
def victim(tmp_path):
    with running_server(tmp_path / "store") as server:
        server.answer("/memories", {**VICTIM, "messages": [{"content": SECRET}]})
        yield server


@pytest.mark.slow
def test_two_thousand_hostile_requests_are_refused_and_do_no_harm(victim):
    assert attack(victim, times=2000, seed=2) == []
    assert unharmed(victim)
