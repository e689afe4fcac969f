"""Flip bytes of a store's files: whatever is read must be right, or told by a StoreError."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from ekphory.errors import StoreError
from ekphory.memory import Memory
from ekphory.testing import HashEmbedder

_MEMORIES = 40


def run(*, rounds: int) -> dict[str, float]:
    """Flip one byte of one file in each round, and read everything."""
    drawn = random.Random(0)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="ekphory-damage-") as folder:
        whole = Path(folder) / "whole"
        texts = _written(whole)
        files = sorted(path for path in whole.rglob("*") if path.is_file() and path.stat().st_size)
        for number in range(rounds):
            damaged = Path(folder) / str(number)
            shutil.copytree(whole, damaged)
            _flip(damaged / drawn.choice(files).relative_to(whole), drawn)
            counts[_outcome(damaged, texts)] += 1
            shutil.rmtree(damaged)
    counts["rounds"] = rounds
    names = ("rounds", "told", "verified", "harmless", "other_error_violations")
    names += ("unnoticed_violations",)
    return {f"damage.{name}": float(counts[name]) for name in names}


def _written(store: Path) -> dict[str, str]:
    texts = {f"id-{number}": f"note {number} about the garden" for number in range(_MEMORIES)}
    with Memory(store, embedder=HashEmbedder()) as memory:
        for name, text in list(texts.items())[: _MEMORIES // 2]:
            memory.add(text, id=name)
        memory.add_many(
            {"id": name, "text": text} for name, text in list(texts.items())[_MEMORIES // 2 :]
        )
        memory.forget("id-0")
    del texts["id-0"]
    return texts


def _flip(path: Path, drawn: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[drawn.randrange(len(content))] ^= 1 << drawn.randrange(8)
    path.write_bytes(content)


def _outcome(store: Path, texts: dict[str, str]) -> str:
    try:
        with Memory(store, embedder=HashEmbedder()) as memory:
            found = {record.id: record.text for record in memory.list(limit=1_000)}
            memory.search("garden")
            damaged = bool(memory.verify().damage)
    except StoreError:
        return "told"
    except Exception as error:  # noqa: BLE001  whatever else comes is what this looks for
        print(f"  {type(error).__name__}: {error}", flush=True)
        return "other_error_violations"
    if damaged:
        return "verified"
    return "harmless" if found == texts else "unnoticed_violations"
