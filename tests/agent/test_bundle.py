"""The Markdown for language models: what it must have, and what a shell may see of it."""

import pytest

from ekphory.agent.llm_bundle import ShellOutput, ShellSearch, lay_out, load_spec, read_spec
from ekphory.errors import InvalidInput

SPEC = """---
name: a
version: v1
kind: sub-agent
description: d
route_name: a
timeout_seconds: 10
max_return_len: 100
max_steps: 2
fallback_hook: memmachine-search-only
allowed_actions: [memmachine_search]
allowed_tools: [memmachine_search]
required_sections: [Intent]
---

## Intent

Find it.
"""


@pytest.fixture
def bundle(tmp_path):
    with lay_out([load_spec("coq")], str(tmp_path / "root")) as directory:
        yield directory


@pytest.mark.parametrize(("name", "kind"), [("retrieve_agent", "top-level"), ("coq", "sub-agent")])
def test_the_bundled_files_are_sound_and_allow_one_tool(name, kind):
    spec = load_spec(name)
    assert (spec.kind, spec.allowed_tools) == (kind, ("memmachine_search",))
    assert spec.fallback_hook == "memmachine-search-only"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("name: a\n", ""), "is missing in the front matter"),
        (("name: a\n", "name: a\nnames: b\n"), "must be a field of the front matter"),
        (("version: v1", "version: v2"), "must be a known version"),
        (("kind: sub-agent", "kind: agent"), "must be a kind"),
        (("max_steps: 2", "max_steps: 0"), "max_steps must be an integer"),
        (("## Intent", "## Aim"), "is a section that is missing"),
        (
            ("allowed_tools: [memmachine_search]", "allowed_tools: all"),
            "allowed_tools must be a list",
        ),
        (("---\nname", "name"), "has no front matter"),
        (("name: a", "name: ["), "must be YAML"),
    ],
)
def test_a_file_that_breaks_the_form_is_refused(change, told):
    assert read_spec(SPEC, place="a.md").name == "a"
    with pytest.raises(InvalidInput) as refused:
        read_spec(SPEC.replace(*change), place="a.md")
    assert told in str(refused.value)


@pytest.mark.parametrize("command", ["cat {}", "sed -n '1,200p' {}", "head -n 5 {}"])
def test_a_shell_may_read_the_guidance(bundle, command):
    path = bundle.path(bundle.specs[0]) / "SKILL.md"
    given = bundle.run(command.format(path))
    assert given.exit_code == 0
    assert "# Chain of queries" in given.text


@pytest.mark.parametrize(
    "command",
    ["cat /etc/passwd", "cat ../SKILL.md", "rm -rf /", "cat 'open", "", "curl http://localhost",
     "cat {} ; rm -rf /", "memmachine search"],
)  # fmt: skip
def test_a_shell_may_do_nothing_else(bundle, command):
    path = bundle.path(bundle.specs[0]) / "SKILL.md"
    given = bundle.run(command.format(path))
    assert isinstance(given, ShellOutput)
    assert given.exit_code == 126


def test_a_command_that_searches_is_a_search(bundle):
    assert bundle.run('memmachine search "wife of Ida"') == ShellSearch("wife of Ida")


def test_nothing_of_the_bundle_is_left_behind(tmp_path):
    with lay_out([load_spec("coq")], str(tmp_path)) as directory:
        assert (directory.root / "coq" / "SKILL.md").is_file()
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_that_cannot_be_written_leaves_no_folder(tmp_path):
    twice = [load_spec("coq"), load_spec("coq")]  # the second folder is there already

    with (
        pytest.raises(InvalidInput, match=r"agent_native_bundle_root.*cannot be written"),
        lay_out(twice, str(tmp_path)),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
