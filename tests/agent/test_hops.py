"""Following evidence from memory to memory, where no path of relations is read."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cases import read_cases
from tests.prompting.hits import hit

from ekphory.agent.evidence import (
    FEATURES,
    ChainWeights,
    HopWeights,
    Trail,
    chain_probability,
    find_new_names,
    needs_several,
)
from ekphory.agent.evidence import follow as follow_trail
from ekphory.agent.local_provider import LocalProvider
from ekphory.agent.provider import Budget, SearchTool, SessionFault
from ekphory.agent_trace import EventLog, HopResolved
from ekphory.errors import ModelError
from ekphory.models.reranker import TINY_RERANKER, bundled_reranker
from ekphory.testing import OverlapReranker

CASES = read_cases(__file__)
CHAIN = ChainWeights({"intercept": -3.0, "place": -0.3, "meaning": 1.0, "shared": 8.0, "open": 2.0})
WEIGHTS = HopWeights({"intercept": 5.0}, CHAIN)
ROOF = "Where does the man who fixed our roof live?"


@pytest.fixture
def village(open_memory):
    memory = open_memory()
    memory.add("Joop Mulder fixed our roof in a day", id="fixed")
    memory.add("Joop Mulder bought a house in Haarlem", id="home")
    memory.add("A pipe leaked for a week", id="leak")
    memory.add("Where the tram ends nobody lives", id="tram")
    return memory


def follow(memory, question, *, weights=WEIGHTS, calls=10):
    log = EventLog()
    budget = Budget(most_calls=calls, seconds=60)
    tool = SearchTool(lambda query: memory.search(query, k=50).hits, budget, log)
    outcome = LocalProvider(weights=weights).run(question, tool, log)
    hops = [event.body for event in log.events if isinstance(event.body, HopResolved)]
    return outcome, hops


@pytest.mark.parametrize(("text", "question", "names"), CASES["names"])
def test_a_memory_adds_the_names_that_the_question_does_not_hold(text, question, names):
    assert [name.text for name in find_new_names(text, question)] == names


def test_a_name_beside_words_of_the_question_is_near():
    text = "Night Ferry was directed by Ada Holm in the spring, with a small part for Otto Brandt."
    holm, brandt = find_new_names(text, "Who is the mother of the director of Night Ferry?")
    assert (holm.text, brandt.text) == ("Ada Holm", "Otto Brandt")
    assert holm.nearness > brandt.nearness


def test_evidence_leads_to_the_memory_that_shares_its_name(village):
    outcome, hops = follow(village, ROOF)
    assert [hop.memory_ids for hop in hops][:2] == [("fixed",), ("home",)]
    assert hops[0].answer == "Joop Mulder"
    # The first two hits of plain search, then what they lead to; and all else that it found.
    assert [each.id for each in outcome.ranking] == ["fixed", "tram", "home", "leak"]
    assert outcome.ranking[2].scores["hop"] == pytest.approx(hops[1].confidence, abs=1e-4)


def test_where_the_gate_is_closed_plain_search_answers(village):
    closed = HopWeights({"intercept": -5.0}, CHAIN)
    outcome, hops = follow(village, ROOF, weights=closed)
    assert (outcome.ranking, hops) == (None, [])


@pytest.mark.parametrize(
    ("intercept", "queries", "is_followed"),
    [(-5.0, 0, False), (0.0, 1, False), (5.0, 1, True)],
)
def test_a_question_that_may_need_several_memories_is_read_further_before_that_is_decided(
    village, intercept, queries, is_followed
):
    read = []

    def read_more(query):
        read.append(query)
        return village.search(query, k=50).hits

    log, budget = EventLog(), Budget(most_calls=10, seconds=60)
    tool = SearchTool(lambda query: village.search(query, k=50).hits, budget, log, read_more)
    weights = HopWeights({"intercept": intercept}, CHAIN, follow=0.6)
    reranker = bundled_reranker(TINY_RERANKER)
    outcome = LocalProvider(reranker=reranker, weights=weights).run(ROOF, tool, log)
    assert (read, outcome.ranking is not None) == ([ROOF] * queries, is_followed)


def test_a_question_is_searched_once_where_nothing_reads_more_of_it(village):
    searched = []

    def search(query):
        searched.append(query)
        return village.search(query, k=50).hits

    log, reranker = EventLog(), bundled_reranker(TINY_RERANKER)
    tool = SearchTool(search, Budget(most_calls=10, seconds=60), log)
    LocalProvider(reranker=reranker, weights=WEIGHTS).run(ROOF, tool, log)
    assert searched.count(ROOF) == 1


class Counting(OverlapReranker):
    """Remembers what it was asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def score(self, query, passages):
        self.asked += [(query.text, passage.text) for passage in passages]
        return super().score(query, passages)


def test_a_session_has_no_candidate_scored_twice_for_its_question(open_memory):
    reranker = Counting()
    memory = open_memory(reranker=reranker)
    memory.add_many([{"text": f"Joop Mulder fixed roof {number}"} for number in range(12)])
    found = memory.search("Which roof did Joop Mulder fix?", agent_mode=True, k=3)
    assert len(found) == 3
    assert len(reranker.asked) == len(set(reranker.asked)) > 0


def test_without_calls_left_the_evidence_is_weighed_by_what_was_found(village):
    outcome, _ = follow(village, ROOF, calls=1)
    assert outcome.ranking[0].id == "fixed"
    assert len(outcome.ranking) == 4


def test_without_time_left_the_evidence_is_not_weighed_either(village):
    budget = Budget(most_calls=1, seconds=60)

    def search(query):
        budget.seconds = 0.0
        return village.search(query, k=50).hits

    tool = SearchTool(search, budget, EventLog())
    with pytest.raises(SessionFault, match="global_timeout"):
        LocalProvider(weights=WEIGHTS).run(ROOF, tool, tool.log)


def test_a_question_whose_memories_are_forgotten_before_they_are_read_is_followed_nowhere(village):
    log, reranker = EventLog(), bundled_reranker(TINY_RERANKER)
    tool = SearchTool(village.search, Budget(most_calls=10, seconds=60), log, lambda _: ())
    outcome = LocalProvider(reranker=reranker, weights=WEIGHTS).run(ROOF, tool, log)
    assert (outcome.confidence, outcome.sufficient) == (0.0, False)


class Failing(OverlapReranker):
    """Cannot read."""

    def score(self, query, passages):
        raise ModelError(f"{len(passages)} passages for {query.text!r}: its file is damaged")


def test_a_reader_that_fails_leaves_the_evidence_to_what_was_fitted_without_it(village):
    read = ChainWeights({"intercept": 9.0})
    trails = []
    for reader in (Failing(), None):
        tool = SearchTool(village.search, Budget(most_calls=10, seconds=60), EventLog())
        trail = Trail(ROOF, tool, village.search(ROOF, k=50).hits, reader)
        follow_trail(trail, replace(WEIGHTS, read=read), [1.0])
        trails.append(trail)
    assert trails[0].chain == trails[1].chain


def test_words_and_what_plain_search_found_open_the_gate():
    weights = HopWeights({"both": 2.0, "= held": -3.0}, CHAIN)
    found = [hit("The keys are in the blue bowl")]
    assert needs_several("Where are the keys?", found, weights) == pytest.approx(0.0474, abs=1e-3)
    assert needs_several("Did both go to Riga?", found, weights) == pytest.approx(0.8808, abs=1e-3)


def test_a_chain_is_as_probable_as_all_of_its_memories_together():
    assert chain_probability([0.9, 0.8], CHAIN) == pytest.approx(0.72)
    flat = ChainWeights({}, chain_curve=(0.0, 0.0))
    assert chain_probability([0.9, 0.8], flat) == 0.5


def test_a_candidate_that_begins_with_a_name_of_the_evidence_is_titled():
    film = hit("Night Ferry was directed by Ada Holm")
    life = hit("Ada Holm was born in Riga")
    budget = Budget(most_calls=9, seconds=60)
    tool = SearchTool(lambda _: [life, film], budget, EventLog())
    trail = Trail("Who directed Night Ferry?", tool, [film, life])
    trail.ask_with(film.id, weight=1.0)
    titled = trail.features()[:, FEATURES.index("titled")]
    assert titled.tolist() == [0.0, 1.0]


def test_what_was_said_within_three_turns_of_the_evidence_is_beside_it(memory):
    for place, text in enumerate(["Where is it?", "Behind the shed", "Odd", "Rain again", "Tea?"]):
        memory.add(text, id=text, session="may", sequence=place)
    memory.add("Where is it now?", id="june", session="june", sequence=1)
    hits = {each.id: each for each in memory.search("Where is it?", k=9).hits}
    tool = SearchTool(lambda _: list(hits.values()), Budget(most_calls=9, seconds=60), EventLog())
    trail = Trail("Where is it?", tool, list(hits.values()))
    trail.ask_with("Where is it?", weight=1.0)
    found = trail.features()[:, [FEATURES.index("beside"), FEATURES.index("session")]]
    said_near = dict(zip(trail.ids, found.tolist(), strict=True))
    assert said_near["Behind the shed"] == [1.0, 1.0]
    assert said_near["Tea?"] == [0.0, 1.0]
    assert said_near["june"] == [0.0, 0.0]


def test_a_reader_reads_the_likeliest_candidates_behind_the_question_and_the_last_memory():
    roof, home, tea = (hit(text) for text in ("Joop fixed our roof", "Joop lives in Delft", "Tea"))
    tool = SearchTool(lambda _: [home], Budget(most_calls=9, seconds=60), EventLog())
    trail = Trail(ROOF, tool, [roof, home, tea], bundled_reranker(TINY_RERANKER))
    read, was_read = trail.read_features(np.array([-np.inf, 1.0, 0.0])).T
    assert read[1] > read[2]
    assert was_read.tolist() == [1.0, 1.0, 1.0]
