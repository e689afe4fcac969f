"""A pipeline is checked when it is built, and says what each stage did."""

import json
from dataclasses import replace

import pytest
from tests.store.store_contract import contract_record

from ekphory.errors import InvalidInput
from ekphory.retrieval.pipeline import CANONICAL_STAGES, Pipeline, describe
from ekphory.retrieval.presets import PRESETS
from ekphory.retrieval.query import CleanQuery
from ekphory.retrieval.stages.find import Fuse, SearchPools
from ekphory.retrieval.stages.rerank import GateReranker
from ekphory.retrieval.stages.shape import Cut, Diversify
from ekphory.retrieval.stages.weigh import Decay, Weigh
from retrieval.states import rows, state_of

PIPELINE = Pipeline("mine", [CleanQuery(), SearchPools(), Fuse(), Weigh(), Decay(), Cut()])


class Stumbles:
    """A stage that gives up."""

    number = 10
    name = "stumbles"
    needs = frozenset({"probability"})
    gives = frozenset()

    def skip_reason(self, state):
        return None if len(state.candidates) else "no candidates"

    def run(self, state):
        return replace(state, degraded="the service is gone", notes={"tried": 2})


BY_WORDS = [SearchPools(arms="lexical"), Fuse(method="lexical")]


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        ([SearchPools(), Fuse(), Decay(), Weigh()], "'decay, weigh'.* 9 stands before 8"),
        (
            [SearchPools(), Fuse(), Diversify(), Weigh(), Cut()],
            "'diversify, weigh'.* 13 stands before 8",
        ),
        ([Fuse()], r"'fuse'.*\['cosine', 'lexical'\]"),
        ([*BY_WORDS, GateReranker()], r"'reranker gate'.*\['cosine'\]"),
        ([SearchPools(arms="dense"), Fuse()], r"'fuse'.*\['lexical'\]"),
    ],
)
def test_stages_in_the_wrong_order_or_without_what_they_need_are_refused(stages, problem):
    with pytest.raises(InvalidInput, match=f"stages={problem}"):
        Pipeline("mine", [CleanQuery(), *stages])


def test_the_trace_names_every_stage_and_shows_no_text():
    # The trace names every stage and counts its candidates.
    _, trace = PIPELINE.run(state_of(contract_record(1), contract_record(2), k=1))
    assert trace.preset == "mine"
    assert [stage.name for stage in trace.stages] == [
        "clean query", "search pools", "fuse", "weigh", "decay", "cut",
    ]  # fmt: skip
    assert [stage.status for stage in trace.stages] == ["ran"] * 6
    assert (trace.stages[-1].candidates_in, trace.stages[-1].candidates_out) == (2, 1)
    # The trace shows the best values before and after and no text.
    record = replace(contract_record(1), pool="shared_mistakes")
    _, trace = PIPELINE.run(state_of(record, query="memory 1"))
    weigh = trace.stages[3]
    (before,), (after,) = weigh.detail["best_before"], weigh.detail["best"]
    assert after == pytest.approx(1.1 * before, abs=1e-3)
    assert record.text not in str(trace.to_dict())


def test_a_stage_with_nothing_to_do_is_skipped_with_the_reason():
    _, trace = PIPELINE.run(state_of())
    assert {stage.status for stage in trace.stages[1:]} == {"skipped"}
    reasons = [stage.reason for stage in trace.stages[1:]]
    assert reasons == ["no memory is visible"] + ["no candidates"] * 4


def test_a_degraded_stage_says_why_and_the_pipeline_goes_on():
    stages = [CleanQuery(), SearchPools(), Fuse(), Stumbles(), Cut()]
    state, trace = Pipeline("mine", stages).run(state_of(contract_record(1)))
    stumbled, cut = trace.stages[3:]
    assert (stumbled.status, stumbled.reason) == ("degraded", "the service is gone")
    assert stumbled.detail == {"tried": 2}
    assert (cut.status, rows(state), trace.degraded) == ("ran", [0], True)


def test_a_stage_says_what_it_does_with_which_settings():
    # A stage that is missing stands as unused.
    described = {stage.number: stage for stage in describe(PRESETS["balanced"])}
    assert set(described) == set(CANONICAL_STAGES)
    assert (described[13].name, described[13].used) == ("diversify", False)
    # A stage says what it does with which settings.
    gate = next(stage for stage in describe(PRESETS["memory_spark"]) if stage.number == 11)
    assert gate.purpose == (
        "Decides from the first stage's scores; as published, from how far the best cosines spread."
    )
    assert gate.settings["mode"] == "hard"
    assert gate.settings["thresholds"] == {"low": 0.02, "high": 0.08}
    assert gate.settings["learned"] is None
    # The canonical names are those of the stages.
    named = {(stage.number, stage.name) for stage in PRESETS["memory_spark"].stages}
    assert {each for each in CANONICAL_STAGES.items() if each[0] < 15} <= named


@pytest.mark.parametrize("name", PRESETS)
def test_every_setting_is_plain_data(name):
    settings = [dict(stage.settings) for stage in describe(PRESETS[name])]
    assert json.loads(json.dumps(settings)) == settings
