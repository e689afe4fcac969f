"""What was imported once is imported again, when there is more of it and some of it has changed."""

from __future__ import annotations

import json

import pytest

from ekphory.importers.report import OLDER_RECORD, OLDER_TEXT, ImportInterrupted
from ekphory.importers.run import import_path
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

ALSO_OVER_A_SERVER = True

DAY = 86_400
NEW_YEAR = 1_767_225_600  # 2026-01-01


@pytest.fixture
def export(file):
    """Writes the files of an unpacked export, and returns its folder."""

    def write(name, **parts):
        for part, content in parts.items():
            path = file(f"{name}/{part}.json", json.dumps(content))
        return path.parent

    return write


def counts(report):
    return report.added, report.updated, report.skipped, report.failed


def texts(memory):
    return {record.text for record in memory.list()}


def told(memory, text):
    """The versions of the memory that says this now, newest first."""
    (record,) = [each for each in memory.list() if each.text == text]
    return [each.text for each in memory.history(record.id)]


def said(identity, text, *, day=0, role="user", **more):
    content = {"content_type": "text", "parts": [text]}
    moment = NEW_YEAR + day * DAY
    message = {"id": identity, "author": {"role": role}, "create_time": moment, "content": content}
    return {**message, **more}


def canvas(text, **more):
    return said("plan", json.dumps({"name": "Plan", "content": text}), role="assistant", **more)


def conversation(*messages, identity="c1"):
    parents = ["root", *(message["id"] for message in messages)]
    nodes = {
        message["id"]: {"parent": parent, "children": [], "message": message}
        for message, parent in zip(messages, parents, strict=False)
    }
    root = {"root": {"parent": None, "children": [], "message": None}}
    named = {"title": "Bread", "create_time": NEW_YEAR, "conversation_id": identity}
    return {**named, "mapping": root | nodes, "current_node": parents[-1]}


MADE = {"recipient": "canmore.create_textdoc"}
JANUARY = conversation(said("a", "I bake on Sundays."), canvas("Feed it on Friday.", **MADE))
CHANGE = json.dumps({"updates": [{"pattern": ".*", "replacement": "Feed it on Saturday."}]})
MARCH = conversation(
    said("a", "I bake on Mondays.", update_time=NEW_YEAR + 60 * DAY),
    canvas("Feed it on Friday.", **MADE),
    said("change", CHANGE, role="assistant", day=50, recipient="canmore.update_textdoc"),
    said("b", "Which flour is best?", day=61),
)


def test_a_newer_chatgpt_export_adds_what_is_new_and_updates_what_has_changed(memory, export):
    import_path(memory, export("january", conversations=[JANUARY]))
    march = export("march", conversations=[MARCH])
    assert counts(import_path(memory, march)) == (1, 2, 0, 0)
    assert told(memory, "I bake on Mondays.") == ["I bake on Mondays.", "I bake on Sundays."]
    assert told(memory, "Feed it on Saturday.") == ["Feed it on Saturday.", "Feed it on Friday."]
    assert texts(memory) == {"I bake on Mondays.", "Feed it on Saturday.", "Which flour is best?"}
    assert memory.get("c1/a").at.isoformat() == "2026-03-02T00:00:00+00:00"
    assert counts(import_path(memory, march)) == (0, 0, 3, 0)


def test_an_older_export_changes_nothing_and_says_so(memory, export):
    import_path(memory, export("march", conversations=[MARCH]))
    before = texts(memory)
    report = import_path(memory, export("january", conversations=[JANUARY]))
    assert counts(report) == (0, 0, 0, 0)
    assert report.left_out == {OLDER_TEXT: 1, OLDER_RECORD: 1}
    assert report.read == 2
    assert texts(memory) == before


def test_what_a_newer_export_lacks_is_kept(memory, export):
    others = conversation(said("x", "Otto swept the flue."), identity="c2")
    import_path(memory, export("january", conversations=[JANUARY, others]))
    import_path(memory, export("march", conversations=[MARCH]))
    assert "Otto swept the flue." in texts(memory)


def test_of_two_lists_equal_entries_are_one_and_those_that_are_gone_stay(memory, export):
    def listed(*memories):
        return [{"memory": text} for text in memories]

    first = listed("User lives in Bern.", "User is allergic to sesame.")
    import_path(memory, export("january", conversations=[JANUARY], memories=first))
    second = listed("User is allergic to sesame.", "User lives in Basel.")
    march = export("march", conversations=[JANUARY], memories=second)
    assert counts(import_path(memory, march)) == (1, 0, 3, 0)
    assert {"User lives in Bern.", "User lives in Basel."} < texts(memory)


def test_instructions_that_stand_in_every_conversation_are_those_of_the_latest(memory, export):
    def talk(identity, day, profile):
        context = {"content_type": "user_editable_context", "user_profile": profile}
        given = said(f"{identity}-p", "", day=day) | {"content": context}
        return conversation(given, said(f"{identity}-m", "Hello", day=day), identity=identity)

    said_of = (("c3", 30, "I am a baker."), ("c2", 20, "I am a cook."), ("c1", 10, "I am a cook."))
    talks = [talk(*each) for each in said_of]
    for talk_ in talks:
        talk_["create_time"] = talk_["mapping"][talk_["current_node"]]["message"]["create_time"]
    path = export("all", conversations=talks)
    assert counts(import_path(memory, path)) == (4, 0, 0, 0)
    assert texts(memory) == {"Hello", "I am a baker."}


CHAT = {
    "uuid": "k1",
    "name": "Lease",
    "created_at": "2026-03-05T19:00:00Z",
    "chat_messages": [
        {"uuid": "m1", "sender": "human", "text": "May I?", "created_at": "2026-03-05T19:00:00Z"}
    ],
}


def house(document, *, uuid, prompt, month):
    moment = f"2026-{month:02}-01T00:00:00Z"
    doc = {"uuid": uuid, "filename": "boiler.txt", "content": document, "created_at": moment}
    begun = {"uuid": "p1", "name": "House", "created_at": "2026-01-01T00:00:00Z"}
    return {**begun, "updated_at": moment, "prompt_template": prompt, "docs": [doc]}


def test_a_newer_claude_export_updates_instructions_memories_and_documents(memory, export):
    def given(name, told, project):
        memories = [{"conversations_memory": told}]
        return export(name, conversations=[CHAT], memories=memories, projects=[project])

    project = house("It is a Viessmann.", uuid="d1", prompt="Answer in German.", month=1)
    first = given("january", "Mara runs a bakery.", project)
    import_path(memory, first)
    # A document that was uploaded again has another id.
    project = house("It is a Vaillant.", uuid="d9", prompt="Answer in French.", month=4)
    later = given("april", "Mara sold the bakery.", project)
    assert counts(import_path(memory, later)) == (0, 3, 1, 0)
    said = {"May I?", "Mara sold the bakery.", "It is a Vaillant.", "Answer in French."}
    assert texts(memory) == said
    assert told(memory, "It is a Vaillant.") == ["It is a Vaillant.", "It is a Viessmann."]
    assert counts(import_path(memory, later)) == (0, 0, 4, 0)
    assert import_path(memory, first).left_out == {OLDER_TEXT: 3}


def test_two_documents_of_one_name_stay_two(memory, export):
    def project(*documents):
        docs = [{"uuid": name, "filename": "a.txt", "content": text} for name, text in documents]
        return [{"uuid": "p1", "created_at": "2026-01-01T00:00:00Z", "docs": docs}]

    given = project(("d1", "one"), ("d2", "two"))
    import_path(memory, export("january", conversations=[CHAT], projects=given))
    given = project(("d1", "one"), ("d2", "two"), ("d3", "three"))
    import_path(memory, export("march", conversations=[CHAT], projects=given))
    assert texts(memory) == {"May I?", "one", "two", "three"}


def long_text(*words):
    """A text of a passage or two for each word."""
    return "\n\n".join(" ".join(f"{word} {n} and so on." for n in range(90)) for word in words)


@pytest.mark.slow
def test_of_a_long_document_the_passages_that_changed_are_replaced(memory, export):
    def given(name, text, month):
        project = house(text, uuid="d1", prompt="", month=month)
        project["docs"][0]["updated_at"] = project["updated_at"]
        return export(name, conversations=[CHAT], projects=[project])

    import_path(memory, given("january", long_text("oven", "sink", "roof"), 1))
    stored = memory.count()
    newer = given("march", long_text("oven", "tap"), 3)
    report = import_path(memory, newer)
    assert report.updated > 0
    assert report.forgotten > 0
    assert memory.count() == stored - report.forgotten + report.added
    assert not [text for text in texts(memory) if "sink" in text or "roof" in text]
    again = import_path(memory, newer)
    assert counts(again) == (0, 0, memory.count(), 0)
    # And back, though some ids are taken by passages that say something else by now.
    import_path(memory, given("april", long_text("oven", "sink", "roof"), 4))
    assert memory.count() == stored


def test_a_passage_that_was_corrected_stays_when_its_document_changes_elsewhere(memory, export):
    def given(name, text, year):
        doc = {"uuid": "d1", "filename": "a.txt", "content": text, "created_at": f"{year}-01-01"}
        return export(name, conversations=[CHAT], projects=[{"uuid": "p1", "docs": [doc]}])

    # Two passages, of which the first is corrected.
    hall, cellar = ("The key is in the hall. " * 50).strip(), ("It is damp. " * 90).strip()
    import_path(memory, given("first", f"{hall}\n\n{cellar}", 2026))
    (key,) = memory.list(filter="sequence = 0 AND path = 'a.txt'")
    memory.update(key.id, text="The key hangs behind the boiler.")
    dry = cellar.replace("damp", "long")
    import_path(memory, given("second", f"{hall}\n\n{dry}", 2999))
    kept = [each.text for each in memory.list(filter="path = 'a.txt'", order="written")]
    assert "The key hangs behind the boiler." in kept
    assert not any("damp" in text for text in kept)
    # What the document says anew of it holds.
    gone = hall.replace("hall", "attic")
    import_path(memory, given("third", f"{gone}\n\n{dry}", 3000))
    assert "The key hangs behind the boiler." not in texts(memory)


def test_what_was_changed_by_hand_stays_when_the_same_export_is_imported_again(memory, export):
    path = export("january", conversations=[JANUARY])
    import_path(memory, path)
    memory.update("c1/a", text="I bake on Tuesdays.")
    report = import_path(memory, path)
    assert report.left_out == {OLDER_RECORD: 1}
    assert "I bake on Tuesdays." in texts(memory)


def test_a_message_whose_secret_was_cut_out_is_already_there(memory, export):
    secret = conversation(said("a", "My password is hunter2-Xk9!pq, keep it."))
    path = export("january", conversations=[secret])
    assert counts(import_path(memory, path)) == (1, 0, 0, 0)
    assert counts(import_path(memory, path)) == (0, 0, 1, 0)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_a_record_of_a_known_id_with_another_text_is_an_update(memory, file):
    key = {"id": "key", "text": "The key hangs in the hall", "at": "2026-01-01"}
    import_path(memory, file("m.jsonl", lines(key, {"id": "code", "text": "The code is 4711"})))
    key |= {"text": "The key hangs behind the boiler", "at": "2026-02-01"}
    newer = file("m.jsonl", lines(key, {"id": "code", "text": "The code is 1234"}))
    assert counts(import_path(memory, newer)) == (0, 2, 0, 0)
    before = ["The key hangs behind the boiler", "The key hangs in the hall"]
    assert [each.text for each in memory.history("key")] == before
    assert memory.get("key").at.isoformat() == "2026-02-01T00:00:00+00:00"
    assert counts(import_path(memory, newer)) == (0, 0, 2, 0)


def test_a_record_that_is_older_than_the_memory_is_left_out_and_counted_as_such(memory, file):
    import_path(memory, file("m.jsonl", lines({"id": "a", "text": "new", "at": "2026-02-01"})))
    older = file("m.jsonl", lines({"id": "a", "text": "old", "at": "2026-01-01"}))
    report = import_path(memory, older)
    assert (counts(report), report.left_out) == ((0, 0, 0, 0), {OLDER_RECORD: 1})
    assert memory.get("a").text == "new"


def test_of_two_lines_of_one_id_the_later_one_holds_however_often_they_are_imported(memory, file):
    path = file("m.jsonl", lines({"id": "a", "text": "first"}, {"id": "a", "text": "second"}))
    assert counts(import_path(memory, path)) == (1, 1, 0, 0)
    again = import_path(memory, path)
    assert (counts(again), again.left_out) == ((0, 0, 1, 0), {OLDER_RECORD: 1})
    assert [each.text for each in memory.history("a")] == ["second", "first"]


def test_other_metadata_or_importance_is_an_update_too(memory, file):
    row = {"id": "a", "text": "Otto", "importance": 0.7, "metadata": {"trade": "plumber"}}
    assert counts(import_path(memory, file("m.jsonl", lines(row)))) == (1, 0, 0, 0)
    assert counts(import_path(memory, file("m.jsonl", lines(row)))) == (0, 0, 1, 0)
    row |= {"importance": 0.9, "metadata": {"trade": "painter"}}
    assert counts(import_path(memory, file("m.jsonl", lines(row)))) == (0, 1, 0, 0)
    after = memory.get("a")
    assert (round(after.importance, 3), after.metadata) == (0.9, {"trade": "painter"})


def test_a_newer_mem0_export_updates_by_the_moment_of_the_change(memory, file):
    row = {"id": "1", "memory": "Lives in Bern", "created_at": "2026-01-01T00:00:00Z"}
    import_path(memory, file("mem0.json", json.dumps({"results": [row]})))
    newer = row | {"memory": "Lives in Basel", "updated_at": "2026-03-01T00:00:00Z"}
    path = file("newer.json", json.dumps({"results": [newer]}))
    assert counts(import_path(memory, path)) == (0, 1, 0, 0)
    assert memory.get("1").at.isoformat() == "2026-03-01T00:00:00+00:00"
    assert counts(import_path(memory, path)) == (0, 0, 1, 0)
    report = import_path(memory, file("mem0.json", json.dumps({"results": [row]})))
    assert report.left_out == {OLDER_RECORD: 1}


def test_equal_ids_of_two_users_are_updated_each_by_its_own(open_memory, file):
    rows = [{"id": "a", "text": f"{user} likes tea", "user": user} for user in ("mara", "otto")]
    import_path(open_memory(), file("m.jsonl", lines(*rows)))
    rows[1]["text"] = "otto likes coffee"
    report = import_path(open_memory(user="otto"), file("m.jsonl", lines(rows[1])))
    assert counts(report) == (0, 1, 0, 0)
    assert texts(open_memory()) == {"mara likes tea", "otto likes coffee"}


def test_an_interrupted_update_goes_on_where_it_was(memory, file):
    rows = [{"id": str(number), "text": f"memory {number}"} for number in range(257)]
    import_path(memory, file("m.jsonl", lines(*rows)))
    rows[0]["text"], rows[256]["text"] = "changed first", "changed last"
    path = file("m.jsonl", lines(*rows))

    def stop(_now):
        raise KeyboardInterrupt

    with pytest.raises(ImportInterrupted, match="0 added, 1 updated, 255 already there, 0 failed"):
        import_path(memory, path, on_progress=stop)
    assert counts(import_path(memory, path)) == (0, 1, 256, 0)


def test_what_cannot_be_updated_is_listed_with_its_reason(open_memory, file):
    rows = [{"id": "a", "text": f"{user} likes tea", "user": user} for user in ("mara", "otto")]
    import_path(open_memory(), file("m.jsonl", lines(*rows)))
    rows[1]["text"] = "otto likes coffee"
    # An id alone does not say which of the two is meant.
    report = import_path(open_memory(), file("m.jsonl", lines(*rows)))
    assert counts(report) == (0, 0, 1, 1)
    assert "Bind the agent, user or session" in report.examples[0].message


def test_a_newer_export_of_ekphory_alone_updates(memory, tmp_path, close_at_end):
    home, copy = memory, close_at_end(Memory(tmp_path / "copy", embedder=HashEmbedder()))
    home.add("The key hangs in the hall", id="key", at="2026-01-01")
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    home.export(old)
    home.update("key", text="The key hangs behind the boiler", at="2026-02-01")
    home.export(new)
    assert counts(import_path(copy, old)) == (1, 0, 0, 0)
    assert counts(import_path(copy, new)) == (0, 1, 0, 0)
    assert counts(import_path(copy, new)) == (0, 0, 1, 0)
    assert import_path(copy, old).left_out == {OLDER_RECORD: 1}
    assert copy.get("key").text == "The key hangs behind the boiler"
