import pytest
from tests.evaluation.agentmem.timed_embedder import TimedEmbedder

from recollect.evaluation.agentmem.cases import Candidate, Distractor, RankingCase
from recollect.evaluation.agentmem.scorers import Bm25Scorer, EmbedderScorer


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


def test_bm25_ranks_by_common_words_and_gives_0_without_any():
    given = case(Candidate("Ann feeds the cat"), Candidate("the boat sank"))
    (scores,) = Bm25Scorer().scores([given])
    assert scores[0] > scores[1] == 0
