import subprocess
import sys

import pytest

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
