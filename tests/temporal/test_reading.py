"""What else a query says beside its time, and how sure the reading is."""

import pytest

from ekphory.errors import InvalidInput
from temporal.readings import WEDNESDAY, reading


@pytest.mark.parametrize(
    "text",
    [
        "What did we talk about last Tuesday?",
        "Tell me what we discussed May 8th.",
        "Summarize what we discussed over the last 3 days.",
        "Last Friday, what did we chat about?",
        "What sorts of things did we discuss earlier in the morning?",
        "Could you please remind me of our third session?",
        "yesterday",
    ],
)
def test_a_query_can_ask_for_a_time_alone(text):
    assert reading(text).remaining == ""
    assert reading(text).only_time


@pytest.mark.parametrize(
    ("text", "remaining"),
    [
        ("What did Caroline paint on May 8th?", "Caroline paint"),
        ("In the first session, which team did Matt join?", "team Matt join"),
        ("deployments last week", "deployments"),
    ],
)
def test_what_else_is_asked_for_remains(text, remaining):
    assert reading(text).remaining == remaining
    assert not reading(text).only_time


def test_a_query_without_a_time_asks_for_no_time():
    found = reading("What do we talk about?")
    assert (found.references, found.remaining, found.only_time) == ((), "", False)


def test_an_expression_is_given_as_it_stands_in_the_query():
    text = "What did Ann say two weeks ago about the roof?"
    (found,) = reading(text).references
    assert (found.text, text[found.start : found.end]) == ("two weeks ago", "two weeks ago")


def test_a_whole_date_is_surer_than_a_weekday_and_that_than_recently():
    sure = [reading(text).references[0].confidence for text in ("2026-05-08", "on Friday")]
    vague = reading("recently").references[0]
    assert sure[0] > sure[1] > vague.confidence
    assert vague.newest_first


def test_an_event_has_no_time_of_its_own_and_its_words_remain():
    found = reading("Where did we live before we moved to Lisbon?")
    (event,) = found.references
    assert (event.kind, event.text, event.interval) == ("event", "before we moved to Lisbon", None)
    assert "moved Lisbon" in found.remaining


def test_an_unknown_timezone_is_named():
    with pytest.raises(InvalidInput, match=r"timezone='Mars/Base'.*Europe/Berlin"):
        reading("today", timezone="Mars/Base")


def test_a_moment_without_a_timezone_is_in_utc():
    assert reading("today", now=WEDNESDAY.replace(tzinfo=None)) == reading("today")
