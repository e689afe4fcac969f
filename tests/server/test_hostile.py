"""Whatever is sent, the server answers as it documents, tells nothing of others, and goes on."""

import json
import logging
import socket

import httpx
import pytest
from tests.server.attacks import (
    WORDS,
    body_attacks,
    filter_attacks,
    id_attacks,
    key_attacks,
    path_attacks,
    raw_attacks,
)
from tests.server.conftest import EITHER, served

from ekphory.server.request_log import JsonLines

VICTIM = {"org_id": "victim", "project_id": "vault"}
OWN = {"org_id": "attacker", "project_id": "own"}
SECRET = "the safe opens with 4711"


class Besieged:
    """A server with a victim's memories, and an attacker with all rights to another project."""

    def __init__(self, server):
        self.server = server
        self.owner = server.keys.create(rights="admin").text
        self.key = server.keys.create(org="attacker", project="own", rights="admin").text
        self.described = server.client.get("/openapi.json").json()
        self.ids = self._remembered()
        self.answer("/memories", {**OWN, "messages": [{"content": "a decoy"}]})
        self.sent = 0

    def answer(self, path, body, **settings):
        return self.server.answer(path, body, key=self.owner, **settings)

    def _remembered(self):
        """Write something of each kind into the victim's project, and return all ids."""
        said = {**VICTIM, "messages": [{"content": SECRET}]}
        (added,) = self.answer("/memories", said)["results"]
        semantic = "/memories/semantic"
        set_type = self.answer(f"{semantic}/set_type", {**VICTIM, "metadata_tags": []}, status=201)
        owner = {**VICTIM, "set_id": "safe", "category_name": "c"}
        feature = {**owner, "tag": "t", "feature": "f", "value": SECRET}
        known = self.answer(f"{semantic}/feature", feature, status=201)
        named = {**owner, "prompt": SECRET}
        category = self.answer(f"{semantic}/category", named, status=201)
        self.category = category
        tag = {**category, "tag_name": "t", "tag_description": SECRET}
        tagged = self.answer(f"{semantic}/category/tag", {**VICTIM, **tag}, status=201)
        found = self.server.post("/memories/search", {**VICTIM, "query": "safe"}, key=self.owner)
        made = [*set_type.values(), *known.values(), *category.values(), *tagged.values()]
        return [added["uid"], "safe", *made, found.headers["X-Trace-ID"]]

    def send(self, attack):
        """Send one request, and return the answer's status and text."""
        self.sent += 1
        headers = {"Authorization": f"Bearer {self.key}".encode(), **attack.headers}
        # As it is: httpx itself would tidy it up.
        target = {"target": attack.path.encode()}
        answered = self.server.client.request(
            attack.method, "/", content=attack.content, headers=headers, extensions=target
        )
        return answered.status_code, answered.text

    def send_raw(self, data):
        """Send bytes as they are and nothing more, and return what comes back."""
        self.sent += 1
        url = httpx.URL(self.server.url)
        with socket.create_connection((url.host, url.port), timeout=10) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: connection.recv(65_536), b""))
            except OSError:
                # The server hung up in the middle of it.
                return b""

    def state(self):
        """All that the victim has."""
        listed = self.answer("/memories/list", VICTIM)["content"]
        sets = self.answer("/memories/semantic/set_id/list", VICTIM)
        categories = self.answer("/memories/semantic/category/get", {**VICTIM, **self.category})
        return json.dumps([listed, sets, categories])


@pytest.fixture(params=EITHER)
def besieged(request, tmp_path):
    store = tmp_path / "store"
    with served(store, over_a_cluster=request.param, require_key=True) as server:
        yield Besieged(server)


def wrong_answers(besieged, attacks):
    """Those that were answered as they must not be."""
    wrong = []
    for attack in attacks:
        status, text = besieged.send(attack)
        if status not in attack.documented or status >= 500 or SECRET in text:
            wrong.append((attack.method, attack.path, attack.content[:200], status, text[:300]))
    return wrong


def wrong_raw_answers(besieged):
    answers = [(data[:200], besieged.send_raw(data)) for data in raw_attacks(besieged.key)]
    return [each for each in answers if b" 500 " in each[1][:20] or SECRET.encode() in each[1]]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_thousand_hostile_requests_are_refused_and_do_no_harm(besieged, caplog):
    caplog.set_level(logging.INFO, logger="ekphory")
    before, described = besieged.state(), besieged.described
    odd_ids = [word for word in WORDS if len(word) < 5000][::2]
    assert wrong_answers(besieged, body_attacks(described)) == []
    assert wrong_answers(besieged, filter_attacks(described)) == []
    assert wrong_answers(besieged, id_attacks(described, [*besieged.ids, *odd_ids])) == []
    assert wrong_answers(besieged, path_attacks()) == []
    assert wrong_answers(besieged, key_attacks()) == []
    assert wrong_raw_answers(besieged) == []
    assert besieged.sent >= 1000
    assert besieged.state() == before
    found = besieged.answer("/memories/search", {**VICTIM, "query": "what opens the safe?"})
    assert SECRET in json.dumps(found)
    written = "\n".join(JsonLines().format(record) for record in caplog.records)
    assert '"status": 500' not in written
    assert not [text for text in (SECRET, besieged.key, besieged.owner) if text in written]


@pytest.mark.slow
def test_nothing_that_was_cut_off_is_remembered(besieged):
    for data in raw_attacks(besieged.key):
        besieged.send_raw(data)
    listed = besieged.answer("/memories/list", {**OWN, "type": "episodic"})["content"]
    assert [each["content"] for each in listed["episodic_memory"]] == ["a decoy"]
