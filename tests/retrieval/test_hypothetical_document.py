"""What counts as a usable hypothetical document."""

import pytest

from ekphory.retrieval.stages.query import document_prompt, usable_document

DOCUMENT = "The staging key rotates every Monday at nine in the morning, after the backup."


def test_the_query_is_what_the_user_says():
    assert [message.role for message in document_prompt("when?")] == ["system", "user"]
    assert document_prompt("when?")[1].content == "when?"


def test_a_document_is_taken_as_it_is():
    assert usable_document(f"  {DOCUMENT}\n") == DOCUMENT


@pytest.mark.parametrize(
    "answer",
    [
        f"<think>Let me see.\nOK.</think>\n{DOCUMENT}",
        f"<THINK>hm</THINK>{DOCUMENT}",
        f"{DOCUMENT}<think>and this never ends",
        f"</think>{DOCUMENT}",
    ],
)
def test_thoughts_are_left_out(answer):
    assert usable_document(answer) == DOCUMENT


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "On Mondays.",
        "incomprehensibilities overcompensation",
        "I don't know when the staging key rotates, since nothing about it was given here.",
        "I don’t know when the staging key rotates, since nothing about it was given here.",
        "It cannot determine the day on which the staging key of this project is rotated.",
        "There is not enough information to say when the staging key is going to be rotated.",
        "We are unable to provide the day on which the staging key of this project rotates.",
        "There is no information available on the rotation of the staging key of this project.",
        "As an AI language model, there is no way for me to see when the staging key rotates.",
        "I'm not sure when the staging key rotates, but it may well be on some Monday morning.",
        "I cannot say anything about the rotation of the staging key of this project at all.",
        f"<think>{DOCUMENT}",
    ],
)
def test_junk_and_refusals_are_no_documents(answer):
    assert usable_document(answer) is None
