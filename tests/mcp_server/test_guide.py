"""What docs/mcp.md shows is what a user can use."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ekphory.mcp_server.memmachine import tools_of

from .connected import KEPT

GUIDE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", blocks("json"))
def test_a_configuration_is_json_that_names_a_server(block):
    read = json.loads(block)
    assert "ekphory" in (read.get("mcpServers") or read["servers"])


def test_every_tool_is_described(memories):
    sets = [tools_of(toolset, memories) for toolset in ("ekphory", "memmachine")]
    names = {tool.name for tools in sets for tool in tools}
    assert {name for name in names if f"`{name}`" not in GUIDE} == set()


@pytest.mark.long
def test_the_program_runs(tmp_path):
    (program,) = blocks("python")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        env=KEPT | {"PATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert "Mara lives in Lisbon" in done.stdout
    assert "untrusted data" in done.stdout
