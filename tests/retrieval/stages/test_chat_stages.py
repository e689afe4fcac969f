"""The stages 2 and 3 ask a language model, and go on without it."""

import numpy as np
import pytest

from ekphory.errors import ServiceError
from ekphory.retrieval.stages.query import ExpandQuery, Hyde
from ekphory.testing.models import HashEmbedder, ScriptedChat
from retrieval.states import records, state_of

QUERY = "When does the staging key rotate?"
DOCUMENT = "The staging key rotates every Monday at nine in the morning after the backup."
REFUSED = ServiceError("https://chat.example: refused the connection")


def state(*answers, query=QUERY):
    return state_of(*records("a"), query=query, chat=ScriptedChat(answers))


def embedded(text):
    return HashEmbedder().encode([text])[0]


def test_the_document_may_replace_the_query():
    found = Hyde(use="replace").run(state(DOCUMENT))
    assert found.variants.vector.tolist() == embedded(DOCUMENT).tolist()
    assert found.notes == {"use": "replace", "model": "scripted-chat"}


def test_by_default_the_search_is_between_document_and_query():
    between = embedded(DOCUMENT) + embedded(QUERY)
    vector = Hyde().run(state(DOCUMENT)).variants.vector
    assert vector.tolist() == pytest.approx((between / np.linalg.norm(between)).tolist(), abs=1e-6)
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-6)


def test_junk_is_asked_for_again():
    found = Hyde(use="replace").run(state("I cannot.", DOCUMENT))
    assert found.variants.vector is not None
    assert len(found.resources.chat.asked) == 2


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (("I cannot.", "junk"), "scripted-chat gave no usable document"),
        ((REFUSED,), "scripted-chat: https://chat.example: refused the connection"),
    ],
)
def test_without_a_document_the_query_is_searched_plainly_and_the_stage_is_degraded(
    answers, reason
):
    found = Hyde().run(state(*answers))
    assert (found.variants.vector, found.degraded) == (None, reason)


def test_other_wordings_are_searched_too():
    found = ExpandQuery().run(state("1. staging key rotation\n2. rotation day of the key"))
    assert found.variants.texts == ("staging key rotation", "rotation day of the key")
    assert found.notes == {"wordings": 2, "model": "scripted-chat"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Here are some:", "scripted-chat gave no usable wording"),
        (REFUSED, "scripted-chat: https://chat.example: refused the connection"),
    ],
)
def test_without_a_wording_the_query_alone_is_searched_and_the_stage_is_degraded(answer, reason):
    found = ExpandQuery().run(state(answer))
    assert (found.variants.texts, found.degraded) == ((), reason)


@pytest.mark.parametrize("stage", [Hyde(), ExpandQuery()])
def test_without_a_language_model_or_with_a_short_query_the_stage_is_skipped(stage):
    assert stage.skip_reason(state_of(query=QUERY)) == "no language model"
    assert stage.skip_reason(state(query="key day?")) == "the query is shorter than 10 characters"
    assert stage.skip_reason(state()) is None


@pytest.mark.parametrize("stage", [Hyde(), ExpandQuery()])
def test_the_query_is_what_the_user_says_and_no_more(stage):
    asking = state(DOCUMENT, DOCUMENT)
    stage.run(asking)
    system, user = asking.resources.chat.asked[0]
    assert (system.role, user.role, user.content) == ("system", "user", QUERY)
    assert QUERY not in system.content
