"""Features that a language model learns from what is said, over HTTP."""

import os
import sqlite3

import pytest
from tests.server.running import models, running_server
from tests.server.test_serving import Served
from tests.service.extraction.teacher import (
    CALLED,
    QUICK,
    Teacher,
    command,
    completion,
    taught,
    until,
)

from ekphory.models.chat import ChatSettings, OpenAIChat

EXTRACTION = "/memories/semantic/extraction"


@pytest.fixture
def teacher():
    teacher = Teacher()
    teacher.knows("pizza", command("add", "preferences", "favourite_dish", "pizza"))
    return teacher


@pytest.fixture
def wire(teacher):
    with taught() as wire:
        wire.answer = teacher
        yield wire


@pytest.fixture
def server(tmp_path, wire):
    chat = OpenAIChat(wire.host, settings=ChatSettings(model="small", service=CALLED))
    with running_server(tmp_path / "store", used=models(chat=chat), extraction=QUICK) as running:
        yield running
    chat.close()


@pytest.fixture
def settled(server, project):
    """Waits until all of the project's messages were read, and returns how far it is."""

    def settled():
        until(lambda: server.answer(EXTRACTION, project)["waiting"] == 0)
        return server.answer(EXTRACTION, project)

    return settled


def test_what_is_said_is_learnt_found_and_cited(server, say, found, settled):
    (cited,) = say("I love pizza", metadata={"user_id": "mara"})
    assert settled() == {
        **{"enabled": True, "waiting": 0, "failed": 0, "out_of_order": None, "failures": []},
        "unqueued": 0,
    }
    (feature,) = found("which dish?", filter="metadata.user_id = 'mara'")["semantic_memory"]
    assert (feature["feature_name"], feature["value"]) == ("favourite_dish", "pizza")
    assert feature["metadata"]["citations"] == [cited]


def test_a_message_for_episodic_memory_alone_is_not_learnt_from(server, project, teacher, settled):
    message = {"content": "I love pizza"}
    for types in (["episodic"], ["semantic"], ["episodic", "semantic"]):
        server.answer("/memories", {**project, "types": types, "messages": [message]})
    settled()
    assert len(teacher.asked) == 2


@pytest.mark.slow
def test_what_fails_is_shown_and_tried_again_on_request(server, project, say, wire, settled, found):
    wire.replies = [completion("I'd rather not.")] * QUICK.attempts
    (uid,) = say("I love pizza")
    state = settled()
    reason = "a model refused, or gave no usable answer"
    assert state["failures"] == [{"uid": uid, "reason": reason, "attempts": QUICK.attempts}]
    assert state["failed"] == 1
    assert 'ekphory_extraction_episodes{state="failed"} 1' in server.client.get("/metrics").text
    assert server.answer(f"{EXTRACTION}/retry", project) == {"waiting": 1}
    settled()
    assert [each["value"] for each in found("dish")["semantic_memory"]] == ["pizza"]


def test_what_the_catalog_cannot_take_is_stored_and_counted_for_its_project_alone(
    server, project, say, tmp_path
):
    catalog = sqlite3.connect(tmp_path / "store" / "catalog.sqlite3")
    catalog.execute(
        "CREATE TRIGGER broken BEFORE INSERT ON extraction_jobs BEGIN DELETE FROM lost; END"
    )
    catalog.close()
    assert len(say("I love pizza", "I love tea")) == 2
    assert server.answer(EXTRACTION, project)["unqueued"] == 2
    other = {**project, "project_id": "other"}
    server.answer("/projects", other, status=201)
    assert server.answer(EXTRACTION, other)["unqueued"] == 0
    assert 'ekphory_extraction_episodes{state="unqueued"} 2' in server.client.get("/metrics").text


def test_the_configuration_names_the_language_model(server):
    config = server.client.get("/api/v2/config/memory/semantic").json()
    assert config["llm_model"] == "small"


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_after_a_kill_it_goes_on_where_it_was(tmp_path, monkeypatch, teacher, wire):
    monkeypatch.setenv("EKPHORY_CHAT_URL", wire.host)
    monkeypatch.setenv("EKPHORY_CHAT_MODEL", "small")
    wire.replies = [completion('{"commands": []}')]
    wire.replies[0].delay = 30
    first = Served(tmp_path / "store")
    assert first.add("I am Mara").status_code == first.add("I love pizza").status_code == 200
    until(lambda: wire.asked, seconds=60)
    first.client.close()
    first.process.kill()
    first.process.communicate()
    again = Served(tmp_path / "store")
    listing = {"page_size": 10, "type": "semantic"}

    def features():
        answered = again.client.post("/api/v2/memories/list", json=listing).json()
        return [each["value"] for each in answered["content"]["semantic_memory"]]

    until(lambda: features() == ["pizza"], seconds=60)
    again.stop()
    assert teacher.texts() == ["I am Mara", "I love pizza"]
