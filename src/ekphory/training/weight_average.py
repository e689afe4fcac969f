"""Weights between the base model's and the trained ones: less forgotten, most of it learned.

Needs torch.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from ekphory.errors import InvalidInput
from ekphory.training.agent_encoder import AgentEncoder

_AVERAGED = ("encoder", "projection")


def averaged(base: AgentEncoder, trained: AgentEncoder, *, share: float) -> AgentEncoder:
    """Give `(1 - share) * base + share * trained` for encoder and projection.

    Source: Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022 (WiSE-FT). Age,
    type and heads are the trained ones.

    Raises:
        InvalidInput: The share is not within 0 and 1.
    """
    if not 0 <= share <= 1:
        raise InvalidInput("share", share, "is not within 0 and 1", "Give 1 for the trained ones.")
    parts = deepcopy(trained.parts)
    for name in _AVERAGED:
        first, second = base.parts[name].state_dict(), trained.parts[name].state_dict()
        mixed = {
            key: first[key].lerp(value, share) if value.is_floating_point() else value
            for key, value in second.items()
        }
        parts[name].load_state_dict(mixed)
    return replace(trained, parts=parts)
