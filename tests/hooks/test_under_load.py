"""Hooks of several sessions at once, while the process that captures for them is killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_half_a_minute_of_hooks_loses_nothing_when_the_process_is_killed():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.hooks_under_load", "--minutes", "0.5"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["not_captured"], told["lost"], told["doubled"]) == (0, 0, 0)
    assert told["kills"] > 0
    assert told["messages"] > 0
    assert told["kept_in_one_go"] > 0
