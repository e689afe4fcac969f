"""Measure what following links between notes is worth in a search.

`python -m scripts.measure_links vault 2wiki_dev` makes a note of each passage, in which each title
of another passage is a link; `… notes docs` takes the notes of a folder and asks what a TOML file
holds. Both are imported as `ekphory import` does, and searched with the default pipeline, without
its stage `follow links` and with it. `--half` takes every other question.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ekphory.importers.documents import DocumentOptions, import_documents
from ekphory.memory import Memory
from ekphory.retrieval.pipeline import Pipeline
from ekphory.retrieval.presets import BALANCED
from ekphory.retrieval.stages.relate import FollowLinks
from ekphory.types import MemoryRecord
from ekphory_lab.evaluation.loaders import load_multihop
from ekphory_lab.evaluation.metrics import measures, paired_test

Questions = list[tuple[str, Mapping[str, int]]]
"""Each with what it needs: notes by their path, or sections, `path # heading`."""
MEASURES = measures(["R@5", "R@20", "AllGold@10", "MRR"])
_QUESTIONS = Path(__file__).with_name("link_questions.toml")
_WORD = re.compile(r"\w+")


def write_vault(source: Path, folder: Path) -> Questions:
    """Write each passage as a note with links, and return the questions."""
    data = load_multihop(source)
    passages = [each for pool in data.pools.values() for each in pool]
    titles: dict[str, list[str]] = defaultdict(list)
    for title in sorted((each.id for each in passages), key=len, reverse=True):
        if (first := _WORD.match(title)) and not set("|[]#").intersection(title):
            titles[first[0]].append(title)
    for passage in passages:
        text = link_titles(passage.text.partition("\n")[2], titles, own=passage.id)
        note = folder / f"{_name(passage.id)}.md"
        note.write_text(f"# {passage.id}\n\n{text}\n", encoding="utf-8")
    needed = ({_name(each): 1 for each in data.qrels[query.key]} for query in data.queries)
    return list(zip((query.text for query in data.queries), needed, strict=True))


def link_titles(text: str, titles: Mapping[str, Sequence[str]], *, own: str) -> str:
    """Return a text in which titles of other notes, given by their first word, are links."""
    parts, end = [], 0
    for word in _WORD.finditer(text):
        if word.start() < end:
            continue
        for title in titles.get(word[0], ()):
            after = word.start() + len(title)
            whole = text.startswith(title, word.start()) and not _WORD.match(text, after)
            if whole and title != own:
                parts += [text[end : word.start()], f"[[{_name(title)}]]"]
                end = after
                break
    return "".join((*parts, text[end:]))


def _name(title: str) -> str:
    return title.replace("/", "-")


def pipelines(shares: Sequence[float]) -> dict[str, Pipeline]:
    """Return the default pipeline without links, and with these shares."""
    found = {"plain": [each for each in BALANCED.stages if not isinstance(each, FollowLinks)]}
    for share in shares:
        found[f"{share:g}"] = [
            FollowLinks(share=share) if isinstance(each, FollowLinks) else each
            for each in BALANCED.stages
        ]
    return {name: Pipeline(name, stages) for name, stages in found.items()}


def compare(memory: Memory, questions: Questions, shares: Sequence[float]) -> dict[str, Any]:
    """Return the measures of each pipeline, and the differences from the first."""
    sections = any(" # " in place for _, needs in questions for place in needs)
    scores = {}
    for name, pipeline in pipelines(shares).items():
        ranked = [
            (needs, dict.fromkeys(_place(hit.memory, sections=sections) for hit in hits))
            for text, needs in questions
            for hits in [memory.search(text, k=100, preset=pipeline)]
        ]
        rows = [[m.score(needs, list(found)) for m in MEASURES] for needs, found in ranked]
        scores[name] = np.array(rows)
    plain = scores["plain"]
    return {
        name: {
            measure.name: {
                "mean": round(float(found[:, place].mean()), 3),
                **asdict(paired_test(plain[:, place], found[:, place])),
            }
            for place, measure in enumerate(MEASURES)
        }
        for name, found in scores.items()
    }


def _place(record: MemoryRecord, *, sections: bool) -> str:
    path = (record.path or "").removesuffix(".md")
    return f"{path} # {(record.heading or '').rpartition(' > ')[2]}" if sections else path


def main(arguments: Sequence[str] | None = None) -> None:
    """Import, ask, and print one JSON document: questions of one place, and of several."""
    parser = argparse.ArgumentParser(prog="python -m scripts.measure_links", description=__doc__)
    parser.add_argument("kind", choices=("vault", "notes"))
    parser.add_argument("folder", type=Path, help="of 2Wiki, or of notes")
    parser.add_argument("--questions", type=Path, default=_QUESTIONS, help="about notes")
    parser.add_argument("--share", type=float, action="append", help="else the default")
    parser.add_argument("--half", choices=("first", "second", "both"), default="both")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place, Memory(f"{place}/store") as memory:
        folder: Path = asked.folder
        if asked.kind == "vault":
            folder = Path(place) / "vault"
            folder.mkdir()
            questions = write_vault(asked.folder, folder)
        else:
            rows = tomllib.loads(asked.questions.read_text(encoding="utf-8"))["questions"]
            questions = [(row["ask"], dict.fromkeys(row["needs"], 1)) for row in rows]
        import_documents(memory, folder, options=DocumentOptions(name="notes"))
        if asked.half != "both":
            questions = questions[asked.half == "second" :: 2]
        groups = {
            "one": [each for each in questions if len(each[1]) == 1],
            "several": [each for each in questions if len(each[1]) > 1],
        }
        shares = asked.share or [FollowLinks().share]
        found = {
            name: {"questions": len(group)} | compare(memory, group, shares)
            for name, group in groups.items()
            if group
        }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
