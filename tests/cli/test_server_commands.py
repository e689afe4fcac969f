import json
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


@pytest.mark.parametrize(
    ("project", "named"),
    [("", '"project_id": "default"'), ("home", '"project_id": "home"')],
)
def test_what_a_server_says_to_try_is_where_the_command_line_writes(
    capsys, monkeypatch, project, named
):
    monkeypatch.setenv("EKPHORY_PROJECT", project)
    print_listening(OutputOptions(), Listening("http://h:1", "./store", needs_key=False))
    assert capsys.readouterr().out.count(f'{{"org_id": "default", {named}, ') == 2


def test_a_server_says_where_its_inspector_is(capsys):
    print_listening(OutputOptions(), Listening("http://h:1", "./store", needs_key=False))
    assert "look: http://h:1/inspect " in capsys.readouterr().out


def test_what_a_server_with_a_key_says_to_try_names_no_project(capsys):
    print_listening(OutputOptions(), Listening("http://h:1", "./store", needs_key=True))
    assert "project_id" not in capsys.readouterr().out


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
