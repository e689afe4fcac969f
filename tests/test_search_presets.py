"""What the presets do through `Memory.search`, with and without the models that they may use."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.models.tiny_rerankers import write_overlap_reranker

from ekphory.cli.demo import DEMO_NOW, demo_questions, demo_records, demo_scenes
from ekphory.errors import InvalidInput, ServiceError
from ekphory.memory import Memory
from ekphory.models.agent_reranker import Reranker
from ekphory.models.model_record import CalibrationCard, RerankerRecord
from ekphory.models.reranker import BundledReranker
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.query import CleanQuery
from ekphory.retrieval.stages.find import Fuse, SearchPools
from ekphory.retrieval.stages.shape import Cut
from ekphory.retrieval.stages.widen import ExpandQuery
from ekphory.testing import OverlapReranker, ScriptedChat
from services.wire import Reply, running_service, says

PINNED = {"pinned": True}
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_a_handle_has_the_preset_of_searches_that_name_none(open_memory):
    # A handle has the preset of searches that name none.
    memory = open_memory(preset="fast")
    memory.add("tea is warm")

    assert memory.search("tea").trace.preset == "fast"
    assert memory.search("tea", preset="balanced").trace.preset == "balanced"
    # A handle refuses a preset that there is not.
    with pytest.raises(InvalidInput, match="preset='fastest'"):
        open_memory(preset="fastest")


def ids(result):
    return [hit.id for hit in result]


def stages(result):
    return {stage.name: stage for stage in result.trace.stages}


def remember(memory, *texts):
    """Add a memory of each text, and return the handle."""
    memory.add_many({"text": text} for text in texts)
    return memory


DOGS = [f"the red dog {n}" for n in range(400)]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_finds_what_answers(memory, name):
    # Every preset answers in a scope without memories.
    for query in ("dog", "😀", "what did she say?"):
        assert ids(memory.search(query, preset=name)) == []
    # Every preset finds what answers.
    memory.add_many({"text": f"row {n} about nothing"} for n in range(20))
    memory.add("Ben has a red dog", id="dog")
    result = memory.search("who has a red dog", k=3, preset=name)
    assert ids(result)[0] == "dog"
    assert result.trace.preset == name


def test_a_reranker_orders_the_hits_of_accurate_and_scores_those_that_it_read(open_memory):
    # A reranker orders the hits of accurate.
    memory = remember(open_memory(reranker=OverlapReranker()), "the dog", "the dog of Rome", "Rome")
    result = memory.search("Rome dog", preset="accurate", now=NOW)
    assert (result.hits[0].text, result.hits[0].scores["reranker"]) == ("the dog of Rome", 1.0)
    # A score that a hit was not given is not among its scores.
    hits = remember(memory, *DOGS[:60]).search("red dog", k=60, preset="accurate").hits
    assert [("reranker" in hit.scores) for hit in hits] == [True] * 50 + [False] * 10
    json.dumps([dict(hit.scores) for hit in hits], allow_nan=False)


def test_a_reranker_may_be_named_by_its_url(open_memory):
    def rate(request):
        texts = request.body["documents"]
        return says(
            {"results": [{"index": n, "relevance_score": 0.1 * n} for n in range(len(texts))]}
        )

    with running_service(rate) as service:
        memory = remember(open_memory(reranker=service.host), *DOGS[:3])
        result = memory.search("dog", preset="accurate", now=NOW)
    assert stages(result)["rerank"].status == "ran"
    assert service.bodies[0]["query"] == "Asked on 1 June 2026: dog"


def test_a_reranker_that_fails_leaves_the_order_and_the_trace_says_so(open_memory):
    plain = remember(open_memory(reranker="none"), *DOGS[:5])
    expected = ids(plain.search("red dog 3", preset="accurate", now=NOW))
    with running_service(lambda _: Reply(status=400)) as service:
        result = open_memory(reranker=service.host).search("red dog 3", preset="accurate", now=NOW)
    assert ids(result) == expected
    assert result.trace.degraded
    assert stages(result)["rerank"].status == "degraded"


def test_every_stage_of_memory_spark_is_traced_and_can_be_left_out_unless_others_need_it(memory):
    memory.add("the red dog", id="dog")
    spark = PRESETS["memory_spark"].stages
    assert {stage.number for stage in spark} == set(range(1, 16))
    # What these give is needed by others.
    needed = {"clean query", "read time", "search time", "search pools", "fuse"}
    for left_out in [None, *(stage for stage in spark if stage.name not in needed)]:
        own = Pipeline("own", [stage for stage in spark if stage is not left_out])
        result = memory.search("red dog", preset=own)
        named = [stage.name for stage in own.stages]
        assert (ids(result), [stage.name for stage in result.trace.stages][1:]) == (["dog"], named)


def test_a_language_model_widens_the_search_of_memory_spark(open_memory):
    document = "Ben commutes by the tram every single morning, since the office lies downtown."
    memory = open_memory(chat=ScriptedChat([document, "tram to the office"]))
    memory.add("tram to the office", id="tram")
    memory.add_many({"text": f"row {n}"} for n in range(30))
    result = memory.search("how does Ben get around?", k=1, preset="memory_spark")
    assert ids(result) == ["tram"]
    assert [stages(result)[name].status for name in ("hyde", "multi-query")] == ["ran", "ran"]


def test_a_language_model_that_fails_costs_nothing_but_time(open_memory):
    refused = ServiceError("https://chat.example: refused the connection")
    memory = open_memory(chat=ScriptedChat([refused, refused]))
    memory.add("Ben has a dog", id="dog")
    result = memory.search("who has a dog in the house?", preset="memory_spark")
    assert ids(result) == ["dog"]
    assert stages(result)["hyde"].reason == str(f"scripted-chat: {refused}")


def test_a_pipeline_of_ones_own_can_be_given(open_memory):
    own = Pipeline(
        "own", [CleanQuery(), ExpandQuery(), SearchPools(arms="dense"), Fuse(method="dense"), Cut()]
    )
    memory = open_memory(chat=ScriptedChat(["a completely different wording"]))
    memory.add("a completely different wording", id="other")
    result = memory.search("original question", k=1, preset=own)
    assert (ids(result), result.trace.preset) == (["other"], "own")


def test_parts_of_a_document_come_once_and_whole(memory):
    memory.add_many(
        {"id": f"part{n}", "text": text, "parent_id": "handbook", "path": "h.md", "sequence": n}
        for n, text in enumerate(["Keys rotate on Mondays.", "Keys are kept in the vault."])
    )
    (hit,) = memory.search("where are the keys kept", preset="memory_spark")
    assert hit.id == "part1"
    assert hit.text.split() == "Keys rotate on Mondays. Keys are kept in the vault.".split()
    assert hit.memory.text == "Keys are kept in the vault."


def test_a_parent_holds_no_part_that_the_search_may_not_see(open_memory):
    fields = {"parent_id": "handbook", "path": "h.md"}
    his = {"id": "his", "text": "Ben's key is 4711.", "sequence": 0}
    hers = {"id": "hers", "text": "Anna's key is 1234.", "sequence": 1}
    old = {"id": "old", "text": "Old key list.", "sequence": 2, "importance": 0.1}
    open_memory(user="ben").add_many([his | fields])
    anna = open_memory(user="anna")
    anna.add_many([hers | fields, old | fields])
    (hit,) = anna.search("key 1234", preset="memory_spark", filter="importance >= 0.5")
    assert hit.text == "Anna's key is 1234."
    everyone = open_memory().search("key", preset="memory_spark")
    assert all("4711" not in hit.text or hit.id == "his" for hit in everyone)


def test_what_the_conversation_holds_is_left_out(memory):
    memory.add("the deployment failed because the certificate expired", id="known")
    memory.add("the certificate is renewed by the night job", id="new")
    said = ["Yesterday the deployment failed because the certificate expired."]
    found = memory.search("certificate", preset="memory_spark", context=said)
    assert ids(found) == ["new"]
    assert set(ids(memory.search("certificate", context=said))) == {"known", "new"}


@pytest.mark.parametrize("context", ["a text", 7, [1], None])
def test_a_context_that_is_no_list_of_texts_is_refused(memory, context):
    with pytest.raises(InvalidInput, match="context="):
        memory.search("dog", context=context)


@pytest.mark.parametrize("name", ["balanced", "accurate", "memory_spark", "rrf"])
def test_a_pinned_rule_comes_first_whatever_is_asked(memory, name):
    remember(memory, *DOGS)
    memory.add("Never push on Friday", id="rule", pool="shared_rules", metadata=PINNED)
    memory.add("Always greet the guests", id="advice", pool="shared_rules", importance=1.0)
    result = memory.search("red dog", k=4, preset=name, now=NOW)
    assert (ids(result)[0], result.order) == ("rule", "pins")
    assert "advice" not in ids(result)
    assert len(result) == 4


def test_a_pinned_rule_is_as_probable_as_it_is(memory):
    memory.add("Never push on Friday", id="rule", pool="shared_rules", metadata=PINNED)
    memory.add("the red dog", id="dog")
    result = memory.search("red dog", k=2)
    assert ids(result) == ["rule", "dog"]
    assert result.hits[0].score < result.hits[1].score
    assert ids(memory.search("red dog", k=2, min_score=result.hits[1].score)) == ["dog"]


def test_a_pinned_rule_obeys_pools_filter_and_scope(open_memory):
    open_memory(project="other").add("a rule", pool="shared_rules", metadata=PINNED)
    memory = open_memory(project="p")
    memory.add("Never push on Friday", id="rule", pool="shared_rules", metadata=PINNED)
    remember(memory, *DOGS[:4])
    assert ids(memory.search("dog", k=2))[0] == "rule"
    assert "rule" not in ids(memory.search("dog", pools=["agent_memory"]))
    assert "rule" not in ids(memory.search("dog", filter="m.pinned IS NULL"))


def test_a_rule_is_pinned_by_saying_so_alone_and_loosened_by_a_change(memory):
    # Only a rule that says so is pinned.
    remember(memory, *DOGS[:4])
    for place, (pool, metadata) in enumerate(
        [("shared_rules", {"pinned": "yes"}), ("shared_rules", {}), ("agent_memory", PINNED)]
    ):
        memory.add("Never push", id=f"r{place}", pool=pool, metadata=metadata, importance=1.0)
    assert not {"r0", "r1", "r2"} & set(ids(memory.search("red dog", k=4)))
    # A rule is pinned and loosened by a change.
    memory.update("r1", metadata=PINNED)
    assert ids(memory.search("red dog", k=4))[0] == "r1"
    memory.update("r1", metadata={"pinned": False})
    assert "r1" not in ids(memory.search("red dog", k=4))


def test_the_most_important_of_several_pinned_rules_come_first(memory):
    for n, importance in enumerate([0.2, 0.9, 0.5, 0.7]):
        memory.add(
            f"rule {n}", id=str(n), pool="shared_rules", importance=importance, metadata=PINNED
        )
    remember(memory, *DOGS[:8])
    assert ids(memory.search("red dog", k=8))[:3] == ["1", "3", "2"]


# Rerankers.

RUN = [
    {"role": "Anna", "content": "I ran a marathon", "at": "2023-05-08"},
    {"role": "Ben", "content": "wow", "at": "2023-05-09"},
    {"role": "Anna", "content": "thanks", "at": "2023-05-10"},
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    card = CalibrationCard(slope=4.0, intercept=-6.0)
    record = RerankerRecord(name="tiny", calibration=card)
    return write_overlap_reranker(tmp_path_factory.mktemp("onnx"), record)


SISTERS = "Clara Ines Marta Nora Olga Petra Rita Sofia Tilda Ursula Vera Wanda".split()
RELATIVES = ("sister", "cousin", "aunt")
LEFT = "documents are read for statements alone, and not by a quick reranker alone"
ALONE = "ekphory-rerank-tiny reads beside the bundled embedder alone"


@pytest.mark.parametrize(
    ("make", "preset", "reason"),
    [
        (lambda _: "none", "balanced", "no reranker"),
        (lambda _: "none", "accurate", "no reranker"),
        (lambda _: "none", "memory_spark", "no reranker"),
        (BundledReranker, "accurate", None),
        (BundledReranker, "balanced", ALONE),
        (lambda at: Reranker(BundledReranker(at)), "balanced", ALONE),
        (lambda at: BundledReranker(at, name="ekphory-rerank-tiny"), "balanced", None),
    ],
)
def test_which_reranker_reads_for_which_preset(open_memory, directory, make, preset, reason):
    memory = remember(open_memory(reranker=make(directory)), "a red dog")
    result = memory.search("red dog in the house", preset=preset, now=NOW)
    stage = stages(result)["rerank"]
    assert (stage.status, stage.reason) == ("ran" if reason is None else "skipped", reason)
    assert not result.trace.degraded


@pytest.mark.parametrize(
    ("make", "words", "are_turns", "query", "reason"),
    [
        (BundledReranker, 120, False, "Who ran a marathon?", LEFT),
        (BundledReranker, 60, False, "who ran a marathon", LEFT),
        (BundledReranker, 60, False, "Anna ran a marathon.", None),
        (BundledReranker, 12, False, "Who ran a marathon?", None),
        (BundledReranker, 120, True, "Who ran a marathon?", None),
        (str, 120, False, "Who ran a marathon?", None),
    ],
)
def test_only_the_bundled_reranker_leaves_questions_over_documents_to_the_first_stage(
    open_memory, directory, make, words, are_turns, query, reason
):
    memory = open_memory(reranker=make(directory))
    for number in range(3):
        text = " ".join(f"word{number}x{place}" for place in range(words)) + " marathon"
        memory.add(text, sequence=number if are_turns else None)
    stage = stages(memory.search(query, preset="accurate"))["rerank"]
    assert (stage.status, stage.reason) == ("ran" if reason is None else "skipped", reason)


def test_a_quick_reranker_alone_reads_no_documents(open_memory, directory):
    memory = open_memory(reranker=BundledReranker(directory, name="ekphory-rerank-tiny"))
    memory.add(" ".join(f"word{place}" for place in range(60)) + " marathon")
    stage = stages(memory.search("Anna ran a marathon."))["rerank"]
    assert (stage.status, stage.reason) == ("skipped", LEFT)


def test_what_reads_documents_orders_them_and_leaves_their_probabilities(store_path):
    filling = " ".join(
        f"Station {n} was visited on every other day of that long summer." for n in range(9)
    )
    with Memory(store_path) as memory:
        remember(
            memory,
            f"Bread that was kept in the cold grew mould after nine days. {filling}",
            f"Goats on the northern slope gave less milk in a dry year. {filling}",
            f"A bridge of oak stood the flood better than one of steel. {filling}",
        )
        read = memory.search("Cold slows the growth of mould.", preset="accurate")
    with Memory(store_path, reranker="none") as memory:
        unread = memory.search("Cold slows the growth of mould.", preset="accurate")
    assert stages(read)["rerank"].status == "ran"
    assert stages(unread)["rerank"].status == "skipped"
    assert [(hit.id, hit.score) for hit in read] == [(hit.id, hit.score) for hit in unread]


class Listening(OverlapReranker):
    asked = None

    def score(self, query, passages):
        self.asked = (query, {passage.text: passage for passage in passages})
        return super().score(query, passages)


def test_a_reranker_in_a_directory_orders_the_hits_by_its_calibrated_probability(
    open_memory, directory
):
    memory = remember(open_memory(reranker=str(directory)), "a dog", "a red dog")
    # It orders the hits of both presets.
    for preset in ("accurate", "balanced"):
        result = memory.search("red dog", preset=preset, now=NOW)
        assert result.hits[0].text == "a red dog"
        assert stages(result)["rerank"].detail["reranker"] == "tiny"
    # One shared word has the logit 1, two have 2; the curve is 4 · logit - 6.
    expected = [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))]
    assert [hit.score for hit in result] == pytest.approx(expected, abs=1e-5)
    # With no memory probable enough the result abstains.
    result = memory.search("red cat", min_score=0.5, now=NOW)
    assert (result.hits, result.abstained) == ((), True)


def test_a_reranker_whose_scores_cannot_be_used_costs_no_hit_and_is_told(open_memory):
    memory = remember(open_memory(reranker=Overrating()), "a red dog", "a cat")
    result = memory.search("red dog", now=NOW)
    assert len(result.hits) == 2
    assert stages(result)["rerank"].reason.startswith("overlap-reranker: gave the score 9.")


class Overrating(OverlapReranker):
    def score(self, _query, passages):
        return np.full(len(passages), 9.0, np.float32)


class Mild(OverlapReranker):
    """Prefers what is red, a logit of .85 against one of 0."""

    def score(self, _query, passages):
        return np.array([0.7 if "red" in each.text else 0.5 for each in passages], np.float32)


def test_a_reranker_of_ones_own_decides_by_scores_that_lie_close_together(open_memory):
    memory = remember(open_memory(reranker=Mild()), "a dog and a dog", "a red cat")

    hits = memory.search("dog", now=NOW).hits

    assert [hit.text for hit in hits] == ["a red cat", "a dog and a dog"]


def test_the_bundled_reranker_decides_nothing_by_logits_within_two(open_memory, tmp_path):
    record = RerankerRecord(name="tiny", calibration=CalibrationCard(slope=1.0, intercept=0.0))
    bundled = BundledReranker(write_overlap_reranker(tmp_path, record))
    memory = remember(open_memory(reranker=bundled), "a dog", "a green dog")

    stage = stages(memory.search("green dog", preset="accurate", now=NOW))["rerank"]

    assert stage.detail["undecided"] is True


def test_a_broken_bundled_reranker_costs_no_hit_and_is_told(open_memory, directory, tmp_path):
    (tmp_path / "model.json").write_bytes((directory / "model.json").read_bytes())
    memory = remember(open_memory(reranker=BundledReranker(tmp_path)), "a red dog")
    result = memory.search("red dog", preset="accurate", now=NOW)
    assert len(result.hits) == 1
    assert "tokenizer.json: cannot be read" in stages(result)["rerank"].reason


def test_the_default_preset_asks_no_service(open_memory):
    with running_service(lambda _: says({})) as service:
        memory = remember(open_memory(reranker=service.host), "a red dog")
        stage = stages(memory.search("red dog", now=NOW))["rerank"]
    assert stage.reason == ALONE
    assert service.asked == []


def test_the_reranker_is_told_the_dialogue_the_moment_and_the_turns_around(open_memory):
    reranker = Listening()
    memory = open_memory(reranker=reranker)
    memory.add_messages(RUN, session="s")
    context = ["Ben: hello", {"role": "Anna", "content": "about the marathon"}]
    result = memory.search("when was it?", context=context, now=NOW)
    query, passages = reranker.asked
    assert (query.context, query.now) == (("Ben: hello", "Anna: about the marathon"), NOW)
    said = passages["Ben: wow"]
    assert (said.before, said.after) == ("Anna: I ran a marathon", "Anna: thanks")
    assert said.at == datetime(2023, 5, 9, tzinfo=UTC)
    assert stages(result)["rerank"].detail["context"] == 2


def test_turns_of_another_scope_are_never_read(open_memory):
    reranker = Listening()
    for user in ("ann", "bob"):
        for sequence in (1, 3):
            said = f"{user} says {sequence}"
            open_memory(user=user).add(said, session="s", sequence=sequence)
    open_memory(user="ann", reranker=reranker).search("says 1 3", now=NOW)
    passages = reranker.asked[1]
    around = {turn for each in passages.values() for turn in (each.before, each.after) if turn}
    assert around == {"ann says 1", "ann says 3"}


def test_where_no_reranker_reads_the_context_the_trace_says_so(open_memory):
    memory = remember(open_memory(reranker="none"), "a red dog")
    balanced = stages(memory.search("red dog", context=["hello"], now=NOW))
    fast = stages(memory.search("red dog", context=["hello"], preset="fast", now=NOW))
    assert balanced["rerank"].reason == "no reranker; none reads the context"
    assert fast["open scope"].detail == {"context": "no stage of 'fast' reads it"}


# The questions of README and of the demo are answered at README's own `min_score`.

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


def test_the_default_search_has_its_best_ten_read_quickly(tmp_path):
    with Memory(tmp_path) as memory:
        memory.add_many([{"text": f"My sister {name} lives in Lyon"} for name in SISTERS])
        result = memory.search("Where does Clara live?")
        read, given = stages(result)["rerank"].detail, stages(result)["calibrate"].detail
        assert (read["reranker"], read["read"]) == ("ekphory-rerank-tiny", 10)
        assert (given["reader_curve"], result[0].text) == (True, "My sister Clara lives in Lyon")
    with Memory(tmp_path, reranker="none") as memory:
        skipped = stages(memory.search("Where does Clara live?"))["rerank"]
        assert (skipped.status, skipped.reason) == ("skipped", "no reranker")


def test_accurate_has_forty_read_quickly_and_the_best_dozen_of_them_again(tmp_path):
    with Memory(tmp_path) as memory:
        memory.add_many(
            [
                {"text": f"My {who} {name} lives in Lyon"}
                for name in SISTERS
                for who in (*RELATIVES, "niece")
            ]
        )
        found = stages(memory.search("Where does my sister Clara live?", preset="accurate"))
        first, again = found["rerank"].detail, found["rerank again"].detail
        assert (first["reranker"], first["read"]) == ("ekphory-rerank-tiny", 40)
        assert (again["reranker"], again["read"]) == ("ekphory-rerank-small", 12)
        assert found["calibrate"].detail["reader_curve"]


def test_a_reranker_of_ones_own_reads_fifty_alone(open_memory):
    memory = open_memory(reranker=OverlapReranker())
    remember(memory, *(f"the red dog number {n}" for n in range(60)))
    found = stages(memory.search("red dog", preset="accurate"))
    assert found["rerank"].detail["read"] == 50
    assert found["rerank again"].reason == "no quicker reranker has read before"


@pytest.mark.parametrize("preset", ["balanced", "accurate"])
@pytest.mark.parametrize(
    ("query", "begins"),
    [
        ("what language does the user like?", "I prefer Python"),
        ("what language do I like?", "I prefer Python"),
        ("deployments", "Deployed v2"),
    ],
)
def test_readmes_questions_are_answered_and_another_abstains(readme, query, begins, preset):
    hits = readme.search(query, k=5, min_score=LEAST, preset=preset).hits
    assert hits[0].text.startswith(begins)
    # What the store does not tell comes back empty.
    assert readme.search("who won the chess match?", min_score=LEAST, preset=preset).abstained


def test_six_layers_put_the_answer_above_the_turn_that_asks_for_it(readme):
    query = "where should we travel in spring?"
    asked, answered = "Where should we go in spring?", "Lisbon is warm by then."
    assert [hit.text for hit in readme.search(query, k=2)] == [asked, answered]
    found = readme.search(query, k=2, preset="accurate")
    assert [hit.text for hit in found] == [answered, asked]


@pytest.mark.parametrize("scene", demo_scenes(), ids=lambda scene: scene.shows)
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
