"""Schemathesis asks whatever the OpenAPI document allows, and what it does not."""

import subprocess
import sys
from pathlib import Path

import pytest

ALSO_OVER_A_CLUSTER = True
SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
CHECKS = (
    *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
    *("response_headers_conformance", "response_schema_conformance"),
)
# The command for longer runs in docs/server.md is this one with more examples and coverage.
BOUNDS = (
    *("--max-examples", "5", "--seed", "1", "--phases", "examples,fuzzing"),
    # How long an answer takes says nothing: the machine may be busy.
    *("--request-timeout", "60"),
)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_answer_is_one_that_the_document_tells_of(server, tmp_path):
    command = [SCHEMATHESIS, "--no-color", "run", f"{server.url}/openapi.json"]
    done = subprocess.run(
        [*command, "--checks", ",".join(CHECKS), *BOUNDS],
        capture_output=True,
        text=True,
        # So that it keeps its examples there.
        cwd=tmp_path,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout
