"""Python, the command line, REST and MCP do the same and give the same."""

from contextlib import ExitStack, contextmanager

import pytest

from .command_line_driver import CommandLineDriver
from .mcp_driver import McpDriver
from .python_driver import PythonChatDriver, PythonDriver, RemoteDriver
from .rest_driver import RestDriver
from .scenario import everyday, whole

pytestmark = pytest.mark.slow


@contextmanager
def users_of(driver, store):
    """Gives what connects users to one store."""
    with ExitStack() as opened:

        def connect(user):
            one = driver(store, user)
            opened.callback(one.close)
            return one

        yield connect


def played(scenario, driver, store):
    with users_of(driver, store) as connect:
        return scenario(connect)


@pytest.fixture(scope="module")
def in_python(tmp_path_factory):
    """What each scenario gives in Python."""
    folder = tmp_path_factory.mktemp("python")
    return {
        scenario: played(scenario, PythonDriver, folder / scenario.__name__)
        for scenario in (everyday, whole)
    }


def same(seen, expected):
    """Compare step by step; scores as numbers, all else to the letter."""
    assert list(seen) == list(expected)
    for step, found in expected.items():
        scored = isinstance(found, list) and found and len(found[0]) == 3
        if not scored:
            assert seen[step] == found, step
            continue
        assert [hit[:2] for hit in seen[step]] == [hit[:2] for hit in found], step
        scores = [hit[2] for hit in found]
        assert [hit[2] for hit in seen[step]] == pytest.approx(scores, abs=1e-6), step


@pytest.mark.parametrize("driver", [CommandLineDriver, McpDriver, RemoteDriver])
def test_command_line_mcp_and_python_over_a_server_do_what_python_does(in_python, tmp_path, driver):
    same(played(everyday, driver, tmp_path / "store"), in_python[everyday])


def test_rest_does_what_python_does_with_the_messages_of_a_chat(tmp_path):
    expected = played(everyday, PythonChatDriver, tmp_path / "python")
    same(played(everyday, RestDriver, tmp_path / "rest"), expected)


@pytest.mark.parametrize("driver", [CommandLineDriver, McpDriver, RemoteDriver])
def test_what_rest_has_no_words_for_is_the_same_elsewhere(in_python, tmp_path, driver):
    same(played(whole, driver, tmp_path / "store"), in_python[whole])


def test_python_gives_what_the_scenario_means(in_python):
    seen = in_python[everyday]
    assert seen["found"][0][0] == "tea"
    assert [name for name, _ in seen["listed"]] == ["tea", "coffee", "lisbon", "oven"]
    assert [name for name, _, _ in seen["newest first"]] == ["oven", "lisbon"]
    assert [name for name, _ in seen["listed by ben"]] == ["secret"]
    assert [name for name, _ in seen["listed after forgetting"]] == ["coffee", "lisbon", "oven"]
    assert in_python[whole]["read after changing"]["text"] == "I drink coffee all day"


def test_what_one_surface_writes_another_reads(tmp_path):
    store = tmp_path / "store"
    with users_of(PythonDriver, store) as connect:
        connect("mara").add(name="tea", text="I drink tea", at="2026-03-01T08:00:00Z")
    for driver in (CommandLineDriver, McpDriver, RemoteDriver):
        with users_of(driver, store) as connect:
            assert connect("mara").list() == [("tea", "I drink tea")]
            assert connect("ben").list() == []
