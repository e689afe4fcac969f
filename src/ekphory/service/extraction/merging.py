"""What is to be merged among the features under one tag, as a language model says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ekphory.errors import ServiceError
from ekphory.service.extraction.command import LONGEST_VALUE, object_schema, usable
from ekphory.service.feature import Feature

_TEXT = {"type": "string"}
_MERGED = object_schema(
    {"feature": _TEXT, "value": _TEXT, "from": {"type": "array", "items": {"type": "integer"}}}
)
MERGING_SCHEMA = object_schema({"merged": {"type": "array", "items": _MERGED}})
"""What an answer follows."""
_LONGEST_MERGED = 4 * LONGEST_VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Merger:
    """One feature that takes the place of several.

    Attributes:
        features: Those that it takes the place of, in order of writing; at least two.
        name, value: What it says.
    """

    features: tuple[Feature, ...]
    name: str
    value: str


def read_mergers(answer: Mapping[str, Any], features: Sequence[Feature]) -> list[Merger]:
    """Read an answer that follows the schema, about features that were numbered from 1.

    Raises:
        ServiceError: It names features that are not there, or one of them twice.
    """
    mergers = [_merger(each, features) for each in answer["merged"]]
    named = [feature.id for merger in mergers for feature in merger.features]
    if len(named) != len(set(named)):
        raise ServiceError("The model merged one feature into two.")
    return mergers


def _merger(given: Mapping[str, Any], features: Sequence[Feature]) -> Merger:
    numbers = sorted(set(given["from"]))
    if len(numbers) < 2 or numbers[0] < 1 or numbers[-1] > len(features):
        raise ServiceError(f"The model merged the features {numbers} of {len(features)}.")
    return Merger(
        features=tuple(features[number - 1] for number in numbers),
        name=usable("feature", given["feature"]),
        value=usable("value", given["value"], longest=_LONGEST_MERGED),
    )
