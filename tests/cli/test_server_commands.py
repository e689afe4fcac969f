import json
import shlex
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from ekphory.cli.options import OutputOptions
from ekphory.cli.server_commands import create_key, list_keys, print_listening, revoke_key
from ekphory.server.serving import Listening


@pytest.fixture
def keys(tmp_path):
    """Runs a command of `ekphory keys` with `--json`."""
    application = typer.Typer()
    for name, function in (("create", create_key), ("list", list_keys), ("revoke", revoke_key)):
        application.command(name)(function)

    def run(*words, code=0):
        given = [*words, "--store", str(tmp_path / "store"), "--json"]
        result = CliRunner().invoke(application, given)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    return run


def test_a_key_is_made_listed_without_itself_and_revoked(keys):
    made = keys("create", "--name", "phone", "--org", "home", "--rights", "read")
    (listed,) = keys("list")["keys"]
    assert (listed["id"], listed["name"], listed["org"]) == (made["id"], "phone", "home")
    assert made["key"].startswith(f"ek_{made['id']}_")
    assert made["key"] not in str(listed)
    keys("revoke", made["id"])
    assert keys("list")["keys"][0]["revoked_at"] is not None


def test_keys_are_in_the_catalog_that_the_configuration_file_names(keys, tmp_path, monkeypatch):
    sessions = tmp_path / "sessions.sqlite3"
    config = tmp_path / "cfg.yml"
    config.write_text(
        "session_manager: {database: mine}\n"
        f"resources: {{databases: {{mine: {{provider: sqlite, config: {{path: {sessions}}}}}}}}}\n"
    )
    monkeypatch.setenv("EKPHORY_CONFIG", str(config))
    made = keys("create")
    assert [each["id"] for each in keys("list", "--catalog", str(sessions))["keys"]] == [made["id"]]
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("revoke", "abc"), "There is no key 'abc'."),
        (("create", "--rights", "all"), "rights='all': no such rights."),
        (("create", "--project", "chat"), "project='chat': belongs to no organisation."),
    ],
)
def test_what_cannot_be_done_is_told(keys, words, said):
    assert keys(*words, code=1)["error"]["message"].startswith(said)


def said_to_try(capsys, *, needs_key):
    """Return what a server tells when it listens, and the bodies of the two calls to try."""
    print_listening(OutputOptions(), Listening("http://h:1", "./store", needs_key=needs_key))
    shown = capsys.readouterr().out
    calls = shown.partition("try it:\n")[2].partition("look: ")[0]
    words = shlex.split(calls)
    return shown, [json.loads(words[n + 1]) for n, word in enumerate(words) if word == "-d"]


@pytest.mark.parametrize("project", ["default", "home", 'Mara\'s "flat" $HOME'])
def test_what_a_server_says_to_try_is_where_the_command_line_writes(capsys, monkeypatch, project):
    monkeypatch.setenv("EKPHORY_PROJECT", "" if project == "default" else project)
    shown, (said, asked) = said_to_try(capsys, needs_key=False)
    place = {"org_id": "default", "project_id": project}
    assert said == place | {"messages": [{"content": "I like pizza"}]}
    assert asked == place | {"query": "What do I like to eat?"}
    assert "look: http://h:1/inspect " in shown


def test_what_a_server_with_a_key_says_to_try_names_no_project(capsys):
    _, bodies = said_to_try(capsys, needs_key=True)
    assert [set(body) for body in bodies] == [{"messages"}, {"query"}]


WITHOUT_THE_SDK = """
import sys
sys.modules["mcp"] = None
from ekphory.cli.app import main
main()
"""


@pytest.mark.parametrize("option", [("--host", "0.0.0.0"), ("--port", "1"), ("--require-key",)])
def test_what_has_no_meaning_over_stdio_is_refused(ekphory, option):
    assert "has no meaning over stdio. Add --transport http" in ekphory.failure("mcp", *option)


@pytest.mark.parametrize("option", [("--tools", "all"), ("--transport", "sse")])
def test_an_unknown_choice_is_a_wrong_command_line(ekphory, option):
    assert ekphory.run("mcp", *option).exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_without_the_extra_it_says_how_to_install_it(ekphory, transport):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_SDK, "mcp", "--transport", transport],
        capture_output=True,
        text=True,
        timeout=60,
        env=ekphory.process_environment(),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'ekphory[mcp]'" in done.stderr


def test_a_resident_process_that_is_switched_off_is_not_announced(ekphory, tmp_path):
    asked = ekphory.run("daemon", "status", EKPHORY_DAEMON="0", XDG_DATA_HOME=str(tmp_path))
    assert asked.stdout == (
        "No resident process is running, and EKPHORY_DAEMON=0 lets no command start one.\n"
    )
