"""Questions whose labels are known to be wrong: figures are also reported without them.

The file is a JSON array of objects with `question_id`, such as `locomo_0_qa17`, and `question`, as
the audit of LoCoMo by dial481 (https://github.com/dial481/locomo-audit) publishes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ekphory.errors import DatasetError, shorten
from ekphory.evaluation.datasets import Dataset

_QUESTION_ID = re.compile(r"locomo_\d+_qa(\d+)")


def mark_label_errors(dataset: Dataset, file: Path) -> Dataset:
    """Mark the queries that a file lists as wrongly labelled.

    A question is known by its position in its conversation together with its text, so a file about
    all conversations also serves a set with some of them. What it lists and the set lacks is left
    out.

    Args:
        dataset: The set; its query ids are positions, as LoCoMo's loader gives them.
        file: The list of wrong labels.

    Raises:
        DatasetError: The file is missing or malformed, or is about none or all of the queries.
    """
    listed = set(_questions(file))
    wrong = {query.key for query in dataset.queries if (query.id, query.text) in listed}
    if not wrong or len(wrong) == len(dataset.queries):
        raise DatasetError(
            f"{file.name}: of {len(listed)} questions listed, {len(wrong)} are among the "
            f"{len(dataset.queries)} queries of {dataset.name}. Give the list that belongs to it."
        )
    return replace(dataset, label_errors=frozenset(wrong))


def _questions(file: Path) -> Iterator[tuple[str, str]]:
    for position, entry in enumerate(_entries(file)):
        named = entry.get("question_id") if isinstance(entry, dict) else None
        match = _QUESTION_ID.fullmatch(named) if isinstance(named, str) else None
        text = entry.get("question") if isinstance(entry, dict) else None
        if match is None or not isinstance(text, str):
            raise DatasetError(
                f"{file.name}: entry {position} is {shorten(entry)}, without a question_id such as "
                "'locomo_0_qa17' and a question. Fetch the file again, or correct this entry."
            )
        yield match[1], text


def _entries(file: Path) -> list[object]:
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise DatasetError(f"{file}: no such file. Give the list of wrong labels.") from error
    except ValueError as error:
        raise DatasetError(f"{file.name}: not JSON ({error}). Fetch the file again.") from error
    if not isinstance(content, list):
        raise DatasetError(f"{file.name}: not a JSON array. Give the list of wrong labels.")
    return content
