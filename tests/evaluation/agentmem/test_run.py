"""Which systems rank which set."""

import pytest

from ekphory.errors import InvalidInput
from ekphory.testing.models import HashEmbedder
from ekphory_lab.evaluation.agentmem import run_agentmem
from ekphory_lab.evaluation.agentmem_cases import Candidate, CaseSet, Distractor, RankingCase


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
