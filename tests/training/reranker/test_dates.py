from datetime import UTC, datetime
from random import Random

from ekphory_lab.training.question_groups import Placement
from ekphory_lab.training.reranker.sources import (
    draw_other_date,
    draw_session_dates,
    name_time,
    name_time_apart,
)

MAY = datetime(2023, 5, 8, 9, 30, tzinfo=UTC)


def test_a_day_a_month_and_a_year_have_words():
    words = [name_time(MAY, grain).words for grain in ("day", "month", "year")]

    assert words == ["on 8 May 2023", "in May 2023", "in 2023"]


def test_a_month_covers_its_days_and_no_others():
    named = name_time(MAY, "month")

    assert named.covers(datetime(2023, 5, 31, tzinfo=UTC))
    assert not named.covers(datetime(2023, 6, 1, tzinfo=UTC))
    assert not named.covers(datetime(2022, 5, 8, tzinfo=UTC))


def test_the_widest_time_that_keeps_the_others_out_is_named():
    others = [datetime(2022, 1, 1, tzinfo=UTC), datetime(2023, 7, 1, tzinfo=UTC)]

    assert name_time_apart(MAY, []).words == "in 2023"
    assert name_time_apart(MAY, others).words == "in May 2023"
    assert name_time_apart(MAY, [MAY]) is None


def test_another_date_is_outside():
    named = name_time(MAY, "year")

    assert not any(named.covers(draw_other_date(Random(seed), named)) for seed in range(30))


def test_the_turns_of_a_conversation_share_a_day_and_later_ones_come_later():
    placements = [Placement(0), Placement(0), None, Placement(1)]

    first, second, third, fourth = draw_session_dates(placements, Random(1))

    assert first == second < fourth
    assert third is None
