"""Recalled memories that come back as new input are not stored again."""

import pytest

from ekphory.prompting.recall_block import SECURITY_COMMENT


@pytest.fixture
def block(memory):
    """A rendered search result of the same store, which then holds one memory."""
    memory.add("I prefer Python over JavaScript", producer="user")
    return memory.search("Which language?").to_prompt()


def test_a_rendered_result_added_again_is_skipped(memory, block):
    report = memory.add(block)
    assert (report.added, report.skipped, report.failed, report.ids) == (0, 1, [], ())
    assert memory.count() == 1


def test_the_text_around_it_is_stored(memory, block):
    (added,) = memory.add(f"{block}\n\nWhat about Rust?").ids
    assert memory.get(added).text == "What about Rust?"


def test_the_same_text_with_other_recalled_memories_is_the_same_memory(memory, block):
    first = memory.add(f"{block}\nWhat about Rust?", at="2026-05-08")
    memory.add("Rust is fine too")
    again = memory.search("Rust").to_prompt()
    second = memory.add(f"{again}\nWhat about Rust?", at="2026-05-08")
    assert (second.skipped, second.ids) == (1, first.ids)


def test_a_truncated_block_is_skipped(memory, block):
    assert memory.add(block[: len(block) - 40]).skipped == 1
    assert memory.count() == 1


def test_a_conversation_keeps_its_messages_and_skips_the_recalled_ones(memory, block):
    report = memory.add_messages(
        [
            {"role": "system", "content": block},
            {"role": "user", "content": f"{block}\nWhat about Rust?"},
            {"role": "assistant", "content": "You have not said."},
        ],
        session="s1",
    )
    assert (report.added, report.skipped, len(report.ids)) == (2, 1, 2)
    assert [memory.get(name).text for name in report.ids] == [
        "What about Rust?",
        "You have not said.",
    ]


def test_a_batch_counts_them_as_skipped(memory, block):
    seen = []
    records = [{"text": block}, {"text": "new"}, {"text": " "}, {"text": f" {block}\n"}]
    report = memory.add_many(records, on_progress=seen.append)
    assert (report.added, report.skipped, len(report.failed)) == (1, 2, 1)
    assert seen[-1] == report


def test_a_batch_of_nothing_else_stores_nothing(memory, block):
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
