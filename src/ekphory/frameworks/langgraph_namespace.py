"""Namespaces of LangGraph as paths, and the conditions that list them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ekphory.errors import InvalidInput
from ekphory.scope import LONGEST_NAME

if TYPE_CHECKING:
    from langgraph.store.base import MatchCondition

Namespace = tuple[str, ...]

END_OF_LABEL = "/"
"""Stands behind every label of a path."""
_ESCAPED = re.compile("[%/\\x00\\ud800-\\udfff]")


def namespace_path(namespace: Sequence[str]) -> str:
    """Give the namespace as one text: a namespace begins with another if its path does.

    Every label ends with a slash, and what a label has of its own is escaped, so no two namespaces
    have one path: `("a.b",)` is `a.b/`, `("a", "b")` is `a/b/`, and `("a/b",)` is `a%2Fb/`.

    Raises:
        InvalidInput: A label is no text, or all of them are too long.
    """
    labels = checked_labels(namespace)
    path = "".join(_ESCAPED.sub(_escape, label) + END_OF_LABEL for label in labels)
    if len(path) > LONGEST_NAME:
        raise InvalidInput("namespace", namespace, "is too long", f"Give up to {LONGEST_NAME:,}")
    return path


def checked_labels(namespace: Sequence[str]) -> Sequence[str]:
    """Give the namespace back if it is one.

    Raises:
        InvalidInput: It is no tuple, or a label is no text.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        raise InvalidInput("namespace", namespace, "is no tuple", 'Give ("users", "mara")')
    for label in namespace:
        if not isinstance(label, str):
            raise InvalidInput("namespace", namespace, f"{label!r} is no text", "Give texts")
    return namespace


def fixed_labels(path: Sequence[str]) -> Sequence[str]:
    """Give the labels before the first wildcard."""
    end = path.index("*") if "*" in path else len(path)
    return path[:end]


def fits(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins or ends as the condition says; `*` stands for any one label.

    Raises:
        InvalidInput: The condition is of an unknown kind.
    """
    wanted = condition.path
    places = {"prefix": 0, "suffix": len(namespace) - len(wanted)}
    if condition.match_type not in places:
        raise InvalidInput(
            "match_type", condition.match_type, "is unknown", f"Choose from {', '.join(places)}"
        )
    if len(wanted) > len(namespace):
        return False
    part = namespace[places[condition.match_type] :]
    return all(name in ("*", label) for name, label in zip(wanted, part, strict=False))


def _escape(found: re.Match[str]) -> str:
    return f"%{ord(found.group()):02X}"
