"""The questions of README and of the demo are answered at README's own `min_score`."""

import pytest

from ekphory.cli.demo import DEMO_NOW, SCENES, demo_questions, demo_records
from ekphory.memory import Memory

LEAST = 0.2


@pytest.fixture(scope="module")
def readme(tmp_path_factory):
    path = tmp_path_factory.mktemp("readme")
    with Memory(path, project="home", user="mara") as memory:
        memory.add("I prefer Python over JavaScript", producer="user", type="semantic")
        memory.add("Deployed v2 to staging", at="2026-11-20T10:00Z", importance=0.8)
        memory.add_messages(
            [
                {"role": "user", "content": "Where should we go in spring?"},
                {"role": "assistant", "content": "Lisbon is warm by then."},
            ],
            session="trip",
        )
        yield memory


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    with Memory(tmp_path_factory.mktemp("demo")) as memory:
        memory.add_many(demo_records())
        yield memory


@pytest.mark.parametrize("preset", ["balanced", "accurate"])
@pytest.mark.parametrize(
    ("query", "begins"),
    [
        ("what language does the user like?", "I prefer Python"),
        ("what language do I like?", "I prefer Python"),
        ("deployments", "Deployed v2"),
        ("where should we travel in spring?", "Where should we go"),
    ],
)
def test_readmes_questions_are_answered(readme, query, begins, preset):
    hits = readme.search(query, k=5, min_score=LEAST, preset=preset).hits
    assert hits[0].text.startswith(begins)


@pytest.mark.parametrize("preset", ["balanced", "accurate"])
def test_what_readmes_store_does_not_tell_comes_back_empty(readme, preset):
    result = readme.search("who won the chess match?", min_score=LEAST, preset=preset)
    assert result.abstained


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.shows)
def test_the_demos_scenes_find_something_that_likely(demo, scene):
    pools = None if scene.pool is None else [scene.pool]
    result = demo.search(
        scene.query, k=3, now=DEMO_NOW, filter=scene.filter, pools=pools, min_score=LEAST
    )
    assert result.hits


@pytest.mark.parametrize("question", demo_questions(), ids=lambda question: question.text)
def test_the_demos_questions_are_answered(demo, question):
    if question.chain:
        pytest.skip("needs more than one lookup")
    hits = demo.search(question.text, k=3, now=DEMO_NOW, min_score=LEAST).hits
    assert {hit.id for hit in hits} & set(question.expected)
