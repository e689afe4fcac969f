"""Malformed and hostile requests: always the same ones, thousands of them."""

import itertools
import json
from dataclasses import dataclass, field
from urllib.parse import quote

from tests.cases import read_tables, spell

API = "/api/v2"
JSON = {"Content-Type": b"application/json"}

TABLES = read_tables(__file__)
WORDS = [*map(spell, TABLES["words"])]
WORDS.insert(6, "\ud800")  # TOML cannot hold it


def as_bytes(name):
    """Return a table of what is sent as bytes, each character one."""
    return [spell(each).encode("latin-1") for each in TABLES[name]]


BODIES = [
    *as_bytes("bodies"),
    *('{"query": "tea"}'.encode(encoding) for encoding in ("utf-16", "utf-32-le")),
]


REFUSALS = frozenset({401, 403, 404, 405, 413, 422})


@dataclass(frozen=True)
class Attack:
    """A request; `documented` are the statuses that its operation may answer with."""

    method: str
    path: str
    content: bytes = b""
    headers: dict = field(default_factory=dict)
    documented: frozenset = REFUSALS


def operations_of(described):
    return [
        (method.upper(), path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]


def statuses(operation):
    return frozenset(int(status) for status in operation["responses"])


def fields_of(described, operation):
    """The names in an operation's body."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    reference = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return list(described["components"]["schemas"].get(reference, {}).get("properties", {}))


def body_attacks(described):
    """Bodies that no parser can read or that hold what they must not, and odd headers."""
    for path, whole in (("/memories", b'{"messages": [{"content": "tea"}]}'), ("/rerank", b"{}")):
        full = path if path == "/rerank" else API + path
        documented = statuses(described["paths"][full]["post"])
        for content in BODIES:
            yield Attack("POST", full, content, JSON, documented)
        for name, value in TABLES["headers"]:
            odd = {name: spell(value).encode("latin-1")}
            yield Attack("POST", full, whole, JSON | odd, documented)


def filter_attacks(described):
    """Filters that try to leave the project, to break the grammar or to reach the SQL below."""
    searches = [("/memories/search", "query", text) for text in ("safe", "")]
    lists = [("/memories/list", "type", kind) for kind in ("episodic", "semantic")]
    for text, (path, name, value) in itertools.product(TABLES["filters"], searches + lists):
        documented = statuses(described["paths"][API + path]["post"])
        content = json.dumps({name: value, "filter": spell(text)}).encode()
        yield Attack("POST", API + path, content, JSON, documented)


def id_attacks(described, ids):
    """Ids that are odd or stolen, wherever an operation takes an id."""
    for method, path, operation in operations_of(described):
        named = [name for name in fields_of(described, operation) if name.endswith(("_id", "_ids"))]
        for name, stolen in itertools.product(set(named) - {"org_id", "project_id"}, ids):
            given = [stolen] if name.endswith("s") else stolen
            fields = fields_of(described, operation)
            known = {key: TABLES["likely"][key] for key in fields if key in TABLES["likely"]}
            content = json.dumps(known | {name: given}).encode()
            yield Attack(method, path, content, JSON, statuses(operation))
    for stolen in ids:
        path = f"{API}/traces/{quote(stolen.encode(errors='surrogatepass'), safe='')}"
        reading = described["paths"][f"{API}/traces/{{trace_id}}"]["get"]
        yield Attack("GET", path, documented=statuses(reading))


def path_attacks():
    """Paths that try to leave the API, by every method."""
    documented = REFUSALS - {413} | {200, 400}
    within, roots = (list(map(spell, TABLES[name])) for name in ("paths", "roots"))
    paths = [*(API + each for each in within), *roots]
    for method, path in itertools.product(TABLES["methods"], paths):
        yield Attack(method, path, b"{}", JSON, documented)


def key_attacks():
    """What is not a key, where one is needed."""
    paths = ("/memories/search", "/projects/list", "/nowhere")
    for text, path in itertools.product(as_bytes("keys"), paths):
        headers = JSON | {"Authorization": text}
        yield Attack("POST", API + path, b"{}", headers, documented=frozenset({401}))


def raw_attacks(key):
    """What no HTTP library would send: cut, contradictory, endless."""
    line = b"POST /api/v2/memories HTTP/1.1\r\nHost: localhost\r\n"
    own = b"Authorization: Bearer " + key.encode() + b"\r\nContent-Type: application/json\r\n"
    whole = b'{"messages": [{"content": "never whole"}]}'
    for cut in range(0, len(whole), 2):
        length = b"Content-Length: %d\r\n\r\n" % (len(whole) + 1)
        yield line + own + length + whole[:cut]
    for cut in range(4, len(whole), 8):
        chunk = b"%x\r\n%b\r\n" % (cut, whole[:cut])
        yield line + own + b"Transfer-Encoding: chunked\r\n\r\n" + chunk
    yield from (line + own + head for head in as_bytes("heads"))
    for size in (10_000, 70_000, 1_000_000):
        yield line + b"X-Long: " + b"x" * size + b"\r\n\r\n"
        yield line + b"".join(b"X-%d: y\r\n" % number for number in range(size // 10)) + b"\r\n"
        yield b"GET /" + b"x" * size + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield from as_bytes("requests")
