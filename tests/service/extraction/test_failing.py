"""A model that is slow, broken or unwilling touches no message, and hides no failure."""

import sqlite3
import time

import pytest
from tests.services.wire import Reply

from ekphory.catalog.extraction import FailedExtraction
from ekphory.service.episodes import EpisodeMessage
from ekphory.service.handles import Place, ServiceModels
from ekphory.service.learning import ExtractionSettings
from ekphory.service.memory_service import MemoryService
from ekphory.testing.models import HashEmbedder

from .teacher import command, completion, learning_service, until

pytestmark = pytest.mark.slow
UNUSABLE = "a model refused, or gave no usable answer"
PIZZA = command("add", "preferences", "dish", "pizza")
WRONG = [
    completion("I'd rather not."),
    completion(None, refusal="I cannot."),
    completion('{"commands": [{"command": "burn"}]}'),
    completion('{"commands": [{"command": "add", "tag": "money", "feature": "a", "value": "b"}]}'),
    completion('{"commands": [{"command": "add", "tag": "work", "feature": " ", "value": "b"}]}'),
    Reply(body=b"<html>"),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_that_cannot_be_used_is_asked_for_again(teacher, wire, tell, learnt, wrong):
    teacher.knows("pizza", PIZZA)
    wire.replies = [wrong]
    tell("I love pizza")
    assert [each.value for each in learnt()] == ["pizza"]
    assert len(wire.asked) == 2


def test_after_some_attempts_it_is_given_up_and_shown(service, wire, tell, learnt, home):
    wire.answer = lambda _: completion("no")
    (episode,) = tell("I love pizza")
    assert learnt() == []
    state = service.extraction.state(home)
    assert (state.waiting, state.failed) == (0, 1)
    assert state.failures == (FailedExtraction(episode, UNUSABLE, 3),)
    assert len(wire.asked) == 3


def test_what_was_given_up_can_be_tried_again(service, teacher, wire, tell, learnt, home):
    teacher.knows("pizza", PIZZA)
    wire.replies = [completion("no")] * 3
    tell("I love pizza")
    learnt()
    assert service.extraction.try_again(home) == 1
    assert [each.value for each in learnt()] == ["pizza"]
    assert service.extraction.state(home).failed == 0


def test_no_other_project_sees_what_failed(service, wire, tell, learnt, home):
    wire.answer = lambda _: completion("no")
    tell("I love pizza")
    learnt()
    state = service.extraction.state(Place(home.org, "work"))
    assert (state.failed, state.failures) == (0, ())


def test_a_message_that_fails_does_not_hold_up_the_later_ones_for_ever(teacher, wire, tell, learnt):
    teacher.knows("pizza", PIZZA)
    wire.replies = [completion("no")] * 3
    tell("whatever", "I love pizza")
    assert [each.value for each in learnt()] == ["pizza"]


@pytest.mark.parametrize("status", [401, 503])
def test_while_the_service_is_out_of_order_everything_waits(
    service, teacher, wire, tell, learnt, home, status
):
    teacher.knows("pizza", PIZZA)
    wire.replies = [Reply(status)] * 3
    tell("I love pizza")
    until(lambda: service.extraction.state().out_of_order is not None)
    assert [each.value for each in learnt()] == ["pizza"]
    state = service.extraction.state(home)
    assert (state.failed, state.out_of_order) == (0, None)
    assert len(wire.asked) == 4


def test_a_service_that_is_not_there_loses_nothing(tmp_path, home):
    with learning_service(tmp_path / "store", "http://127.0.0.1:9") as service:
        ids = service.episodes.add(home, [EpisodeMessage(content="I love pizza")])
        service.extraction.learn_from(home, ids)
        until(lambda: service.extraction.state().out_of_order is not None)
        assert service.extraction.state(home).waiting == 1
        assert service.episodes.count(home) == 1


def test_a_slow_model_holds_up_no_message(wire, tell, service, home):
    wire.replies = [Reply(body=completion('{"commands": []}').body, delay=1.5)]
    started = time.perf_counter()
    tell("one", "two")
    tell("three")
    assert time.perf_counter() - started < 1
    assert service.episodes.count(home) == 3


def test_what_is_deleted_while_it_waits_is_not_read(service, teacher, wire, tell, learnt, home):
    wire.replies = [Reply(body=completion('{"commands": []}').body, delay=0.2)]
    _, second = tell("one", "two")
    service.episodes.delete(home, [second])
    learnt()
    assert teacher.texts() == []


def test_a_project_that_is_deleted_while_its_message_is_read_leaves_nothing(
    service, teacher, wire, tell, learnt, home
):
    teacher.knows("pizza", PIZZA)
    wire.answer = lambda request: Reply(body=teacher(request).body, delay=0.3)
    service.projects.ensure(*home.owner)
    tell("I love pizza")
    until(lambda: wire.asked)
    service.delete_project(home)
    time.sleep(0.5)
    assert learnt() == []
    assert service.sets.known(home) == []


def test_what_another_process_drops_while_it_is_written_is_taken_back(
    tmp_path, teacher, wire, home
):
    teacher.knows("pizza", PIZZA)
    with learning_service(tmp_path / "store", wire.host) as service:
        catalog = sqlite3.connect(tmp_path / "store" / "catalog.sqlite3")
        catalog.execute(
            "CREATE TRIGGER dropped AFTER UPDATE OF done ON extraction_jobs "
            "BEGIN DELETE FROM extraction_jobs; END"
        )
        catalog.close()
        ids = service.episodes.add(home, [EpisodeMessage(content="I love pizza")])
        service.extraction.learn_from(home, ids)
        until(lambda: service.sets.known(home) and not service.extraction.state().waiting)
        until(lambda: not service.features.page(home, limit=5))


def test_what_waits_when_the_service_ends_is_read_after_the_next_start(
    tmp_path, teacher, wire, home
):
    teacher.knows("pizza", PIZZA)
    wire.replies = [Reply(delay=1)]
    store = tmp_path / "store"
    hasty = ExtractionSettings(stop=0.1, poll=0.05)
    with learning_service(store, wire.host, settings=hasty) as service:
        ids = service.episodes.add(
            home, [EpisodeMessage(content="pizza"), EpisodeMessage(content="tea")]
        )
        service.extraction.learn_from(home, ids)
        until(lambda: wire.asked)
    with learning_service(store, wire.host) as service:
        until(lambda: service.extraction.state(home).waiting == 0)
        (feature,) = service.features.page(home, limit=5)
        assert feature.citations == (ids[0],)


def test_of_two_services_on_one_store_one_reads_and_the_other_takes_over(
    tmp_path, teacher, wire, home
):
    store = tmp_path / "store"
    with learning_service(store, wire.host) as second:
        with learning_service(store, wire.host) as first:
            for service, text in ((first, "one"), (second, "two")):
                ids = service.episodes.add(home, [EpisodeMessage(content=text)])
                service.extraction.learn_from(home, ids)
            until(lambda: second.extraction.state(home).waiting == 0)
        ids = second.episodes.add(home, [EpisodeMessage(content="three")])
        second.extraction.learn_from(home, ids)
        until(lambda: second.extraction.state(home).waiting == 0)
    assert sorted(teacher.texts()) == ["one", "three", "two"]


def test_without_a_language_model_nothing_is_queued(tmp_path, home):
    with MemoryService(tmp_path / "s", models=ServiceModels(embedder=HashEmbedder())) as service:
        service.extraction.learn_from(home, ["e1"])
        state = service.extraction.state(home)
    assert (state.enabled, state.waiting) == (False, 0)


@pytest.mark.parametrize(("learnt", "asked"), [("off", 0), ("categories", 0), ("profile", 1)])
def test_what_is_learnt_is_a_setting(tmp_path, teacher, wire, home, learnt, asked):
    settings = ExtractionSettings(learnt=learnt, poll=0.05)
    with learning_service(tmp_path / "store", wire.host, settings=settings) as service:
        ids = service.episodes.add(home, [EpisodeMessage(content="pizza")])
        service.extraction.learn_from(home, ids)
        until(lambda: service.extraction.state(home).waiting == 0)
    assert len(teacher.asked) == asked
