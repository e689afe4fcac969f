"""A model that is slow, broken or unwilling touches no message, and hides no failure."""

import sqlite3
import time

import pytest
from tests.services.wire import Reply

from ekphory.catalog.extraction import FailedExtraction
from ekphory.service.handles import Place, ServiceModels
from ekphory.service.learning import ExtractionSettings
from ekphory.service.memory_service import MemoryService
from ekphory.testing import HashEmbedder

from .conftest import hand_over
from .teacher import command, completion, until

pytestmark = pytest.mark.slow
UNUSABLE = "a model refused, or gave no usable answer"
PIZZA = command("add", "preferences", "dish", "pizza")
NOTHING = completion('{"commands": []}').body
WRONG = [
    completion("I'd rather not."),
    completion(None, refusal="I cannot."),
    completion('{"commands": [{"command": "burn"}]}'),
    completion('{"commands": [{"command": "add", "tag": "money", "feature": "a", "value": "b"}]}'),
    completion('{"commands": [{"command": "add", "tag": "work", "feature": " ", "value": "b"}]}'),
    Reply(body=b"<html>"),
]


@pytest.fixture
def pizza(teacher):
    """What is learnt from a message about pizza."""
    teacher.knows("pizza", PIZZA)


def values(features):
    return [each.value for each in features]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_that_cannot_be_used_is_asked_for_again(pizza, wire, tell, learnt, wrong):
    wire.replies = [wrong]
    tell("I love pizza")
    assert values(learnt()) == ["pizza"]
    assert len(wire.asked) == 2


def test_after_some_attempts_it_is_given_up_shown_to_its_project_and_tried_again_on_request(
    service, pizza, wire, tell, learnt, home
):
    wire.replies = [completion("no")] * 3
    (episode,) = tell("I love pizza")
    assert learnt() == []
    state = service.extraction.state(home)
    assert (state.waiting, state.failed) == (0, 1)
    assert state.failures == (FailedExtraction(episode, UNUSABLE, 3),)
    other = service.extraction.state(Place(home.org, "work"))
    assert (other.failed, other.failures) == (0, ())
    assert len(wire.asked) == 3
    assert service.extraction.try_again(home) == 1
    assert values(learnt()) == ["pizza"]
    assert service.extraction.state(home).failed == 0


def test_a_message_that_fails_does_not_hold_up_the_later_ones_for_ever(pizza, wire, tell, learnt):
    wire.replies = [completion("no")] * 3
    tell("whatever", "I love pizza")
    assert values(learnt()) == ["pizza"]


@pytest.mark.parametrize("status", [401, 503])
def test_while_the_service_is_out_of_order_everything_waits(
    service, pizza, wire, tell, learnt, home, status
):
    wire.replies = [Reply(status)] * 3
    tell("I love pizza")
    until(lambda: service.extraction.state().out_of_order is not None)
    assert values(learnt()) == ["pizza"]
    state = service.extraction.state(home)
    assert (state.failed, state.out_of_order) == (0, None)
    assert len(wire.asked) == 4


def test_a_service_that_is_not_there_loses_nothing(apart, home):
    with apart("I love pizza", host="http://127.0.0.1:9") as service:
        until(lambda: service.extraction.state().out_of_order is not None)
        assert service.extraction.state(home).waiting == 1
        assert service.episodes.count(home) == 1


def test_a_slow_model_holds_up_no_message(wire, tell, service, home):
    wire.replies = [Reply(body=NOTHING, delay=1.5)]
    started = time.perf_counter()
    tell("one", "two")
    tell("three")
    assert time.perf_counter() - started < 1
    assert service.episodes.count(home) == 3


def test_what_is_deleted_while_it_waits_is_not_read(service, teacher, wire, tell, learnt, home):
    wire.replies = [Reply(body=NOTHING, delay=0.2)]
    _, second = tell("one", "two")
    service.episodes.delete(home, [second])
    learnt()
    assert teacher.texts() == []


def test_a_project_that_is_deleted_while_its_message_is_read_leaves_nothing(
    service, pizza, teacher, wire, tell, learnt, home
):
    wire.answer = lambda request: Reply(body=teacher(request).body, delay=0.3)
    service.projects.ensure(*home.owner)
    tell("I love pizza")
    until(lambda: wire.asked)
    service.delete_project(home)
    time.sleep(0.5)
    assert learnt() == []
    assert service.sets.known(home) == []


def test_what_another_process_drops_while_it_is_written_is_taken_back(apart, pizza, tmp_path, home):
    with apart() as service:
        catalog = sqlite3.connect(tmp_path / "store" / "catalog.sqlite3")
        catalog.execute(
            "CREATE TRIGGER dropped AFTER UPDATE OF done ON extraction_jobs "
            "BEGIN DELETE FROM extraction_jobs; END"
        )
        catalog.close()
        hand_over(service, home, "I love pizza")
        until(lambda: service.sets.known(home) and not service.extraction.state().waiting)
        until(lambda: not service.features.page(home, limit=5))


def test_what_waits_when_the_service_ends_is_read_after_the_next_start(apart, pizza, wire, home):
    wire.replies = [Reply(delay=1)]
    with apart("pizza", "tea", settings=ExtractionSettings(stop=0.1, poll=0.05)) as service:
        until(lambda: wire.asked)
    with apart() as service:
        until(lambda: service.extraction.state(home).waiting == 0)
        (feature,) = service.features.page(home, limit=5)
        (cited,) = feature.citations
        with service.memory(home) as memory:
            assert memory.get(cited).text == "pizza"


def test_of_two_services_on_one_store_one_reads_and_the_other_takes_over(apart, teacher, home):
    with apart("one") as second:
        with apart("two"):
            until(lambda: second.extraction.state(home).waiting == 0)
        hand_over(second, home, "three")
        until(lambda: second.extraction.state(home).waiting == 0)
    assert sorted(teacher.texts()) == ["one", "three", "two"]


def test_without_a_language_model_nothing_is_queued(tmp_path, home):
    with MemoryService(tmp_path / "s", models=ServiceModels(embedder=HashEmbedder())) as service:
        service.extraction.learn_from(home, ["e1"])
        state = service.extraction.state(home)
    assert (state.enabled, state.waiting) == (False, 0)


@pytest.mark.parametrize(("learnt", "asked"), [("off", 0), ("categories", 0), ("profile", 1)])
def test_what_is_learnt_is_a_setting(apart, teacher, home, learnt, asked):
    with apart("pizza", settings=ExtractionSettings(learnt=learnt, poll=0.05)) as service:
        until(lambda: service.extraction.state(home).waiting == 0)
    assert len(teacher.asked) == asked
