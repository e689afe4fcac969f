"""The command line in the test's own process, on a store of the test's own."""

import json
import os

import pytest
from typer.testing import CliRunner

from ekphory.cli.app import app, root_command

UNSET = dict.fromkeys(
    f"EKPHORY_{name}"
    for name in (
        *("EMBEDDER", "EMBEDDER_MODEL", "EMBEDDER_API_KEY"),
        *("RERANKER", "RERANKER_PROTOCOL", "RERANKER_MODEL", "RERANKER_API_KEY"),
        *("CHAT_URL", "CHAT_MODEL", "CHAT_API_KEY"),
        "CONFIG",
        *("ORG", "PROJECT", "AGENT", "USER", "SESSION"),
    )
)


class CommandLine:
    """Runs commands in this process; the store lies in a directory of the test."""

    def __init__(self, store):
        self.store = store
        self.environment = UNSET | {"EKPHORY_STORE": str(store), "NO_COLOR": "1"}

    def run(self, *arguments, stdin=None, **environment):
        # Typer's own runner makes the command anew for each run, which takes longer than most.
        with pytest.MonkeyPatch.context() as change:
            change.setattr("typer.testing._get_command", lambda _: root_command())
            return CliRunner().invoke(
                app, list(arguments), input=stdin, env=self.environment | environment
            )

    def json(self, *arguments, **environment):
        """Run with `--json`, and return what it printed, parsed."""
        result = self.run(*arguments, "--json", **environment)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def failure(self, *arguments, stdin=None):
        """Run what must fail, and return the one sentence that it says."""
        result = self.run(*arguments, stdin=stdin)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert "Traceback" not in result.stderr
        (sentence,) = result.stderr.splitlines()
        return sentence

    def process_environment(self):
        """Return the same environment for a process of its own."""
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        return kept | {"EKPHORY_STORE": str(self.store), "NO_COLOR": "1"}
