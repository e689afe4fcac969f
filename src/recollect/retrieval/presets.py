"""Named pipelines, as data."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from recollect.errors import InvalidInput
from recollect.retrieval.pipeline import Pipeline
from recollect.retrieval.stages.clean_query import CleanQuery
from recollect.retrieval.stages.cut import Cut
from recollect.retrieval.stages.decay import Decay
from recollect.retrieval.stages.fuse import Fuse
from recollect.retrieval.stages.search_pools import SearchPools
from recollect.retrieval.stages.weigh import Weigh

PRESETS: Mapping[str, Pipeline] = {
    "balanced": Pipeline(
        "balanced", [CleanQuery(), SearchPools(), Fuse(), Weigh(), Decay(), Cut()]
    ),
    "rrf": Pipeline(
        "rrf",
        [CleanQuery(), SearchPools(), Fuse(method="reciprocal_rank"), Weigh(), Decay(), Cut()],
    ),
}
DEFAULT_PRESET = "balanced"


def preset(name: str | None) -> Pipeline:
    """Give the pipeline of that name; None gives the default one.

    Raises:
        InvalidInput: There is no such preset.
    """
    chosen = DEFAULT_PRESET if name is None else name
    if not isinstance(chosen, str) or chosen not in PRESETS:
        near = difflib.get_close_matches(str(chosen), PRESETS, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InvalidInput(
            "preset", chosen, "no such preset", f"{hint}Choose one of {', '.join(sorted(PRESETS))}"
        )
    return PRESETS[chosen]
