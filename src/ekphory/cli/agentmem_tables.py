"""The tables of `ekphory eval agentmem`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ekphory.evaluation.agentmem.cases import CaseSet
from ekphory.evaluation.agentmem.ranking import MAIN, MEASURES, RankingReport
from ekphory.evaluation.agentmem.traits import TraitScores
from ekphory.evaluation.stats import Estimate, PairedTest


def ranking_table(
    cases: CaseSet, rankings: Sequence[RankingReport], *, notes: Sequence[str]
) -> Table:
    """Show every system on one set, with 95 % intervals and the difference to the first."""
    table = Table(title=f"{cases.name}: {len(cases.cases)} queries, 8 candidates, 1 relevant")
    table.title_justify = table.caption_justify = "left"
    table.caption = Text("\n".join(notes)) if notes else None
    table.add_column("system")
    for name in (*MEASURES, f"{MAIN} against the first", "p"):
        table.add_column(name, justify="right")
    for each in rankings:
        estimates = [each.estimates[name] for name in MEASURES]
        difference, interval, p_value = _difference(each.against_first)
        means = (_number(estimate.mean) for estimate in estimates)
        table.add_row(Text(each.scorer), *means, difference, p_value)
        table.add_row("95 %", *map(_interval, estimates), interval, "", style="dim")
    return table


def outranked_table(cases: CaseSet, rankings: Sequence[RankingReport]) -> Table:
    """Show which kinds of distractors the answer does not beat."""
    table = Table(title=f"{cases.name}: share of the distractors that the answer does not beat")
    table.title_justify = "left"
    table.add_column("kind")
    table.add_column("queries without", justify="right")
    for each in rankings:
        table.add_column(each.scorer, justify="right")
    for kind in rankings[0].outranked:
        shares = (_number(each.outranked[kind]) for each in rankings)
        missing = cases.missing.get(kind)
        table.add_row(kind, "-" if missing is None else str(missing), *shares)
    return table


def traits_table(traits: Sequence[TraitScores]) -> Table:
    """Show who tells importance and type how well."""
    table = Table(title="importance (Spearman) and type (accuracy)", title_justify="left")
    for header in ("texts", "source"):
        table.add_column(header)
    for header in ("n", "importance", "95 %", "n with type", "type", "95 %"):
        table.add_column(header, justify="right")
    for each in traits:
        table.add_row(
            Text(each.set_name),
            Text(each.source),
            str(each.texts),
            *_optional(each.importance),
            str(each.typed_texts),
            *_optional(each.type),
        )
    return table


def _difference(test: PairedTest | None) -> tuple[str, str, str]:
    if test is None:
        return "", "", ""
    p_value = "<.001" if test.p_value < 0.001 else _number(test.p_value)
    return f"{test.difference:+.3f}", f"{test.low:+.3f} to {test.high:+.3f}", p_value


def _optional(estimate: Estimate | None) -> tuple[str, str]:
    return ("-", "") if estimate is None else (_number(estimate.mean), _interval(estimate))


def _interval(estimate: Estimate) -> str:
    return f"{_number(estimate.low)} to {_number(estimate.high)}"


def _number(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)
