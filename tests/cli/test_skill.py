"""The skill that is installed tells an agent commands that work."""

import re
import shlex

import pytest
from memmachine_client.cli import build_parser
from tests.cli.command_line import CommandLine


@pytest.fixture
def line(tmp_path):
    return CommandLine(tmp_path / "store")


@pytest.fixture
def skill(line, tmp_path):
    installed = line.json("skill", "install", str(tmp_path / "skills"))
    assert installed["directory"] == str(tmp_path / "skills" / "ekphory-memory")
    return tmp_path / "skills" / "ekphory-memory"


def commands(skill, program):
    """The command lines of the skill's fenced blocks."""
    blocks = re.findall(r"```bash\n(.*?)```", (skill / "SKILL.md").read_text(), re.DOTALL)
    lines = [shlex.split(each, comments=True) for each in "".join(blocks).splitlines()]
    return [each[1:] for each in lines if each[0] == program]


def test_a_folder_without_a_name_is_refused(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = line.run("skill", "install", "")
    assert (refused.exit_code, list(tmp_path.rglob("SKILL.md"))) == (1, [])
    assert "DIR='': is empty. Name the tool's folder of skills" in refused.stderr


def test_every_command_of_the_skill_runs(line, skill):
    named = commands(skill, "ekphory")
    assert [each[0] for each in named] == ["search", "ask", "add"]
    # What is kept is found by what is asked first.
    for words in reversed(named):
        result = line.run(*words, EKPHORY_DAEMON="0")
        assert result.exit_code == 0, result.output
    assert "Mara prefers pytest with uv run" in result.stdout


def test_every_command_for_a_server_is_one_of_the_released_client(skill):
    named = commands(skill, "mem-cli")
    parsed = [build_parser().parse_args(each).memory_command for each in named]
    assert parsed == ["search", "search", "add"]


def test_installing_again_keeps_what_was_written_about_the_connection(line, skill):
    own = skill / "references" / "connection.md"
    own.write_text("- command: `mem-cli`")
    (skill / "SKILL.md").write_text("old")
    again = line.json("skill", "install", str(skill.parent))
    assert again["written"] == [str(skill / "SKILL.md")]
    assert own.read_text() == "- command: `mem-cli`"
    assert (skill / "SKILL.md").read_text().startswith("---\nname: ekphory-memory\n")
