"""What OpenTelemetry is told, as its SDK exports it."""

import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.server.running import running_server

from ekphory import InvalidInput, Memory

_EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def tracing():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
    trace.set_tracer_provider(provider)


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "store", preset="fast") as opened:
        opened.add("Mara lives in Lisbon", id="home")
        _EXPORTER.clear()
        yield opened


def exported(*names):
    """The spans that were exported, by name."""
    spans = {span.name.removeprefix("ekphory."): span for span in _EXPORTER.get_finished_spans()}
    return [spans[name] for name in names]


def told(span):
    return {name.removeprefix("ekphory."): value for name, value in span.attributes.items()}


def test_a_search_holds_its_stages_in_names_and_counts(memory):
    memory.search("Where does Mara live?", k=3)
    search, cut = exported("search", "stage cut")
    assert cut.parent.span_id == search.context.span_id
    expected = {"k": 3, "agent_mode": False, "preset": "fast", "hits": 1, "abstained": False}
    assert told(search) == expected
    assert told(cut) == {"status": "ran", "candidates_in": 1, "candidates_out": 1}


def test_writes_hold_their_commits_and_upkeep_has_spans(memory):
    memory.add_many([{"text": "Ben lives in Porto"}, {"text": ""}])
    add, commit = exported("add", "commit")
    assert told(add) == {"added": 1, "skipped": 0, "failed": 1}
    assert (commit.parent.span_id, told(commit)) == (add.context.span_id, {"writes": 1})
    memory.update("home", text="Mara lives in Porto")
    memory.forget("home", purge=True)
    memory.repair()
    _, forget, upkeep = exported("update", "forget", "upkeep")
    assert told(forget) == {"purge": True, "forgotten": 1}
    assert told(upkeep) == {"work": "repair"}


def test_an_error_is_told_by_its_type_alone(memory):
    with pytest.raises(InvalidInput, match="no such pool"):
        memory.search("Where is the secret?", pools=["secret pool"])
    (search,) = exported("search")
    assert search.status.description == "InvalidInput"
    assert "secret" not in search.to_json()


def test_a_request_continues_the_trace_of_its_sender(tmp_path):
    with running_server(tmp_path / "store") as server:
        sender = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
        server.post("/memories", {"messages": [{"content": "tea"}]}, **sender)
    request, add = exported("request", "add")
    assert request.parent.span_id == 0xBBBBBBBBBBBBBBBB
    assert add.context.trace_id == request.context.trace_id
    assert set(told(request).values()) == {"POST", "/api/v2/memories", 200}


@pytest.mark.slow
def test_nothing_is_imported_where_nobody_traces_or_records(tmp_path):
    program = (
        "import ekphory, sys; ekphory.Memory(sys.argv[1]).search('tea');"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'sqlite3'))])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
