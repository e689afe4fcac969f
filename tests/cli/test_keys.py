import json

import pytest
import typer
from typer.testing import CliRunner

from ekphory.cli.server_commands import create_key, list_keys, revoke_key


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
