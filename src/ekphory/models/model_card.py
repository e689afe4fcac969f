"""The model card of a saved embedder: a README.md with the metadata that model hubs read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ekphory.errors import InvalidInput
from ekphory.models.embedder import EmbedderIdentity

CARD_FILE = "README.md"
_TAGS = ("sentence-transformers", "embeddings", "retrieval", "agents", "memory")
_AGED = """
With age in days and type, added where they are given:

```python
embedder.encode(["I prefer tea"], days_ago=3, memory_type="semantic")
```
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardContent:
    """What a card says of a model.

    Attributes:
        identity: Name, revision and dimension.
        knows_age: Whether it has vectors of age and type.
        licence: SPDX identifier; empty where it is not known.
        source: Where the weights come from; likewise.
        results: Measured values by data set and metric.
    """

    identity: EmbedderIdentity
    knows_age: bool
    licence: str = ""
    source: str = ""
    results: Mapping[str, Mapping[str, float]]


def write_model_card(content: CardContent, directory: Path) -> None:
    """Write `README.md`; what stood there is replaced.

    Raises:
        InvalidInput: A result is not a number.
    """
    measured = [value for row in content.results.values() for value in row.values()]
    if any(not isinstance(value, int | float) or not math.isfinite(value) for value in measured):
        problem, remedy = "must be numbers", "Give {data set: {metric: number}}"
        raise InvalidInput("results", dict(content.results), problem, remedy)
    name, body = content.identity.name, _AGED if content.knows_age else ""
    lines = [f"{key}: {json.dumps(value)}" for key, value in _metadata(content).items()]
    text = f"""---
{chr(10).join(lines)}
---

# {name}

A sentence encoder for memories, {content.identity.dimension} numbers a text; \
revision `{content.identity.revision}`. {content.source}

```python
from ekphory.models import Embedder

embedder = Embedder.from_pretrained("path/to/this/folder")
embedder.encode(["I prefer tea"])
```
{body}
## Results

{_table(content.results)}
"""
    (directory / CARD_FILE).write_text(text, encoding="utf-8")


def _metadata(content: CardContent) -> dict[str, Any]:
    """Return the keys of the front matter; each value is JSON, which YAML reads."""
    measured = [
        {
            "task": {"type": "retrieval", "name": "Agent memory retrieval"},
            "dataset": {"type": dataset.lower().replace(" ", "-"), "name": dataset},
            "metrics": [
                {"type": metric.lower(), "value": value, "name": metric}
                for metric, value in row.items()
            ],
        }
        for dataset, row in content.results.items()
    ]
    metrics = {metric.lower() for row in content.results.values() for metric in row}
    return {
        **({"license": content.licence.lower()} if content.licence else {}),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": list(_TAGS),
        **({"metrics": sorted(metrics)} if metrics else {}),
        "model-index": [{"name": content.identity.name, "results": measured}],
    }


def _table(results: Mapping[str, Mapping[str, float]]) -> str:
    if not results:
        return "None were given when it was saved."
    rows = [
        f"| {dataset} | {metric} | {value:.4g} |"
        for dataset, row in results.items()
        for metric, value in row.items()
    ]
    return "\n".join(["| data | metric | value |", "|---|---|---|", *rows])
