"""The released client's own tests, as MemMachine publishes them, ask our server.

They come with the source distribution of `memmachine-client` and are fetched when this runs. Those
of `test_integration_complete.py` need a server; its other files (client, memory, config, command
line, formats, LangGraph) put mocks in a server's place, and so say nothing about one.
"""

import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from xml.etree import ElementTree

import pytest
from tests.server.running import models, running_server

from ekphory.testing import HashEmbedder

SKIPPED_BY_THEMSELVES = {
    # They say: "failing" and "server may overload".
    "test_delete_nonexistent_semantic_memory",
    "test_rapid_memory_additions",
}
TESTS = 79


@pytest.fixture
def client_tests(tmp_path):
    """Fetches the tests of the client that is installed."""
    wanted = f"memmachine-client=={version('memmachine-client')}"
    options = ["--no-deps", "--no-binary", "memmachine-client", "--dest", str(tmp_path)]
    fetched = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", wanted, *options],
        capture_output=True,
        text=True,
        timeout=100,
    )
    if fetched.returncode:
        pytest.skip(f"{wanted} cannot be fetched: {fetched.stderr.strip().splitlines()[-1]}")
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("*/client_tests")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_released_clients_own_tests_pass(client_tests, tmp_path):
    report = tmp_path / "report.xml"
    with running_server(tmp_path / "store", used=models(embedder=HashEmbedder())) as server:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "test_integration_complete.py", "-q"),
                *("-c", os.devnull, "--rootdir", str(client_tests), "-p", "no:cacheprovider"),
                *("-W", "ignore", f"--junitxml={report}"),
            ],
            cwd=client_tests,
            env=os.environ | {"MEMORY_BACKEND_URL": server.url},
            capture_output=True,
            text=True,
        )
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    names = {each.get("name"): each for each in cases}
    failed = [name for name, each in names.items() if each.find("failure") is not None]
    skipped = {name for name, each in names.items() if each.find("skipped") is not None}
    assert failed == [], ran.stdout
    assert skipped == SKIPPED_BY_THEMSELVES
    assert (ran.returncode, len(cases)) == (0, TESTS)
