"""What the Dockerfile, the compose file and the pages for self-hosters say is what there is."""

import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from tests.server.running import running_server

from ekphory.cluster.front import ShardMetrics
from ekphory.config import PREFIX, Settings
from ekphory.server.request_log import Metrics

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE_FILE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
MANIFESTS = (ROOT / "deploy" / "kuberay" / "ekphory.yaml").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load(COMPOSE_FILE)
SERVER = COMPOSE["services"]["server"]
DOCS = ROOT / "docs"
PAGES = {
    name: (DOCS / name).read_text("utf-8")
    for name in ("self-hosting.md", "server.md", "runbooks.md", "scale.md")
}
OWN_VARIABLES = {"EKPHORY_PORT"}
"""Those of the compose file itself."""
ENDS = {"|", "&&", ">", ">>"}


def instructions(name):
    """The Dockerfile's instructions of a kind, in order, each as one line."""
    whole = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^(?:HEALTHCHECK .*)?\b{name} +(.+)$", whole, re.MULTILINE)


def command_lines(page):
    """The arguments of every call of `ekphory` in a page's code."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        if not re.search(r"\bekphory [a-z]", line):
            continue
        words = shlex.split(line.removeprefix("ExecStart="), comments=True)
        for place, word in enumerate(words[:-1]):
            if Path(word).name == "ekphory" and re.match("[a-z]", words[place + 1]):
                yield list(itertools.takewhile(lambda word: word not in ENDS, words[place + 1 :]))


COMMAND_LINES = [
    json.loads(instructions("CMD")[-1]),
    *(words for page in PAGES.values() for words in command_lines(page)),
]


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMAND_LINES, ids=" ".join)
def test_every_command_line_can_be_read(ekphory, words):
    assert ekphory.run(*words, "--help").exit_code == 0


def test_the_pages_show_how_to_serve_make_keys_and_back_up():
    assert {words[0] for words in COMMAND_LINES} >= {"serve", "keys", "backup"}


@pytest.mark.parametrize("text", [DOCKERFILE, COMPOSE_FILE, MANIFESTS, *PAGES.values()])
def test_every_variable_is_one_that_is_read(text):
    known = {PREFIX + setting.name.upper() for setting in fields(Settings)}
    assert set(re.findall(r"\bEKPHORY_[A-Z_]*[A-Z]", text)) <= known | OWN_VARIABLES


def test_every_metric_that_a_page_names_is_measured():
    metrics = Metrics()
    ShardMetrics(metrics.registry)
    families = {family.name for family in metrics.registry.collect()}
    pages = [*PAGES.values(), (DOCS / "cluster.md").read_text("utf-8")]
    named = re.findall(r"\bekphory_(?!lab)[a-z_]+[a-z]\b", "".join(pages))
    assert {re.sub("_(total|sum|count)$", "", name) for name in named} <= families


def test_the_image_is_built_from_what_the_context_holds_and_the_build_needs():
    *copied, _ = instructions("COPY")[0].split()
    assert instructions("COPY")[1].split() == ["src", "./src"]
    let_through = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert set(let_through) == {*copied, "src"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"pyproject.toml", project["readme"], *project["license-files"]} == set(copied)
    assert all((ROOT / name).exists() for name in let_through)


def test_the_image_names_its_base_runs_as_nobody_special_and_keeps_its_data():
    assert all(re.match(r"python:3\.\d+-slim-\w+", base) for base in instructions("FROM"))
    assert instructions("USER") == ["10001:10001"]
    assert json.loads(instructions("VOLUME")[0]) == ["/data"]
    assert "EKPHORY_STORE=/data/memories" in instructions("ENV")[0]
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["ekphory"]


@pytest.mark.slow
def test_the_health_check_tells_a_server_that_answers_from_none(tmp_path):
    check = json.loads(instructions("CMD")[0])
    assert check[:2] == ["python", "-c"]
    with running_server(tmp_path / "store") as server:
        code = check[2].replace("http://127.0.0.1:8080", server.url)
        assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 1


def test_the_composed_server_fits_the_image():
    assert SERVER["volumes"] == ["memories:/data"]
    assert SERVER["ports"][0].endswith(f":{instructions('EXPOSE')[0]}")
    assert SERVER["ports"][0].startswith("127.0.0.1:")
    assert ":?" in SERVER["environment"]["EKPHORY_SERVE_KEY"]
    assert SERVER["read_only"]
    assert set(COMPOSE["volumes"]) == {"memories", "models"}


def test_the_reranker_is_started_only_on_request():
    assert COMPOSE["services"]["reranker"]["profiles"] == ["reranker"]
    assert "profiles" not in SERVER
    port = COMPOSE["services"]["reranker"]["command"][-1]
    assert f"EKPHORY_RERANKER=http://reranker:{port}/v1" in PAGES["self-hosting.md"]


def checked(*command, **environment):
    """Run a program that judges a file, and return its exit code and what it found."""
    env = environment or None
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_dockerfile_is_linted():
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert checked(linter, str(ROOT / "Dockerfile")) == (0, "")


def has_compose():
    docker = shutil.which("docker")
    return docker is not None and checked(docker, "compose", "version")[0] == 0


@pytest.mark.skipif(not has_compose(), reason="docker compose is not installed")
@pytest.mark.parametrize("profile", [[], ["--profile", "reranker"]])
def test_compose_reads_its_file(profile):
    command = ["docker", "compose", "--file", str(ROOT / "compose.yaml"), *profile, "config"]
    paths = "/usr/bin:/usr/local/bin"
    assert checked(*command, "--quiet", PATH=paths, EKPHORY_SERVE_KEY="x" * 32) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_reads_the_unit(tmp_path):
    (unit,) = re.findall(r"```ini\n(.*?)```", PAGES["self-hosting.md"], re.DOTALL)
    file = tmp_path / "ekphory.service"
    file.write_text(unit.replace("/opt/ekphory/bin/ekphory", sys.executable))
    assert checked("systemd-analyze", "verify", "--man=no", str(file)) == (0, "")
