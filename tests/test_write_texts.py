"""Messages, very long texts, recalled memories and predicted fields as they are written."""

import itertools
import json

import numpy as np
import pytest
from tests.models.tiny_components import write_tiny_onnx_embedder

from ekphory.errors import InvalidInput, ModelError
from ekphory.importers.text import read_jsonl
from ekphory.memory import Memory
from ekphory.models.agent_embedder import Embedder
from ekphory.models.embedder import EmbedderIdentity
from ekphory.prompting.recall_block import SECURITY_COMMENT
from ekphory.testing import HashEmbedder
from ekphory.types import to_plain_data
from ekphory.write import LONGEST_WHOLE, SAMPLED_WINDOWS

# `add_messages`: a conversation in the form that chat APIs use.


def said(role, content, **fields):
    return {"role": role, "content": content, **fields}


CHAT = [said("user", "Where did you go?"), said("assistant", "To Lisbon.")]


def test_messages_become_memories_in_their_order_with_role_session_and_pool(memory):
    report = memory.add_messages(CHAT, session="s1", pool="shared_knowledge")
    assert (report.added, len(report.ids)) == (2, 2)
    first, second = (memory.get(name) for name in report.ids)
    assert (first.text, second.text) == ("Where did you go?", "To Lisbon.")
    assert (first.role, first.producer) == ("user", "user")
    assert {(each.session, each.pool) for each in (first, second)} == {("s1", "shared_knowledge")}


def test_a_producer_of_its_own_comes_before_the_role(memory):
    message = said("user", "hi", producer="Anna", metadata={"n": 1})
    found = memory.get(memory.add_messages([message]).ids[0])
    assert (found.role, found.producer, found.metadata) == ("user", "Anna", {"n": 1})


@pytest.mark.parametrize("session", ["s1", None])
def test_repeating_the_call_adds_only_what_is_new(memory, session):
    first = memory.add_messages(CHAT, session=session)
    again = memory.add_messages(CHAT, session=session)
    assert (again.added, again.skipped, again.ids) == (0, 2, first.ids)
    grown = memory.add_messages([*CHAT, said("user", "Nice!")], session=session)
    assert (grown.added, grown.skipped) == (1, 2)
    # In another session it is another conversation.
    assert memory.add_messages(CHAT, session="s2").added == 2


def test_a_message_said_twice_is_kept_twice_and_once_where_it_has_an_id(memory):
    assert memory.add_messages([said("user", "yes")] * 2).added == 2
    assert memory.add_messages([said("user", "yes")] * 2).skipped == 2
    report = memory.add_messages([said("user", "yes", id="m1")] * 2)
    assert (report.added, report.skipped, report.ids) == (1, 1, ("m1", "m1"))


def test_thousands_of_messages_are_written_in_one_call(memory):
    chat = [said("user", f"turn {n}", id=f"m{n}") for n in range(1_500)]
    assert memory.add_messages(chat).added == 1_500
    assert memory.add_messages(chat).skipped == 1_500


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([CHAT[0], {"role": "user"}], r"messages\[1\]"),
        ([CHAT[0], "hello"], r"messages\[1\]"),
        ([CHAT[0], {"content": "  "}], "text"),
        ([CHAT[0], {"content": ["part"]}], "text"),
        ([CHAT[0], {"content": "x", "colour": "red"}], "colour"),
        (CHAT[0], "messages"),
        ("hi", "messages"),
        (5, "messages"),
    ],
)
def test_a_message_that_cannot_be_stored_stops_the_whole_call(memory, messages, field):
    with pytest.raises(InvalidInput, match=field):
        memory.add_messages(messages)
    assert memory.count() == 0


def test_an_answer_is_found_through_the_question_before_it(memory):
    for session, question in [("s1", "How was the food?"), ("s2", "Where was the wedding?")]:
        memory.add_messages([said("user", question), said("assistant", "Lisbon.")], session=session)
    answers = [hit for hit in memory.search("place of the wedding").hits if hit.text == "Lisbon."]
    assert [hit.memory.session for hit in answers] == ["s2", "s1"]
    assert [hit.scores["bm25"] for hit in answers] == [0.0, 0.0]
    assert answers[0].scores["lexical"] > answers[1].scores["lexical"] == 0.0


# Texts so long that only some of their windows are embedded.


def long_text(characters):
    """Numbered sentences, so that every window says something else."""
    stations = (f"Station {n} lies behind hill {n}. " for n in range(characters // 25))
    return "".join(stations)[:characters]


class CountingEmbedder:
    """Counts the passages that another one embeds."""

    def __init__(self, embedder):
        self._embedder = embedder
        self.passages = []

    def __getattr__(self, name):
        return getattr(self._embedder, name)

    def encode(self, texts):
        self.passages += texts
        return self._embedder.encode(texts)


@pytest.fixture
def counting(store_path):
    embedder = CountingEmbedder(HashEmbedder())
    with Memory(store_path, embedder=embedder) as memory:
        yield embedder, memory


def test_of_a_very_long_text_some_windows_are_embedded_and_the_report_says_so(counting):
    embedder, memory = counting
    text = long_text(LONGEST_WHOLE + 1)
    texts = {"short": "tea", "whole": long_text(LONGEST_WHOLE), "long": text}
    report = memory.add_many({"id": name, "text": each} for name, each in texts.items())
    assert report.sampled == ("long",)
    assert memory.get("long").text == text
    windows = embedder.passages[-SAMPLED_WINDOWS:]
    assert text.startswith(windows[0])
    assert text.rstrip().endswith(windows[-1])
    assert len(embedder.passages) > 2 * SAMPLED_WINDOWS


def test_the_windows_are_spread_over_the_text(counting):
    embedder, memory = counting
    text = long_text(1_000_000)
    memory.add(text)
    assert len(embedder.passages) == SAMPLED_WINDOWS
    places = [text.index(passage) for passage in embedder.passages]
    gaps = [later - earlier for earlier, later in itertools.pairwise(places)]
    assert min(gaps) == pytest.approx(15_800, rel=0.1)
    assert max(gaps) == pytest.approx(15_800, rel=0.3)


def test_words_are_found_wherever_they_stand(counting):
    _, memory = counting
    half = long_text(400_000)
    report = memory.add(f"{half} The heron nests at Grebe Sluice. {half}")
    memory.add("A short note about something else")
    assert memory.search("heron Grebe Sluice").hits[0].id == report.ids[0]


# Recalled memories that come back as new input are not stored again.


@pytest.fixture
def block(memory):
    """A rendered search result of the same store, which then holds one memory."""
    memory.add("I prefer Python over JavaScript", producer="user")
    return memory.search("Which language?").to_prompt()


def test_the_same_text_with_other_recalled_memories_is_the_same_memory(memory, block):
    first = memory.add(f"{block}\nWhat about Rust?", at="2026-05-08")
    memory.add("Rust is fine too")
    again = memory.search("Rust").to_prompt()
    second = memory.add(f"{again}\nWhat about Rust?", at="2026-05-08")
    assert (second.skipped, second.ids) == (1, first.ids)


def test_a_rendered_result_or_a_part_of_it_is_skipped_and_the_text_around_it_stored(memory, block):
    for text in (block, block[: len(block) - 40]):
        report = memory.add(text)
        assert (report.added, report.skipped, report.failed, report.ids) == (0, 1, [], ())
    assert memory.count() == 1
    (added,) = memory.add(f"{block}\n\nWhat about Rust?").ids
    assert memory.get(added).text == "What about Rust?"


def test_a_conversation_keeps_its_messages_and_skips_the_recalled_ones(memory, block):
    kept = ["What about Rust?", "You have not said."]
    asked, answered = said("user", f"{block}\n{kept[0]}"), said("assistant", kept[1])
    report = memory.add_messages([said("system", block), asked, answered], session="s1")
    assert (report.added, report.skipped, len(report.ids)) == (2, 1, 2)
    assert [memory.get(name).text for name in report.ids] == kept


def test_a_batch_counts_them_as_skipped(memory, block):
    seen = []
    records = [{"text": block}, {"text": "new"}, {"text": " "}, {"text": f" {block}\n"}]
    report = memory.add_many(records, on_progress=seen.append)
    assert (report.added, report.skipped, len(report.failed)) == (1, 2, 1)
    assert seen[-1] == report
    report = memory.add_many([{"text": block}] * 300)
    assert (report.added, report.skipped, report.failed) == (0, 300, [])


@pytest.mark.parametrize(
    "text",
    [
        "Upstream wraps them in <relevant-memories>…</relevant-memories>.",
        "<relevant-memories>\nmine\n</relevant-memories>",
        f"The comment is {SECURITY_COMMENT}",
    ],
)
def test_text_about_recalled_memories_is_stored_verbatim(memory, text):
    (added,) = memory.add(text).ids
    assert memory.get(added).text == text


# Type and importance that the embedder predicted, told from those that were given.

BOTH = {"type", "importance"}


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    """A model with random heads, which tell of "the cat sat" what they do not of "a big dog"."""
    return Embedder.from_pretrained(write_tiny_onnx_embedder(tmp_path_factory.mktemp("model")))


@pytest.fixture
def predicting(embedder, tmp_path):
    with Memory(tmp_path / "predicting", embedder=embedder) as opened:
        yield opened


def importance_of(embedder, text):
    return pytest.approx(float(embedder.importance([text])[0]), abs=0.001)


@pytest.mark.parametrize(
    ("given", "predicted"),
    [
        ({}, BOTH),
        ({"type": "semantic"}, {"importance"}),
        ({"importance": 0.9}, {"type"}),
        ({"type": "unknown", "importance": 0.5}, set()),
    ],
)
def test_what_was_not_given_is_marked_as_predicted(predicting, given, predicted):
    predicting.add("the cat sat", id="1", **given)
    assert [record.predicted for record in predicting.list()] == [predicted]
    assert [hit.memory.predicted for hit in predicting.search("cat").hits] == [predicted]


@pytest.mark.parametrize(
    ("given", "changes", "predicted"),
    [
        ({}, {"text": "a big dog"}, BOTH),
        ({"type": "procedural"}, {"text": "a big dog"}, {"importance"}),
        ({}, {"text": "a big dog", "importance": 0.25}, {"type"}),
        ({}, {"metadata": {"k": 1}}, BOTH),
        ({}, {"type": "semantic"}, {"importance"}),
    ],
)
def test_a_change_keeps_what_was_given_and_predicts_the_rest_of_a_new_text(
    predicting, embedder, given, changes, predicted
):
    predicting.add("the cat sat", id="1", **given)
    changed = predicting.update("1", **changes)
    text = changes.get("text", "the cat sat")
    expected = {"type": embedder.memory_type([text])[0]} | given | changes
    importance = changes.get("importance", importance_of(embedder, text))
    assert (changed.type, changed.importance) == (expected["type"], importance)
    assert (changed.predicted, changed) == (predicted, predicting.get("1"))
    assert importance_of(embedder, "a big dog") != embedder.importance(["the cat sat"])[0]


def test_an_updated_value_counts_as_given_from_then_on_and_an_earlier_version_keeps_its_marks(
    predicting,
):
    predicting.add("the cat sat", id="1")
    assert predicting.update("1", type="semantic").predicted == {"importance"}
    changed = predicting.update("1", text="a big dog")
    assert (changed.type, changed.predicted) == ("semantic", {"importance"})
    versions = [version.predicted for version in predicting.history("1")]
    assert versions == [{"importance"}, {"importance"}, BOTH]


def test_a_listing_that_is_imported_elsewhere_keeps_values_and_marks(predicting, memory, tmp_path):
    predicting.add("the cat sat", id="1", type="semantic")
    listed = tmp_path / "listing.jsonl"
    listed.write_text(json.dumps(to_plain_data(predicting.get("1"))) + "\n")

    memory.add_many(record.fields for record in read_jsonl(listed))

    assert memory.get("1").predicted == {"importance"}
    assert memory.get("1").importance == predicting.get("1").importance


def test_a_new_text_for_a_model_without_heads_drops_what_another_predicted(memory):
    memory.add_many([{"text": "a", "id": "1", "importance": 0.8, "predicted": ["importance"]}])
    assert memory.add("the cat sat", id="2").added == 1
    assert memory.get("2").predicted == frozenset()
    changed = memory.update("1", text="b")
    assert (changed.importance, changed.predicted) == (0.5, frozenset())


# A model of one's own that does not give what it must.


class Misbehaving(HashEmbedder):
    """A later model that gives something else than a vector for each text."""

    def __init__(self, change):
        super().__init__()
        self.identity = EmbedderIdentity("misbehaving", "1", 32)
        self._change = change

    def encode(self, texts):
        return self._change(super().encode(texts))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given[:-1], r"vectors of shape \(1, 32\), not \(2, 32\)"),
        (lambda given: np.concatenate([given, given]), r"of shape \(4, 32\), not \(2, 32\)"),
        (lambda given: given[:, :-1], r"of shape \(2, 31\), not \(2, 32\)"),
        (lambda given: given * np.nan, "numbers that are not finite"),
    ],
)
def test_vectors_that_a_model_must_not_give_are_refused_and_nothing_is_written(
    memory, store_path, change, message
):
    memory.add_many([{"text": "tea"}, {"text": "coffee"}])
    with pytest.raises(ModelError, match=message):
        memory.reembed(Misbehaving(change))
    assert memory.health().embedder == "hash-embedder@1 (32-d)"
    with Memory(store_path / "new", embedder=Misbehaving(change)) as other:
        with pytest.raises(ModelError, match=message):
            other.add_many([{"text": "tea"}, {"text": "coffee"}])
        assert other.count() == 0
