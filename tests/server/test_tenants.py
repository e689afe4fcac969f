"""What an organisation may ask and hold, and the audit log."""

import json
from hashlib import sha256
from types import SimpleNamespace

import pytest
from tests.server.running import running_server

from ekphory.errors import InvalidInput
from ekphory.scope import Scope
from ekphory.server.audit import AuditFile
from ekphory.server.options import Limits, ServerOptions

HOME = {"org_id": "home", "project_id": "chat"}


def sha(text):
    return sha256(text.encode()).hexdigest()


def json_post(server, path, body):
    return server.client.post(path, content=body, headers={"Content-Type": "application/json"})


@pytest.fixture
def audited(serving, tmp_path):
    """A server with an audit log, and its lines."""
    file = tmp_path / "audit.jsonl"
    running = serving(audit=file)
    read = lambda: [json.loads(line) for line in file.read_text().splitlines()]  # noqa: E731
    return SimpleNamespace(answer=running.answer, post=running.post, read=read, server=running)


def test_the_audit_log_tells_who_read_and_forgot_what_and_no_text(audited, tmp_path):
    said = {**HOME, "messages": [{"content": "I like pizza"}]}
    uid = audited.answer("/memories", said)["results"][0]["uid"]
    audited.answer("/memories/search", {**HOME, "query": "what pizza?"})
    audited.answer("/memories/episodic/delete", {**HOME, "episodic_id": uid}, status=204)
    *_, added, found, forgotten = audited.read()
    assert [each["verb"] for each in (added, found, forgotten)] == [
        "POST /api/v2/memories",
        "POST /api/v2/memories/search",
        "POST /api/v2/memories/episodic/delete",
    ]
    assert [each["ids"] for each in (added, found, forgotten)] == [[sha(uid)]] * 3
    assert (found["query"], found["status"], found["count"]) == (sha("what pizza?"), 200, 1)
    assert (found["org"], found["project"], found["key"]) == ("home", "chat", "127.0.0.1")
    text = (tmp_path / "audit.jsonl").read_text()
    assert "pizza" not in text
    assert uid not in text
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be"])
def test_a_body_that_the_audit_log_cannot_read_is_refused(audited, encoding):
    body = json.dumps({**HOME, "query": "pizza"}).encode(encoding)
    answer = json_post(audited.server, "/api/v2/memories/search", body)
    assert answer.status_code == 422
    assert "Send JSON as UTF-8" in answer.json()["detail"]["message"]


def test_what_stands_behind_a_byte_order_mark_is_noted(audited):
    body = json.dumps({**HOME, "query": "pizza"}).encode("utf-8-sig")
    audited.answer("/projects", HOME, status=201)
    assert json_post(audited.server, "/api/v2/memories/search", body).status_code == 200
    line = audited.read()[-1]
    assert (line["org"], line["query"]) == ("home", sha("pizza"))


def test_a_verb_of_memory_is_noted_with_its_scope(audited):
    call = {"scope": {"org": "home", "project": "chat"}, "arguments": {"text": "tea", "id": "t1"}}
    assert audited.server.client.post("/api/v1/memory/add", json=call).status_code == 200
    line = audited.read()[-1]
    assert (line["verb"], line["org"], line["ids"]) == (
        "POST /api/v1/memory/add", "home", [sha("t1")],
    )  # fmt: skip


def test_an_export_is_noted_before_it_is_given_out(audited):
    call = {"scope": {"org": "home"}, "arguments": {}}
    audited.answer("/projects", HOME, status=201)
    assert audited.server.client.post("/api/v1/memory/export", json=call).status_code == 200
    assert audited.read()[-1]["verb"] == "POST /api/v1/memory/export"


def test_a_name_that_is_none_is_not_noted(audited):
    audited.post("/memories/search", {"org_id": "x" * 2000, "query": "tea"})
    assert (audited.read()[-1]["org"], audited.read()[-1]["status"]) == (None, 422)


def test_nothing_is_answered_where_the_audit_log_cannot_be_written(serving, tmp_path):
    folder = tmp_path / "audit"
    folder.mkdir()
    server = serving(audit=folder / "audit.jsonl")
    (folder / "audit.jsonl").unlink()
    (folder / "audit.jsonl").mkdir()
    status, message = server.refusal("/memories/search", {"query": "tea"})
    assert (status, message) == (
        503,
        "The audit log cannot be written. What was to be stored may be there.",
    )


def test_an_audit_log_in_no_folder_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"audit=.* cannot be written"):
        AuditFile(tmp_path / "missing" / "audit.jsonl")


def test_two_processes_follow_each_other_to_a_new_file(tmp_path):
    first, second = AuditFile(tmp_path / "a"), AuditFile(tmp_path / "a")
    first.maxBytes = 200
    for number in range(4):
        first.write({"number": number, "filling": "x" * 100})
        second.write({"number": number, "filling": ""})
    text = "".join(file.read_text() for file in tmp_path.glob("a*"))
    kept = [json.loads(line) for line in text.splitlines()]
    assert sorted(each["number"] for each in kept) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert (tmp_path / "a.1").exists()


def test_an_organisation_that_asks_too_often_is_told_to_wait_and_others_are_not(tmp_path):
    limits = Limits(org_per_second=0.2)
    with running_server(tmp_path / "store", limits=limits) as server:
        asked = [server.post("/memories/list", {"org_id": name}) for name in ("a", "a", "b")]
    assert [each.status_code == 429 for each in asked] == [False, True, False]
    assert int(asked[1].headers["Retry-After"]) == 5
    assert asked[1].json()["detail"]["message"] == (
        "Organisation 'a' asks more than 0.2 times a second. Try again in 5 s."
    )


def test_a_key_pays_for_its_own_organisation_whichever_it_names(tmp_path):
    limits = Limits(org_per_second=0.2)
    with running_server(tmp_path / "store", limits=limits) as server:
        key = server.service.keys.create(name="", org="a", project=None, rights="read").text
        answers = [
            server.post("/memories/list", {"org_id": "b"}, key=key).status_code for _ in range(2)
        ]
        assert answers == [403, 429]
        assert server.post("/memories/list", {"org_id": "b"}).status_code != 429


def test_an_organisation_holds_no_more_memories_than_it_may(tmp_path):
    with running_server(tmp_path / "store", limits=Limits(org_memories=2)) as server:
        said = {**HOME, "messages": [{"content": "one"}, {"content": "two"}]}
        server.answer("/memories", said)
        others = {**said, "org_id": "work"}
        server.answer("/memories", others)
        # The organisation was empty when it was counted: within half a minute more gets in.
        server.answer("/memories", {**HOME, "messages": [{"content": "three"}]})
    with running_server(tmp_path / "store", limits=Limits(org_memories=2)) as server:
        status, message = server.refusal("/memories", said)
        assert (status, message) == (
            429,
            "Organisation 'home' holds 3 memories and may hold 2: forget some of them. "
            "Try again in 30 s.",
        )
        assert server.post("/memories/search", {**HOME, "query": "one"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v2/memories/capture", {**HOME, "messages": [{"content": "I never eat hazelnuts"}]}),
        (
            "/api/v1/memory/promote",
            {"scope": {"org": "home"}, "arguments": {"id": "one", "pool": "shared_knowledge"}},
        ),
    ],
)
def test_nothing_is_captured_or_promoted_beyond_what_an_organisation_may_hold(serving, path, body):
    server = serving(limits=Limits(org_memories=1))
    with server.service.open(Scope(org="home", project="chat")) as memory:
        memory.add("one", id="one")
    assert server.client.post(path, json=body).status_code == 429


def test_a_server_watches_no_organisation_unless_it_is_told_to(tmp_path):
    assert not ServerOptions(store="x").watches_tenants
    assert ServerOptions(store="x", audit=tmp_path / "a").watches_tenants
