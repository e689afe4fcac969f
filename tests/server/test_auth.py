"""Who may come in, and how far."""

import httpx
import pytest
from tests.cases import read_cases
from tests.server.conftest import EITHER, served
from tests.server.running import running_server

from ekphory.errors import InvalidInput
from ekphory.scope import Scope
from ekphory.server.auth import Caller
from ekphory.server.options import GivenKey, ServerOptions, is_loopback

CASES = read_cases(__file__)
OWN = {"org_id": "home", "project_id": "chat"}
OTHER = {"org_id": "home", "project_id": "work"}
FOREIGN = {"org_id": "away", "project_id": "chat"}


@pytest.fixture(scope="module", params=EITHER)
def guarded(request, tmp_path_factory):
    """A server that demands keys."""
    store = tmp_path_factory.mktemp("guarded") / "store"
    with served(store, over_a_cluster=request.param, require_key=True) as running:
        yield running


@pytest.fixture(scope="module")
def key_for(guarded):
    def make(**bound):
        return guarded.keys.create(**bound).text

    return make


@pytest.mark.parametrize(
    "authorization", [None, "Bearer", "Bearer sk-1", "Basic ek_1_2", "Bearer ek_1_2"]
)
def test_without_a_known_key_nobody_comes_in(guarded, authorization):
    headers = {} if authorization is None else {"Authorization": authorization}
    answered = guarded.client.post("/api/v2/projects/list", headers=headers)
    assert answered.status_code == 401
    assert answered.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("caller", [Caller("k", org=""), Caller("k", org="home", project="")])
def test_a_key_that_an_earlier_version_bound_to_a_blank_name_reaches_no_memory(caller):
    with pytest.raises(InvalidInput):
        caller.bind(Scope())


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "Token"])
def test_a_key_comes_in_by_either_scheme(guarded, key_for, scheme):
    headers = {"Authorization": f"{scheme} {key_for()}"}
    assert guarded.client.get("/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *((path, 200) for path in ("/health", "/api/v2/health", "/docs", "/openapi.json")),
        *((path, 401) for path in ("/metrics", "/api/v2/metrics", "/v1/models", "/nowhere")),
    ],
)
def test_health_and_the_docs_need_no_key_and_all_else_needs_one(guarded, path, status):
    assert guarded.client.get(path).status_code == status


def test_a_revoked_key_is_refused_at_once(guarded):
    made = guarded.keys.create()
    guarded.answer("/projects/list", key=made.text)
    guarded.keys.revoke(made.key.id)
    assert guarded.post("/projects/list", key=made.text).status_code == 401


@pytest.mark.parametrize(("path", "body", "needed"), CASES["rights"])
def test_a_key_may_do_what_its_rights_say(guarded, key_for, path, body, needed):
    for place, rights in enumerate(("read", "write", "admin")):
        status = guarded.post(path, OWN | body, key=key_for(rights=rights)).status_code
        assert (status != 403) == (place >= needed), rights


@pytest.mark.parametrize("elsewhere", [OTHER, FOREIGN])
@pytest.mark.parametrize(("path", "body"), CASES["reached"])
def test_a_key_of_a_project_does_not_reach_another(guarded, key_for, path, body, elsewhere):
    bound = key_for(org="home", project="chat", rights="admin")
    assert guarded.post(path, elsewhere | body, key=bound).status_code == 403


def test_a_key_of_an_organisation_reaches_all_of_its_projects(guarded, key_for):
    bound = key_for(org="home")
    guarded.answer("/projects", OTHER, key=bound, status=201)
    assert guarded.post("/memories/list", OTHER, key=bound).status_code == 200
    assert guarded.post("/memories/list", FOREIGN, key=bound).status_code == 403


def test_a_request_that_names_no_project_goes_to_the_keys_own(guarded, key_for):
    bound = key_for(org="named", project="own")
    guarded.answer("/memories", {"messages": [{"content": "tea"}]}, key=bound)
    assert guarded.answer("/projects/list", key=bound) == [{"org_id": "named", "project_id": "own"}]


@pytest.mark.parametrize("path", ["/metrics", "/api/v2/metrics", "/api/v2/inspect/health"])
def test_what_counts_all_organisations_is_for_keys_that_are_bound_to_none(guarded, key_for, path):
    def status(**bound):
        headers = {"Authorization": f"Bearer {key_for(**bound)}"}
        return guarded.client.get(path, headers=headers).status_code

    assert status(rights="read") == 200
    assert status(org="home", rights="admin") == 403
    assert status(org="home", project="chat", rights="admin") == 403


def test_a_trace_of_another_project_is_not_there(guarded, key_for):
    mine, theirs = (key_for(org="home", project=name) for name in ("chat", "work"))
    guarded.answer("/projects", OWN, key=mine, status=201)
    searched = guarded.post("/memories/search", OWN | {"query": "x"}, key=mine)
    path = f"/api/v2/traces/{searched.headers['X-Trace-ID']}"
    for key, status in ((mine, 200), (theirs, 404)):
        answered = guarded.client.get(path, headers={"Authorization": f"Bearer {key}"})
        assert answered.status_code == status


def test_on_a_loopback_address_a_key_still_binds_and_any_other_is_ignored(server):
    server.service.projects.ensure(*OTHER.values())
    bound = server.service.keys.create(org="home", project="chat").text
    for key, status in ((bound, 403), ("ek_unknown", 401), ("sk-of-another-service", 200)):
        assert server.post("/memories/list", OTHER, key=key).status_code == status


@pytest.mark.parametrize(("headers", "status"), CASES["pages"])
def test_without_keys_no_foreign_page_may_ask(server, headers, status):
    assert httpx.post(f"{server.url}/api/v2/projects/list", headers=headers).status_code == status


def test_a_page_of_another_host_may_ask_only_where_it_is_named(server, tmp_path):
    page = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    allowed, path = "access-control-allow-origin", "/api/v2/memories"
    assert allowed not in server.client.options(path, headers=page).headers
    with running_server(tmp_path / "store", origins=("https://app.example",)) as naming:
        answered = naming.client.options(path, headers=page)
        health = naming.client.get("/health", headers={"Origin": "https://app.example"})
    assert answered.headers[allowed] == "https://app.example"
    assert health.headers["access-control-expose-headers"] == (
        "Retry-After, X-Export-Report, X-Request-ID, X-Trace-ID"
    )


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True), ("[::1]", True)),
        *(("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example.org", False)),
    ],
)
def test_only_this_machine_reaches_a_loopback_address(host, expected):
    assert is_loopback(host) is expected


GIVEN = "f00d" * 16


def test_a_key_that_the_server_is_started_with_is_needed_and_may_do_everything(serving):
    server = serving(key=GivenKey.of(GIVEN))
    for key, status in ((GIVEN, 200), (None, 401), (GIVEN[:-1], 401), (GIVEN + "0", 401)):
        assert server.post("/projects/list", key=key).status_code == status
    server.answer("/projects", OWN, key=GIVEN, status=201)
    # Keys of the catalog are known beside it.
    bound = server.service.keys.create(org="home", project="chat").text
    assert server.post("/memories/list", OWN, key=bound).status_code == 200
    assert server.post("/memories/list", OTHER, key=bound).status_code == 403
    server.answer("/projects/delete", OWN, key=GIVEN, status=204)


@pytest.mark.parametrize("text", ["short", "x" * 31, "é" * 40, "x" * 20 + " " + "y" * 20])
def test_a_key_that_could_be_guessed_or_not_be_sent_is_refused_and_none_is_shown(text):
    with pytest.raises(InvalidInput, match="32 or more visible ASCII characters") as refused:
        GivenKey.of(text)
    assert text not in str(refused.value)
    assert GIVEN not in repr(ServerOptions(store="s", key=GivenKey.of(GIVEN)))
