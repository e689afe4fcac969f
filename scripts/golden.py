"""Record what the product does, so that a move of its code can be compared with what it did before.

    python scripts/golden.py stores DATA FOLDER      write the stores that are searched, once
    python scripts/golden.py record FOLDER FILE      search them, write and export; a JSON file
    python scripts/golden.py compare BEFORE AFTER    tell every difference; exit status 1 if any

Scores are compared to 1e-6; names by the table of `RENAMED`.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import random
import re
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

try:
    NAME = importlib.import_module("ekphory").__name__
except ImportError:
    NAME = importlib.import_module("recollect").__name__
PRODUCT = importlib.import_module(NAME)
Memory = PRODUCT.Memory

NOW = "2026-01-01T12:00:00Z"
SETS = ("locomo_dev", "realtalk", "scifact")
SEARCHES = {"balanced": 100, "fast": 30, "accurate": 25, "memory_spark": 10, "agent": 20}
RENAMED = (
    ("RECOLLECT", "EKPHORY"),
    ("Recollect", "Ekphory"),
    ("recollect", "ekphory"),
    (" a ekphory", " an ekphory"),
)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["stores", data, folder]:
            write_stores(Path(data), Path(folder))
        case ["record", folder, file]:
            Path(file).write_text(json.dumps(recorded(Path(folder)), indent=1), encoding="utf-8")
        case ["compare", before, after]:
            return compared(*(json.loads(Path(each).read_text()) for each in (before, after)))
        case _:
            print(__doc__)
            return 2
    return 0


def write_stores(data: Path, folder: Path) -> None:
    for name in SETS:
        queries = [json.loads(line) for line in (data / name / "queries.jsonl").open()]
        passages = list(_passages(data / name))
        for pool in sorted({each["project"] for each in passages}):
            with Memory(folder / name, project=pool) as memory:
                mine = [each for each in passages if each["project"] == pool]
                memory.add_many({k: v for k, v in each.items() if k != "project"} for each in mine)
        chosen = random.Random(7).sample(queries, 100)
        asked = [{"pool": q.get("pool", "corpus"), "text": q["text"]} for q in chosen]
        (folder / f"{name}.queries.json").write_text(json.dumps(asked))


def _passages(folder: Path) -> Any:
    if (folder / "corpus.jsonl").exists():
        for line in (folder / "corpus.jsonl").open():
            row = json.loads(line)
            text = f"{row['title']} {row['text']}"
            yield {"id": row["_id"], "text": text, "project": "corpus", "at": NOW}
        return
    for line in gzip.open(folder / "corpus.jsonl.gz", "rt"):
        row = json.loads(line)
        yield {
            "id": row["id"],
            "text": row["text"],
            "project": row["pool"],
            "producer": row.get("speaker") or None,
            "at": row.get("at") or row.get("time") or NOW,
            "session": None if row.get("session") is None else str(row["session"]),
            "sequence": row.get("sequence"),
        }


def recorded(folder: Path) -> dict[str, Any]:
    return {
        "searches": [each for name in SETS for each in _searches(folder, name)],
        "writes": _writes(),
        "help": _help(),
        "openapi": _openapi(),
        "tools": _tools(),
        "wire": _wire(),
    }


def _searches(folder: Path, name: str) -> Any:
    asked = json.loads((folder / f"{name}.queries.json").read_text())
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder / name, Path(copy) / "store")
        for way, number in SEARCHES.items():
            for query in asked[:number]:
                options = {"agent_mode": True} if way == "agent" else {"preset": way}
                with _opened(Path(copy) / "store", query["pool"]) as memory:
                    yield {
                        "set": name,
                        "way": way,
                        "query": query["text"],
                        **_plain(memory.search(query["text"], k=20, now=NOW, **options)),
                    }
        _OPEN.clear()


_OPEN: dict[str, Any] = {}


class _opened:
    """One handle a pool, kept open."""

    def __init__(self, path: Path, pool: str) -> None:
        key = f"{path}:{pool}"
        if key not in _OPEN:
            _OPEN[key] = Memory(path, project=pool)
        self.memory = _OPEN[key]

    def __enter__(self) -> Any:
        return self.memory

    def __exit__(self, *_: object) -> None:
        pass


def _plain(result: Any) -> dict[str, Any]:
    trace = result.retrieval_trace
    return {
        "ids": [hit.id for hit in result.hits],
        "scores": [hit.score for hit in result.hits],
        "order": result.order,
        "stages": [
            [s.number, s.name, s.status, s.reason, s.candidates_in, s.candidates_out]
            for s in result.trace.stages
        ],
        "prompt": result.to_prompt(600, now=NOW),
        "hops": None if trace is None else _timeless(trace.to_dict()),
    }


def _timeless(value: Any) -> Any:
    """Leave out times that a clock measured."""
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if not _measured(k)}
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    return value


def _measured(key: str) -> bool:
    return bool(
        re.search(r"(milli|second|_ms|^ms$|duration|latency|started|^at$|time|^id$|_id$)", key)
    )


def _writes() -> dict[str, Any]:
    start = datetime(2025, 5, 1, 9, tzinfo=UTC)
    with tempfile.TemporaryDirectory() as folder:
        with Memory(Path(folder) / "s", project="p", user="mara") as memory:
            reports = [
                memory.add(
                    f"Note {n}: the {thing} was moved to shelf {n % 5}.",
                    id=f"m{n}",
                    at=(start + timedelta(hours=n)).isoformat(),
                    session=f"s{n // 6}",
                    sequence=n,
                    metadata={"n": n, "even": n % 2 == 0, "thing": thing},
                )
                for n, thing in enumerate(("lamp", "vase", "clock", "kettle") * 6)
            ]
            memory.update("m3", text="Note 3: the kettle broke.")
            memory.forget("m5")
            memory.forget("m6", purge=True)
            filters = ("n > 10", "metadata.n > 10", "session = 's1'", "metadata.thing IN ('lamp')")
            found = {each: _filtered(memory, each) for each in filters}
            shown = [_record(record) for record in memory.list(limit=100)]
            history = [_record(record) for record in memory.history("m3")]
            asked = ("where is the kettle?", "what happened on 2 May 2025?", "")
            searches = [_plain(memory.search(query, now=NOW)) for query in asked]
            stored = {p.suffix or p.name for p in Path(folder).rglob("*") if p.is_file()}
            exported = _export(memory, Path(folder))
        return {
            "reports": [[r.added, r.skipped, list(r.ids)] for r in reports],
            "filters": found,
            "list": shown,
            "history": history,
            "searches": searches,
            "stored": sorted(stored),
            "export": exported,
        }


def _filtered(memory: Any, condition: str) -> Any:
    try:
        return [hit.id for hit in memory.search("shelf", filter=condition, now=NOW, k=50)]
    except PRODUCT.errors.InvalidInput as error:
        return str(error)


def _record(record: Any) -> str:
    return re.sub(r"(ingested_at|created|updated|written)\w*=datetime[^)]*\)", "", repr(record))


def _export(memory: Any, folder: Path) -> list[str]:
    typer = importlib.import_module("typer.testing")
    app = importlib.import_module(f"{NAME}.cli.app")
    file = folder / "e.jsonl"
    memory.close()
    place = ["--store", str(folder / "s"), "--project", "p", "--user", "mara"]
    result = typer.CliRunner().invoke(app.app, ["export", "--target", str(file), *place])
    if result.exit_code:
        raise RuntimeError(result.output)
    lines = file.read_text().splitlines()
    return [
        re.sub(r'"(ingested_at|made_at|at_ms|sum|sha256|version|exported_at)": ?[^,}]*', "", line)
        for line in lines
    ]


def _help() -> dict[str, str]:
    typer = importlib.import_module("typer.testing")
    main = importlib.import_module("typer.main")
    app = importlib.import_module(f"{NAME}.cli.app").app
    runner = typer.CliRunner(env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"})
    found: dict[str, str] = {}

    def walk(command: Any, path: tuple[str, ...]) -> None:
        found[" ".join(path)] = runner.invoke(app, [*path, "--help"]).output
        for name, each in getattr(command, "commands", {}).items():
            walk(each, (*path, name))

    walk(main.get_command(app), ())
    return found


HOMES = {
    "create_app": ("server.app",),
    "ServerOptions": ("server.options",),
    "MemoryService": ("service.memory_service",),
    "ServiceModels": ("service.models", "service.handles"),
    "load_embedder": ("models.loading",),
    "bundled_reranker": ("models.bundled_reranker", "models.reranker"),
    "describe": ("mcp_server.protocol",),
    "tools_of": ("mcp_server.toolsets", "mcp_server.memmachine"),
}
"""Where each thing is, before and after the moves."""


def _the(name: str) -> Any:
    for home in HOMES[name]:
        if importlib.util.find_spec(f"{NAME}.{home}"):
            return getattr(importlib.import_module(f"{NAME}.{home}"), name)
    raise LookupError(name)


def _served(folder: str) -> Any:
    models = _the("ServiceModels")(
        embedder=_the("load_embedder")(), reranker=_the("bundled_reranker")()
    )
    service = _the("MemoryService")(Path(folder), models=models)
    return service, _the("create_app")(service, _the("ServerOptions")(store=folder))


def _openapi() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        service, app = _served(folder)
        try:
            return app.openapi()
        finally:
            service.close()


def _tools() -> Any:
    return [_the("describe")(tool).model_dump(mode="json") for tool in _the("tools_of")(NAME, None)]


def _wire() -> Any:
    """What a session of requests is answered."""
    client = importlib.import_module("starlette.testclient")
    place = {"org_id": "o", "project_id": "p"}
    texts = ("I moved to Lisbon.", "I like tea.", "My dog is called Rex.")
    calls = (
        ("/api/v2/projects", place),
        ("/api/v2/memories", place | {"messages": [{"content": text} for text in texts]}),
        ("/api/v2/memories/search", place | {"query": "where do I live?", "top_k": 2}),
        ("/api/v2/memories/search", place | {"query": 3}),
        ("/api/v2/memories/list", place),
        ("/rerank", {"query": "tea?", "documents": list(texts), "model": "x"}),
        ("/v1/embeddings", {"input": "tea", "model": "x"}),
    )
    with tempfile.TemporaryDirectory() as folder:
        _, app = _served(folder)
        with client.TestClient(app, client=("127.0.0.1", 9), base_url="http://127.0.0.1") as http:
            return [
                [path, answer.status_code, _stable(answer.json())]
                for path, body in calls
                for answer in [http.post(path, json=body)]
            ]


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _stable(v) for k, v in value.items() if not _unstable(k)}
    if isinstance(value, list):
        return [_stable(each) for each in value]
    return value


def _unstable(key: str) -> bool:
    return _measured(key) or key in {"uid", "created_at", "memory_uuid", "request_id", "ids"}


def compared(before: Any, after: Any) -> int:
    differences = list(_differences(_renamed(before), _renamed(after), ""))
    for each in differences[:200]:
        print(each)
    print(f"{len(differences)} differences")
    return 1 if differences else 0


def _renamed(value: Any) -> Any:
    if isinstance(value, str):
        for old, new in RENAMED:
            value = value.replace(old, new)
        value = re.sub(r"\b2026-1[12]-\d\dT[\d:.]+|\b[0-9a-f]{16,}\b", "", value)
        value = re.sub(r"datetime.datetime\(2026, 1[12][^)]*\)", "", value)
        value = re.sub(r"predicted=frozenset\(.*?\)", "", value)
        value = re.sub(r"milliseconds=[\d.]+|session_id=\w+|\b\d+ ms\b", "", value)
        return " ".join(value.split())
    if isinstance(value, dict):
        return {_renamed(k): _renamed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    return value


def _differences(before: Any, after: Any, path: str) -> Any:
    if isinstance(before, float) or isinstance(after, float):
        if not isinstance(before, int | float) or not isinstance(after, int | float):
            yield f"{path}: {before!r} -> {after!r}"
        elif abs(before - after) > 1e-6:
            yield f"{path}: {before!r} -> {after!r}"
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            if key not in before or key not in after:
                yield f"{path}.{key}: only {'after' if key in after else 'before'}"
            else:
                yield from _differences(before[key], after[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{path}[{number}]")
    elif isinstance(before, int) and isinstance(after, int) and min(before, after) > 10**9:
        pass  # a time
    elif before != after:
        yield f"{path}: {str(before)[:300]!r} -> {str(after)[:300]!r}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
