import math

import pytest
from tests.evaluation.agentmem.timed_embedder import TimedEmbedder

from ekphory.testing.models import HashEmbedder
from ekphory_lab.evaluation.agentmem import Bm25Scorer, EmbedderScorer, WindowedScorer
from ekphory_lab.evaluation.agentmem_cases import Candidate, Distractor, RankingCase


def case(answer, *others, query="Who feeds the cat?"):
    return RankingCase("1", query, answer, tuple(Distractor("any", each) for each in others))


def test_a_plain_embedder_does_not_see_the_age(embedder):
    young, old = Candidate("the cat sleeps", 0), Candidate("the cat sleeps", 900)
    (scores,) = EmbedderScorer("plain", embedder).scores([case(young, old)])
    assert scores[0] == scores[1]


def test_a_late_bound_embedder_sees_the_age():
    young, old = Candidate("the cat sleeps", 1), Candidate("the cat sleeps", 1.5)
    (scores,) = EmbedderScorer("timed", TimedEmbedder()).scores([case(young, old)])
    assert scores.tolist() == pytest.approx([1, 0])


def test_a_late_bound_embedder_sees_the_type_that_is_given():
    semantic, episodic = Candidate("a", 0, "semantic"), Candidate("b", 0, "episodic")
    (scores,) = EmbedderScorer("timed", TimedEmbedder()).scores([case(semantic, episodic)])
    assert scores.tolist() == pytest.approx([1, 2**-0.5])


def test_a_type_that_nobody_gives_is_the_one_that_the_model_predicts():
    unknown, episodic = Candidate("a", 0), Candidate("b", 0, "episodic")
    (scores,) = EmbedderScorer("timed", TimedEmbedder()).scores([case(unknown, episodic)])
    assert scores.tolist() == pytest.approx([1, 2**-0.5])


def test_a_report_says_what_an_embedder_sees(embedder):
    assert EmbedderScorer("plain", embedder).configuration["sees"] == "text alone"
    assert EmbedderScorer("t", TimedEmbedder()).configuration["sees"] == "text, age and type"


SHORT = HashEmbedder(window_words=3)


def windowed_scores(model, *candidates, query):
    (scores,) = WindowedScorer("m", model).scores([case(*candidates, query=query)])
    return scores.tolist()


def test_a_text_of_one_window_scores_as_without_windows(embedder):
    cases = [case(Candidate("Ann feeds the cat", 1), Candidate("the boat sank", 2))]
    (plain,) = EmbedderScorer("m", embedder).scores(cases)
    (windowed,) = WindowedScorer("m", embedder).scores(cases)
    assert windowed.tolist() == pytest.approx(plain.tolist(), abs=1e-6)


def test_a_later_window_counts_less_its_margin_and_the_discount_for_two():
    found = windowed_scores(SHORT, Candidate("red green blue one two three"), query="one two three")
    assert found == pytest.approx([1 - 0.05 - 0.1 * math.log(2)], abs=1e-6)


def test_a_first_window_loses_the_discount_alone():
    found = windowed_scores(SHORT, Candidate("one two three red green blue"), query="one two three")
    assert found == pytest.approx([1 - 0.1 * math.log(2)], abs=1e-6)


def test_each_window_gets_the_age_of_its_candidate():
    class Pieces(TimedEmbedder):
        def windows(self, text, *, prefix=""):
            return (prefix + text).split()

    young, old = Candidate("a b", 1), Candidate("c d", 1.5)
    found = windowed_scores(Pieces(), young, old, query="q")
    assert found == pytest.approx([1 - 0.1 * math.log(2), -0.1 * math.log(2)], abs=1e-6)


def test_a_given_type_counts_and_else_the_one_that_is_predicted():
    cases = [case(Candidate("a", 0), Candidate("b", 0, "episodic"))]
    (windowed,) = WindowedScorer("m", TimedEmbedder()).scores(cases)
    assert windowed.tolist() == pytest.approx([1, 2**-0.5])


def test_windows_are_read_only_where_some_text_has_several():
    short, long = Candidate("one two"), Candidate("one two three four")
    scorer = WindowedScorer("m", SHORT)
    assert not scorer.reads_more([case(short)])
    assert scorer.reads_more([case(short, long)])


def test_a_report_says_that_all_windows_are_read_and_what_they_lose():
    scorer = WindowedScorer("m", SHORT)
    assert scorer.name == "m, all windows"
    assert scorer.configuration["sees"] == "text alone"
    assert scorer.configuration["later_window_margin"] == pytest.approx(0.05)
    assert scorer.configuration["length_discount"] == pytest.approx(0.1)


def test_bm25_ranks_by_common_words_and_gives_0_without_any():
    given = case(Candidate("Ann feeds the cat"), Candidate("the boat sank"))
    (scores,) = Bm25Scorer().scores([given])
    assert scores[0] > scores[1] == 0
