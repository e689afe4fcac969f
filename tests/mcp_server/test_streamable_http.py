"""`ekphory mcp --transport http` as a process, and clients with keys and without."""

import httpx
import pytest

from ekphory.catalog.access_keys import AccessKeys
from ekphory.catalog.database import Database
from ekphory.service.handles import catalog_file

from .connected import ended, listening, over_http

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("http") / "store"


@pytest.fixture(scope="module")
def keys(store):
    database = Database(catalog_file(store))
    yield AccessKeys(database)
    database.close()


@pytest.fixture(scope="module")
def url(store, keys):
    """Where a server listens that is bound to one organisation and needs a key."""
    keys.create()
    with listening(store, "--org", "acme", "--require-key") as told:
        assert told["needs_key"]
        yield told["url"]


@pytest.fixture(scope="module")
def key_for(keys):
    def make(**bound):
        return keys.create(**bound).text

    return make


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_remembers_recalls_and_forgets(url, key_for, mode):
    with over_http(url, key_for(org="acme", project=mode), mode=mode) as agent:
        assert len(agent.tools()) == 6
        kept = agent.data("remember", text="Mara lives in Lisbon")
        assert agent.recalled("Where does Mara live?") == ["Mara lives in Lisbon"]
        assert agent.data("forget", id=kept["id"])["forgotten"] == 1
        assert agent.data("list")["total"] == 0


def test_a_key_says_whose_memories_are_seen(url, key_for):
    home, away = (key_for(org="acme", project=name) for name in ("home", "away"))
    with over_http(url, home) as at_home, over_http(url, away) as elsewhere:
        at_home.call("remember", text="The key lies under the mat")
        assert at_home.recalled("Where is the key?") == ["The key lies under the mat"]
        assert elsewhere.recalled("Where is the key?") == []
        assert "never from a call" in elsewhere.refusal("recall", query="key", project="home")


def test_a_key_of_another_organisation_reaches_nothing_and_a_reading_one_reads(url, key_for):
    with over_http(url, key_for(org="other", project="home")) as agent:
        told = agent.refusal("recall", query="key")
        assert told == "The key is bound to another organisation or project."
    with over_http(url, key_for(org="acme", project="home", rights="read")) as agent:
        assert set(agent.tools()) == {"recall", "list", "explain"}
        assert "right to write" in agent.refusal("remember", text="tea")


def test_without_a_known_key_nobody_comes_in_and_a_revoked_one_is_refused_at_once(url, keys):
    made = keys.create(org="acme", project="home")
    headers = {"Authorization": f"Bearer {made.text}", "Accept": "text/event-stream"}
    # It never speaks first.
    assert httpx.get(url, headers=headers).status_code == 405
    keys.revoke(made.key.id)
    for wrong in (headers, {}, {"Authorization": "Bearer ek_1_2"}):
        assert httpx.post(url, headers=wrong).status_code == 401


@pytest.mark.long
def test_on_a_loopback_address_only_this_machine_comes_in_without_a_key(tmp_path):
    with listening(tmp_path / "store", "--user", "mara") as told:
        with over_http(told["url"]) as agent:
            assert agent.data("remember", text="tea at five")["status"] == "added"
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            assert httpx.post(told["url"], headers=headers).status_code == 403


def test_an_address_that_others_reach_needs_a_key(tmp_path):
    said = ended("--store", str(tmp_path / "store"), "--transport", "http", "--host", "0.0.0.0")
    assert said.startswith("0.0.0.0 can be reached by others, and there is no key yet.")
