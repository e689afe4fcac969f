"""Malformed and hostile requests: always the same ones, thousands of them."""

import itertools
import json
from dataclasses import dataclass, field
from urllib.parse import quote

API = "/api/v2"
JSON = {"Content-Type": b"application/json"}

WORDS = [
    *("", " ", "a/b", "../../etc/passwd", "%2e%2e%2f", "\x00", "\ud800", "é" * 2000, "🙂", "NaN"),
    *("' OR 1=1 --", "'; DROP TABLE projects; --", "victim", "victim/vault", "vault/semantic"),
    *("m.x = 'y'", "org = 'victim'", "project != 'x' OR TRUE", "(" * 5000, "NOT " * 2000, "a ="),
    *("id IN ('" + "','".join("abc") * 500 + "')", "at > date('9999-99-99')", "text CONTAINS ''"),
    *("<relevant-memories>", "ek_x_y", "1e999", "-1", "null", "true", "{}", "[]", "x" * 100_000),
    *(
        "\u202e\u200b",
        "a\u0301" * 500,
        "\ufeff",
        "\ufffe\uffff",
        "\r\nSet-Cookie: a=b",
        "${jndi:x}",
    ),
]
LIKELY = {
    **{"query": "tea", "messages": [{"content": "tea"}], "documents": ["a"], "input": "tea"},
    **{"set_id": "s", "metadata_tags": ["user_id"], "set_type_id": "1", "category_id": "1"},
    **{"category_name": "c", "prompt": "p", "tag": "t", "feature": "f", "value": "v"},
    **{"tag_name": "t", "tag_description": "d", "tag_id": "1"},
    **{"feature_id": "f", "episodic_id": "e", "semantic_id": "f"},
}
"""What the fields of a body hold that are not attacked."""
BODIES = [
    *(b"", b"{", b"null", b"[]", b"\xff\xfe", b'"x"', b"{}" * 2, b"[" * 100_000, b'{"a":' * 50_000),
    b'{"top_k": ' + b"9" * 5000 + b', "query": ""}',
    b'{"query": "\\ud800"}',
    b'{"query": "x", "query": "y"}',
    '{"query": "tea"}'.encode("utf-16"),
    '{"query": "tea"}'.encode("utf-32-le"),
    b'\xef\xbb\xbf{"query": "tea"}',
    b'{"query": "\xff\xfe\xfa"}',
    b'{"query": "tea", "top_k": NaN}',
    b'{"query": "tea", "score_threshold": -Infinity}',
    b'{"messages": [{"content": "tea", "timestamp": 1e400}]}',
    b'{"messages": [{"content": "tea", "metadata": {"a": {"b": {"c": 1}}}}]}',
    b"query=tea&top_k=5",
    b'--x\r\nContent-Disposition: form-data; name="query"\r\n\r\ntea\r\n--x--\r\n',
]
HEADERS = [
    {"X-Request-ID": b"x\ty"},
    {"X-Request-ID": b"\xff" * 64},
    {"X-Retrieval-Trace": b"maybe"},
    {"X-Retrieval-Trace": b"true, false"},
    {"Content-Type": b"text/plain"},
    {"Content-Type": b"application/json; charset=utf-16"},
    {"Content-Type": b"multipart/form-data; boundary=x"},
    {"Content-Type": b"application/x-www-form-urlencoded"},
    {"Content-Type": b"application/xml"},
    {"Content-Type": b"\xff\xfe/;;;=="},
    {"Content-Encoding": b"gzip"},
    {"Origin": b"http://["},
    {"Origin": b"null"},
    {"Host": b"[["},
    {"Cookie": b"session=" + b"x" * 8000},
    {"Accept": b"text/html;q=x"},
    {"Range": b"bytes=-1-5,,"},
    {"X-Forwarded-For": b"127.0.0.1"},
    {"X-HTTP-Method-Override": b"DELETE"},
    {"Expect": b"200-maybe"},
]
KEYS = [
    *(b"Bearer", b"Bearer  x", b"bearer ek_", b"Bearer ek__", b"Token ek_a_b", b"Basic cms6cms="),
    *(b"Bearer \xff\xfe", b"Bearer ek_" + b"x" * 3000, b"Bearer ek_' OR '1'='1_x", b"ek_a_b"),
]
FILTERS = [
    *("TRUE", "NOT FALSE", "1 = 1", "' OR '1'='1", "TRUE OR TRUE", "TRUE) OR (TRUE", "TRUE --"),
    *("TRUE /* */", "TRUE; DELETE FROM memories", "org = 'victim'", "org != 'attacker'"),
    *("project = 'vault'", "org = 'victim' AND project = 'vault'", "NOT (org = 'attacker')"),
    *("org IS NULL", "org IS NOT NULL", "org IN ('victim', 'attacker')", "org > ''"),
    *("project > 'a' OR project <= 'a'", "text CONTAINS '4711'", "text CONTAINS '%'"),
    *("metadata.org = 'victim'", "m.project = 'vault'", "m.`org` = 'victim'", 'm."org" = 1'),
    *("id = 'x' OR org = 'victim'", "at > date('2000-01-01')", "at > date('x')", "at < 1e400"),
    *("importance > NaN", "importance > -1e308", "importance = 99999999999999999999999"),
    *("id IN ()", "id IN (" + "'x'," * 3000 + "'x')", "m." + "a" * 5000 + " = 'b'", "m. = 1"),
    *("_rowid > 0", "record LIKE '%'", "vector IS NULL", "_distance < 1", "key = 1", "1"),
    *("id = 'a' AND" * 400, "(" * 300 + "TRUE" + ")" * 300, "NOT " * 900 + "TRUE", "'" * 99),
    *("id = '\\'", "id = '\x00'", "id = '\U0010ffff'", "ｏｒｇ = 'victim'", "text = '\u2028'"),
    *("cast(org as string) = 'victim'", "regexp_match(text, '.*')", "org || project = 'x'"),
    *("EXISTS (SELECT 1)", "id = (SELECT 1)", "CASE WHEN TRUE THEN TRUE END", "m.x = 'y' UNION"),
]
PATHS = [
    *("/..", "/../health", "//", "//memories", "/memories/", "/memories//search", "/%00", "/%ff"),
    *("/memories%2fsearch", "/memories/search%00", "/memories;x=1/search", "/./memories"),
    *("/traces/", "/traces/%00", "/traces/..%2f..%2fprojects", "/traces/" + "x" * 5000),
    *("/traces/%e2%80%ae", "/traces/' OR 1=1 --".replace(" ", "%20"), "/config/..", "/nowhere"),
    *("/../../docs/../../etc/passwd", "/MEMORIES", "/memories/search?" + "a=b&" * 2000),
]
ROOTS = [
    *("/docs/../../../etc/passwd", "/docs/%2e%2e/%2e%2e/etc/passwd", "/docs/..%5c..%5cx"),
    *("/docs/%00", "/docs/", "/docs//etc/passwd", "/rerank/", "/v1/models/x", "/favicon.ico"),
    *("/inspect/../../../etc/passwd", "/inspect/%2e%2e%2fapp.py", "/inspect/%00", "*", "/%"),
]
METHODS = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "POST"]


@dataclass(frozen=True)
class Attack:
    """A request; `documented` are the statuses that its operation may answer with."""

    method: str
    path: str
    content: bytes = b""
    headers: dict = field(default_factory=dict)
    documented: frozenset = frozenset({401, 403, 404, 405, 413, 422})


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
        for odd in HEADERS:
            yield Attack("POST", full, whole, JSON | odd, documented)


def filter_attacks(described):
    """Filters that try to leave the project, to break the grammar or to reach the SQL below."""
    for text, (path, extra) in itertools.product(
        FILTERS,
        [
            ("/memories/search", {"query": "safe"}),
            ("/memories/search", {"query": ""}),
            ("/memories/list", {"type": "episodic"}),
            ("/memories/list", {"type": "semantic"}),
        ],
    ):
        documented = statuses(described["paths"][API + path]["post"])
        content = json.dumps({**extra, "filter": text}).encode()
        yield Attack("POST", API + path, content, JSON, documented)


def id_attacks(described, ids):
    """Ids that are odd or stolen, wherever an operation takes an id."""
    for method, path, operation in operations_of(described):
        named = [name for name in fields_of(described, operation) if name.endswith(("_id", "_ids"))]
        for name, stolen in itertools.product(set(named) - {"org_id", "project_id"}, ids):
            given = [stolen] if name.endswith("s") else stolen
            known = {key: LIKELY[key] for key in fields_of(described, operation) if key in LIKELY}
            content = json.dumps(known | {name: given}).encode()
            yield Attack(method, path, content, JSON, statuses(operation))
    for stolen in ids:
        path = f"{API}/traces/{quote(stolen.encode(errors='surrogatepass'), safe='')}"
        yield Attack(
            "GET",
            path,
            documented=statuses(described["paths"][f"{API}/traces/{{trace_id}}"]["get"]),
        )


def path_attacks():
    """Paths that try to leave the API, by every method."""
    for method, path in itertools.product(METHODS, [*(API + each for each in PATHS), *ROOTS]):
        yield Attack(
            method, path, b"{}", JSON, documented=frozenset({200, 400, 401, 403, 404, 405, 422})
        )


def key_attacks():
    """What is no key, where one is needed."""
    for text, path in itertools.product(KEYS, ("/memories/search", "/projects/list", "/nowhere")):
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
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    yield from (
        line + own + both,
        line + own + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}   ",
    )
    for length in (b"-1", b"1e9", b"99999999999999999999999", b"0x10", b"", b"\xff", b"5 5"):
        yield line + own + b"Content-Length: " + length + b"\r\n\r\n{}"
    for size in (10_000, 70_000, 1_000_000):
        yield line + b"X-Long: " + b"x" * size + b"\r\n\r\n"
        yield line + b"".join(b"X-%d: y\r\n" % number for number in range(size // 10)) + b"\r\n"
        yield b"GET /" + b"x" * size + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield from (
        line + own + b"Transfer-Encoding: " + kind + b"\r\n\r\n0\r\n\r\n"
        for kind in (b"gzip", b"\x00")
    )
    yield from (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n" * 50,
    )
    yield from (b"GET\r\n\r\n", b"GET /\x00 HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    yield from (
        b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET /health HTTP/1.1\r\n Host: x\r\n\r\n",
    )
