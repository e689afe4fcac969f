"""What else a query says beside its time, how sure the reading is, and that any text is read."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekphory.errors import InvalidInput
from ekphory.time_words.parse import read_time
from time_words.readings import WEDNESDAY, read, write, write_interval


@pytest.mark.parametrize(
    "text",
    [
        "What did we talk about last Tuesday?",
        "Tell me what we discussed May 8th.",
        "Summarize what we discussed over the last 3 days.",
        "Last Friday, what did we chat about?",
        "What sorts of things did we discuss earlier in the morning?",
        "Could you please remind me of our third session?",
        "What did we discuss at 3pm yesterday?",
        "yesterday",
        "in sessions 2, 3 and 5",
        "in our second, third and fifth sessions",
        "on May 1st (a Friday)",
        "on Friday the 6th of March",
        "from Monday, May 4 to Friday, May 8",
    ],
)
def test_a_query_can_ask_for_a_time_alone(text):
    assert read(text).remaining == ""
    assert read(text).only_time


@pytest.mark.parametrize(
    ("text", "remaining"),
    [
        ("What did Caroline paint on May 8th?", "Caroline paint"),
        ("In the first session, which team did Matt join?", "team Matt join"),
        ("deployments last week", "deployments"),
        ("Who was on call in summer 2024?", "on call"),
        ("Was I off in May 2024?", "off"),
        ("2024年我住在哪里？", "我住在哪里"),
        ("2024年の夏はどこに住んでいましたか", "はどこに住んでいましたか"),
        ("昨日話したこと", "話したこと"),
    ],
)
def test_what_else_is_asked_for_remains(text, remaining):
    assert read(text).remaining == remaining
    assert not read(text).only_time


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("final score 3:10 yesterday", "final score 3 10"),
        ("Psalm 23:10 yesterday", "Psalm 23 10"),
        ("Psalm 23:10 on Tuesday", "Psalm 23 10"),
        ("the results 3:10 and 4:10 yesterday", "results 3 10 4 10"),
    ],
)
def test_bare_numbers_before_a_day_are_no_time_of_the_clock(text, content):
    assert write(text) == "2026-11-17/2026-11-18"
    assert read(text).remaining == content


def test_what_a_reading_says_beside_its_interval():
    # A query without a time asks for no time.
    found = read("What do we talk about?")
    assert (found.references, found.remaining, found.only_time) == ((), "", False)
    # An event has no time of its own and its words remain.
    found = read("Where did we live before we moved to Lisbon?")
    (event,) = found.references
    assert (event.kind, event.text, event.interval) == ("event", "before we moved to Lisbon", None)
    assert "moved Lisbon" in found.remaining
    # Earlier today leaves out the session that is going on.
    (found,) = read("What did we discuss earlier today?").references
    assert write_interval(found.interval) == "2026-11-18/2026-11-18T15:30"
    assert found.before_ongoing
    # A whole date is surer than a weekday and that than recently.
    sure = [read(text).references[0].confidence for text in ("2026-05-08", "on Friday")]
    vague = read("recently").references[0]
    assert sure[0] > sure[1] > vague.confidence
    assert vague.newest_first


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("What did Ann say two weeks ago about the roof?", "two weeks ago"),
        ("on May 1st (a Friday) in Lisbon", "May 1st (a Friday)"),
        ("Who won 3-2 yesterday?", "yesterday"),
        ("this morning at 9pm", "this morning"),
    ],
)
def test_an_expression_is_given_as_it_stands_in_the_query(text, expression):
    (found,) = read(text).references
    assert (found.text, text[found.start : found.end]) == (expression, expression)


@pytest.mark.parametrize(
    ("text", "wider"),
    [
        ("What did we discuss at 3pm yesterday?", "2026-11-17/2026-11-18"),
        # Days that were counted in full hours may be those of the day before.
        ("What did we discuss 3 days ago?", "2026-11-14/2026-11-16"),
        ("last Tuesday", "2026-11-10/2026-11-11"),
        ("last week", "2026-11-11/2026-11-18T15:30"),
        ("recently", "2026-09-05/2026-11-18T15:30"),
    ],
)
def test_where_a_time_is_empty_a_wider_one_may_be_meant(text, wider):
    (found,) = read(text).references
    assert write_interval(found.wider) == wider


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("next Monday the 20th", "2026-07-20/2026-07-21"),
        ("next Friday the 24th", "2026-07-24/2026-07-25"),
        ("this coming Monday, the 3rd", "2026-08-03/2026-08-04"),
    ],
)
def test_a_date_beside_the_next_weekday_lies_ahead(text, given):
    assert write(text, now=datetime(2026, 7, 15, tzinfo=UTC)) == given


def test_a_time_depends_on_when_and_where_it_is_read():
    # Last christmas is over at christmas.
    at_christmas = datetime(2026, 12, 25, tzinfo=UTC)
    assert write("last Christmas", now=at_christmas) == "2025-12-24/2025-12-27"
    # Days begin where the user is.
    assert write("yesterday", timezone="Asia/Tokyo") == "2026-11-17T15:00/2026-11-18T15:00"
    # An unknown timezone is named.
    with pytest.raises(InvalidInput, match=r"timezone='Mars/Base'.*Europe/Berlin"):
        read("today", timezone="Mars/Base")
    # A moment without a timezone is in utc.
    assert read("today", now=WEDNESDAY.replace(tzinfo=None)) == read("today")


@pytest.mark.parametrize("text", ["yesterday at 2am", "yesterday between 2am and 3am"])
def test_an_hour_that_the_clocks_skip_leaves_the_day_whole(text):
    now = datetime(2026, 3, 30, 12, tzinfo=UTC)
    given = write(text, now=now, timezone="Europe/Berlin")
    assert given == "2026-03-28T23:00/2026-03-29T22:00"


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("Was haben wir gestern besprochen?", "2026-11-17/2026-11-18"),
        ("Was war am 8. Mai 2026?", "2026-05-08/2026-05-09"),
        ("De quoi avons-nous parlé hier ?", "2026-11-17/2026-11-18"),
        ("¿De qué hablamos el 8 de mayo?", "2026-05-08/2026-05-09"),
        # Years need no dateparser.
        ("Was haben wir 2024 besprochen?", "2024-01-01/2025-01-01"),
        ("De quoi avons-nous parlé en 2024 ?", "2024-01-01/2025-01-01"),
        ("¿De qué hablamos en 2024?", "2024-01-01/2025-01-01"),
    ],
)
def test_another_language_is_read_where_dateparser_is_installed(text, given):
    assert write(text) == given
    assert read(text).only_time


# No text, however odd or long, raises an error or takes long.

WORDS = (
    "last next this previous the a of in on at between and from to until since before after early "
    "late end week weekend month year days weeks ago session sessions first second 1st 31 30 2023 "
    "0001 9999 2022-02-30 12/31/99 May march monday tuesdays yesterday today morning 3pm 12:30 "
    "half couple of few recently spring christmas new year's not but the one before that , ? - "
    "decade quarter Q3 hundredth 29 feb around so far time while long fortnight time "
    "'23 90s summers winters weekends Friday the 6th, noon o'clock 2pm 4 am : 0 when did we talked"
).split()
MOMENTS = st.one_of(
    st.datetimes(timezones=st.sampled_from([None, UTC])),
    st.sampled_from([datetime.min, datetime.max, datetime(2024, 2, 29, tzinfo=UTC)]),
)
ZONES = st.sampled_from(["UTC", "Pacific/Kiritimati", "America/Los_Angeles", "Etc/GMT+12"])


@given(
    st.one_of(st.text(max_size=300), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)),
    MOMENTS,
    ZONES,
)
@settings(max_examples=300, deadline=None)
def test_every_text_is_read_at_every_moment(text, now, zone):
    reading = read_time(text, now=now, timezone=zone)
    for each in reading.references:
        assert text[each.start : each.end] == each.text
        assert 0 < each.confidence <= 1
        interval = each.interval
        if interval is not None and None not in (interval.start, interval.end):
            assert interval.start <= interval.end


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["a", "last ", "1 ", "May ", "session 1 to ", "first and ", "between ", "the day "]
)
def test_a_text_five_times_as_long_does_not_take_longer(words):
    def seconds(text):
        started = time.perf_counter()
        for _ in range(3):
            read_time(text, now=datetime(2026, 1, 1, tzinfo=UTC))
        return time.perf_counter() - started

    short, long = (words * 2000)[:2000], (words * 10_000)[:10_000]
    seconds(short)
    assert min(seconds(long) for _ in range(3)) < 3 * max(seconds(short) for _ in range(3))
