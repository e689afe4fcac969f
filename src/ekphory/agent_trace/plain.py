"""Values as JSON has them."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:  # noqa: ANN401  whatever a dataclass holds
    """Give lists in the place of tuples, all the way down."""
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value
