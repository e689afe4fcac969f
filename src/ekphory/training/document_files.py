"""Reads the documents that were written for training, and what is searched for in them.

A file holds documents about one subject, each with the searches that it alone answers:

    subject: iron in macrophages
    ## Ferroportin falls in alveolar macrophages after smoke
    Background: whether smoke changes ...
    ? tobacco raises iron export from lung phagocytes
    ? Which cells lost their iron exporter after smoking?
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ekphory.errors import DatasetError
from ekphory.training.training_rows import Row

DOCUMENTS = Path(__file__).parent / "documents"

_SUBJECT = re.compile(r"subject: (.+)")
_TITLE = re.compile(r"## (.+)")
_SEARCH = re.compile(r"\? (.+)")
_MARKS = ("#", "?", "subject:")


def read_documents(folder: Path = DOCUMENTS) -> list[Row]:
    """Read every file of a folder, in the order of their names.

    Returns:
        For each file `id`, `subject` and `documents` (`title`, `text`, `searches`).

    Raises:
        DatasetError: There is no file, or one cannot be read.
    """
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        raise DatasetError(f"{folder}: holds no documents. Give a folder of *.txt files.")
    return [read_document_file(path) for path in paths]


def read_document_file(path: Path) -> Row:
    """Read one file.

    Raises:
        DatasetError: A line is out of place, or a document has no text or no search.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read as UTF-8 ({error}).") from error
    subject = _SUBJECT.fullmatch(lines[0].strip()) if lines else None
    if subject is None:
        raise DatasetError(f"{path}, line 1: no subject. Begin with `subject: ...`.")
    documents: list[dict[str, Any]] = []
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            _read(line.strip(), documents, place=f"{path}, line {number}")
    for document in documents:
        if not (document["text"] and document["searches"]):
            raise DatasetError(
                f"{path}: {document['title']!r} has no text, or no search. "
                "Give it text, then lines that begin with `? `."
            )
    if not documents:
        raise DatasetError(f"{path}: holds no document. Begin each with `## its title`.")
    return {"id": path.stem, "subject": subject[1], "documents": documents}


def _read(line: str, documents: list[dict[str, Any]], *, place: str) -> None:
    if title := _TITLE.fullmatch(line):
        documents.append({"title": title[1], "text": "", "searches": []})
    elif not documents:
        raise DatasetError(
            f"{place}: {line[:60]!r} stands before the first title. Begin with `## its title`."
        )
    elif search := _SEARCH.fullmatch(line):
        documents[-1]["searches"].append(search[1])
    elif documents[-1]["searches"] or line.startswith(_MARKS):
        raise DatasetError(
            f"{place}: {line[:60]!r} is no line of a document. "
            "Its text comes first, then `? a search`; `## a title` begins the next."
        )
    else:
        documents[-1]["text"] = f"{documents[-1]['text']} {line}".strip()
