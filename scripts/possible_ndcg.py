"""Say which NDCG@10 published MRR, R@1 and R@5 leave possible, one candidate of eight relevant.

`python -m scripts.possible_ndcg` prints one JSON document. The share of queries whose answer has
rank 1, 2 … 8 is unknown, but these measures, the NDCG too, are sums over the eight shares: the
least and the largest NDCG are the ends of a linear programme. What was published was rounded to
four digits, so each measure may lie half a unit to either side.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

CANDIDATES = 8
_HALF_A_UNIT = 0.00005
PUBLISHED = {
    "AgentRank-Base": (0.6496, 0.4440, 0.9960, 0.6786),
    "AgentRank-Small": (0.6375, 0.4460, 0.9740, 0.6797),
    "all-mpnet-base-v2": (0.5351, 0.3660, 0.7960, 0.6335),
    "all-MiniLM-L6-v2": (0.5297, 0.3720, 0.7520, 0.6370),
}
"""Model: MRR, R@1, R@5 and NDCG@10 of AgentRank's card."""


def possible_ndcg(measures: Sequence[float]) -> tuple[float, float]:
    """Return the least and the largest NDCG@10 that MRR, R@1 and R@5 leave possible."""
    ranks = np.arange(1, CANDIDATES + 1)
    gains = 1 / np.log2(ranks + 1)
    rows = np.stack([1 / ranks, ranks == 1, ranks <= 5]).astype(np.float64)
    given = np.array(measures)
    ends = []
    for sign in (1, -1):
        found = linprog(
            sign * gains,
            A_ub=np.vstack([rows, -rows]),
            b_ub=np.concatenate([given + _HALF_A_UNIT, _HALF_A_UNIT - given]),
            A_eq=np.ones((1, CANDIDATES)),
            b_eq=[1],
        )
        if not found.success:
            raise ValueError(f"MRR, R@1, R@5 {list(measures)}: no ranking has them")
        ends.append(float(sign * found.fun))
    return ends[0], ends[1]


def main() -> None:
    """Print the bounds beside what was published."""
    argparse.ArgumentParser(
        prog="python -m scripts.possible_ndcg", description=__doc__
    ).parse_args()
    models = {}
    for name, (*measures, ndcg) in PUBLISHED.items():
        low, high = possible_ndcg(measures)
        models[name] = {
            **dict(zip(("MRR", "R@1", "R@5"), measures, strict=True)),
            "NDCG@10": ndcg,
            "possible": {"low": round(low, 5), "high": round(high, 5)},
        }
    print(json.dumps({"models": models}, indent=2))


if __name__ == "__main__":
    main()
