from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import pytest

from ekphory.catalog.database import NotPermitted, NotThere
from ekphory.service.handles import Place
from ekphory.service.semantic import Feature

BOUND = Place("home", "chat", "project")
WORK = Place("home", "work")


def learn(service, place, value="pizza", *, set_id="s", **fields):
    feature = Feature(
        **{"set_id": set_id, "category": "profile", "tag": "food", "name": "dish", **fields},
        value=value,
    )
    return service.features.add(place, feature)


def find(service, place, text="dish", *, limit=10, **query):
    features, _ = service.features.search(place, text, limit=limit, **query)
    return [feature.value for feature in features]


def test_a_feature_comes_back_as_it_was_and_is_no_episode(service, home):
    metadata = {"user": "mara", "category": "mine"}
    feature_id = learn(service, home, "pizza: hot", metadata=metadata, citations=("e1",))
    found = service.features.get(home, feature_id)
    assert (found.name, found.value, found.citations) == ("dish", "pizza: hot", ("e1",))
    assert found.metadata == metadata
    assert service.episodes.count(home) == 0


def test_a_feature_of_another_project_is_not_there(service, home):
    feature_id = learn(service, home)
    for forbidden in (
        lambda: service.features.get(WORK, feature_id),
        lambda: service.features.update(WORK, feature_id, {"value": "x"}),
        lambda: service.features.delete(WORK, [feature_id]),
    ):
        with pytest.raises(NotThere):
            forbidden()
    assert find(service, WORK) == []


def test_a_set_of_the_organisation_is_seen_by_its_projects(service, home):
    shared = service.sets.name_of(home, [], None, is_org_level=True)
    feature_id = learn(service, home, "pasta", set_id=shared)
    assert find(service, WORK) == ["pasta"]
    assert service.features.get(WORK, feature_id).value == "pasta"
    assert find(service, Place("other", "chat")) == []


def test_who_is_bound_to_a_project_cannot_change_what_its_organisation_shares(service, home):
    shared = service.sets.name_of(home, [], None, is_org_level=True)
    feature_id = learn(service, home, "pasta", set_id=shared)
    for forbidden in (
        lambda: learn(service, BOUND, set_id=shared),
        lambda: service.features.update(BOUND, feature_id, {"value": "x"}),
        lambda: service.features.delete(BOUND, [feature_id]),
        lambda: service.sets.add_type(BOUND, ["user_id"], is_org_level=True),
        lambda: service.configure_set(BOUND, shared, embedder=None, llm=None),
    ):
        with pytest.raises(NotPermitted):
            forbidden()
    assert service.features.get(BOUND, feature_id).value == "pasta"


def test_set_metadata_narrows_a_search_to_its_sets(service, home):
    for user, value in (("mara", "pizza"), ("ben", "pasta")):
        own = service.sets.name_of(home, ["user_id"], {"user_id": user})
        learn(service, home, value, set_id=own)
    learn(service, home, "bread", set_id="for all")
    assert sorted(find(service, home)) == ["bread", "pasta", "pizza"]
    assert sorted(find(service, home, set_metadata={"user_id": "mara"})) == ["bread", "pizza"]


def test_a_feature_is_filtered_by_its_parts_and_by_the_tags_of_its_set(service, home):
    own = service.sets.name_of(home, ["user_id"], {"user_id": "mara"})
    learn(service, home, "pizza", set_id=own)
    learn(service, home, "jazz", tag="music")
    assert find(service, home, condition="m.user_id = 'mara'") == ["pizza"]
    assert find(service, home, condition="m.tag = 'music' AND m.category = 'profile'") == ["jazz"]


def test_changing_a_feature_keeps_what_is_not_named_and_the_tags_of_its_set(service, home):
    own = service.sets.name_of(home, ["user_id"], {"user_id": "mara"})
    feature_id = learn(service, home, set_id=own, metadata={"source": "chat"})
    service.features.update(home, feature_id, {"value": "pasta", "name": "lunch"})
    found = service.features.get(home, feature_id)
    assert (found.name, found.value, found.tag) == ("lunch", "pasta", "food")
    assert found.metadata["source"] == "chat"
    service.features.update(home, feature_id, {"metadata": {"seen": "twice"}})
    assert find(service, home, condition="m.user_id = 'mara' AND m.seen = 'twice'") == ["pasta"]


def test_of_two_changes_of_a_feature_at_the_same_time_both_hold(service, home):
    feature_id = learn(service, home)
    together = Barrier(2)

    def change(changes):
        together.wait()
        service.features.update(home, feature_id, changes)

    with ThreadPoolExecutor(2) as threads:
        for value, tag in (("pasta", "meals"), ("bread", "eating"), ("soup", "kitchen")):
            list(threads.map(change, [{"value": value}, {"tag": tag}]))
            found = service.features.get(home, feature_id)
            assert (found.value, found.tag) == (value, tag)


def test_what_is_noted_while_its_project_is_deleted_is_listed_or_gone(service, home):
    together = Barrier(2)

    def note(number):
        together.wait()
        sleep(number / 1_000)  # so that it comes at each stage of the deletion
        learn(service, home, f"soup {number}")

    with ThreadPoolExecutor(1) as thread:
        for number in range(40):
            service.projects.ensure(*home.owner)
            learn(service, home, "bread")
            noting = thread.submit(note, number)
            together.wait()
            service.delete_project(home)
            noting.result()
            listed = {feature.value for feature in service.features.page(home, limit=10)}
            with service.handles.features(*home.owner) as memory:
                kept = {record.text.removeprefix("dish: ") for record in memory.list()}
            assert kept == listed


def test_pages_go_through_the_project_and_then_its_organisation(service, home):
    shared = service.sets.name_of(home, [], None, is_org_level=True)
    for value, set_id in (("a", "s"), ("b", "s"), ("c", shared), ("d", shared)):
        learn(service, home, value, set_id=set_id)
    for limit, offset, values in ((3, 0, "abc"), (3, 3, "d"), (2, 1, "bc"), (2, 9, "")):
        found = service.features.page(home, limit=limit, offset=offset)
        assert "".join(feature.value for feature in found) == values


def test_a_deleted_project_leaves_nothing(service, home):
    from ekphory.service.episodes import EpisodeMessage

    service.projects.ensure(*home.owner)
    service.episodes.add(home, [EpisodeMessage(content="tea")])
    feature_id = learn(service, home)
    service.delete_project(home)
    assert service.episodes.count(home) == 0
    with pytest.raises(NotThere):
        service.features.get(home, feature_id)
    assert service.sets.known(home) == []
