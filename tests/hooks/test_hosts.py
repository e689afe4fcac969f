"""Hooks are written into a tool's configuration, keep what is there, and are taken out again."""

import json

import pytest

from ekphory.errors import InvalidInput
from ekphory.hooks.hosts import (
    HOSTS,
    apply_change,
    find_file,
    find_host,
    format_reply,
    is_installed,
    plan_install,
    plan_uninstall,
    read_payload,
)

COMMAND = ["/opt/ek phory/ekphory"]
CONFIGURED = [name for name, host in HOSTS.items() if host.form is not None]
PLUGINS = [name for name, host in HOSTS.items() if host.form is None]


def install(host, file):
    apply_change(plan_install(HOSTS[host], file, options=["--store", "/s"], command=COMMAND))


@pytest.mark.parametrize("host", HOSTS)
def test_installing_twice_is_installing_once_and_uninstalling_leaves_nothing(tmp_path, host):
    file = find_file(HOSTS[host], config_dir=tmp_path / "config", project=None)
    install(host, file)
    first = file.read_text()
    assert is_installed(HOSTS[host], file)
    assert not plan_install(HOSTS[host], file, options=["--store", "/s"], command=COMMAND).is_change
    install(host, file)
    assert file.read_text() == first
    apply_change(plan_uninstall(HOSTS[host], file))
    assert not is_installed(HOSTS[host], file)


@pytest.mark.parametrize("host", CONFIGURED)
def test_what_else_stands_in_the_file_is_kept(tmp_path, host):
    file = tmp_path / "settings.json"
    name = HOSTS[host].events["prompt"]
    theirs = {"command": "make lint"} if host == "cursor" else {"hooks": [{"command": "make lint"}]}
    before = {"theme": "dark", "hooks": {name: [theirs]}}
    if host == "cursor":
        before = {"version": 1, **before}
    file.write_text(json.dumps(before))
    install(host, file)
    after = json.loads(file.read_text())
    assert after["theme"] == "dark"
    assert after["hooks"][name][0] == theirs
    assert len(after["hooks"][name]) == 2
    apply_change(plan_uninstall(HOSTS[host], file))
    assert json.loads(file.read_text()) == before


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini-cli"])
def test_a_hook_that_somebody_put_beside_ours_is_kept(tmp_path, host):
    file = tmp_path / "settings.json"
    install(host, file)
    name = HOSTS[host].events["turn-end"]
    theirs = {"type": "command", "command": "say done"}
    content = json.loads(file.read_text())
    content["hooks"][name][0]["hooks"].append(theirs)
    file.write_text(json.dumps(content))
    install(host, file)
    assert theirs in json.loads(file.read_text())["hooks"][name][0]["hooks"]
    apply_change(plan_uninstall(HOSTS[host], file))
    assert json.loads(file.read_text())["hooks"] == {name: [{"hooks": [theirs]}]}


def test_hooks_of_somebody_elses_form_are_kept(tmp_path):
    file = tmp_path / "settings.json"
    before = {"hooks": {"Stop": [{"hooks": None}, {"hooks": [{"command": "a", "args": None}]}, 1]}}
    file.write_text(json.dumps(before))
    install("claude-code", file)
    apply_change(plan_uninstall(HOSTS["claude-code"], file))
    assert json.loads(file.read_text()) == before


def test_claude_code_gets_a_list_of_words_and_no_shell(tmp_path):
    install("claude-code", tmp_path / "settings.json")
    hooks = json.loads((tmp_path / "settings.json").read_text())["hooks"]
    assert set(hooks) == {"UserPromptSubmit", "Stop", "PreCompact", "SessionStart", "SessionEnd"}
    (hook,) = hooks["UserPromptSubmit"][0]["hooks"]
    assert hook == {
        "type": "command",
        "command": "/opt/ek phory/ekphory",
        "args": ["hook", "run", "claude-code", "prompt", "--store", "/s"],
        "timeout": 10,
    }


@pytest.mark.parametrize("host", ["codex", "gemini-cli", "cursor"])
def test_a_shell_string_is_quoted(tmp_path, host):
    install(host, tmp_path / "hooks.json")
    text = (tmp_path / "hooks.json").read_text()
    assert f"'/opt/ek phory/ekphory' hook run {host} prompt --store /s" in text


@pytest.mark.parametrize("host", PLUGINS)
def test_a_plugin_runs_the_command_without_a_shell(tmp_path, host):
    file = tmp_path / HOSTS[host].file
    install(host, file)
    text = file.read_text()
    assert 'spawn("/opt/ek phory/ekphory", [...[], "hook", "run"' in text
    assert '...["--store", "/s"]]' in text
    assert "shell: false" in text


def test_openclaw_gets_what_names_the_plugin(tmp_path):
    file = tmp_path / "extensions" / "ekphory" / "index.js"
    install("openclaw", file)
    manifest = json.loads((file.parent / "openclaw.plugin.json").read_text())
    assert manifest["id"] == "ekphory"
    apply_change(plan_uninstall(HOSTS["openclaw"], file))
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"{not json", "is not JSON"),
        (b'{"limit": NaN}', "NaN is not a number"),
        (b'{"env": {"A": "1", "A": "2"}}', "'A' stands in one object twice"),
        (b'{"name": "\xff"}', "is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_or_kept_whole_is_left_and_named(tmp_path, content, named):
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match=named):
        plan_install(HOSTS["claude-code"], file, options=[], command=COMMAND)
    assert file.read_bytes() == content


def test_half_of_a_surrogate_pair_is_kept(tmp_path):
    file = tmp_path / "settings.json"
    file.write_text(r'{"sign": "\ud83d"}')
    install("claude-code", file)
    assert r'"sign": "\ud83d"' in file.read_text()


def test_for_one_project_the_untracked_file_is_written_or_none(tmp_path):
    file = find_file(HOSTS["claude-code"], config_dir=None, project=tmp_path)
    assert file == tmp_path / ".claude" / "settings.local.json"
    with pytest.raises(InvalidInput, match="no file for one project"):
        find_file(HOSTS["codex"], config_dir=None, project=tmp_path)


def test_a_folder_that_the_tool_is_told_of_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    assert find_file(HOSTS["codex"], config_dir=None, project=None) == tmp_path / "hooks.json"


def test_a_link_to_a_file_that_is_kept_elsewhere_stays_one(tmp_path):
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}")
    link = tmp_path / "settings.json"
    link.symlink_to(kept)
    install("claude-code", link)
    assert link.is_symlink()
    assert "UserPromptSubmit" in kept.read_text()
    apply_change(plan_uninstall(HOSTS["claude-code"], link))
    assert link.is_symlink()
    assert json.loads(kept.read_text()) == {}


def test_an_unknown_tool_is_named():
    with pytest.raises(InvalidInput, match="host"):
        find_host("emacs")


@pytest.mark.parametrize(
    ("host", "reply"),
    [
        (
            "claude-code",
            '{"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", '
            '"additionalContext": "a \\"b\\""}}',
        ),
        (
            "gemini-cli",
            '{"hookSpecificOutput": {"hookEventName": "BeforeAgent", '
            '"additionalContext": "a \\"b\\""}}',
        ),
        ("cursor", '{"continue": true, "additional_context": "a \\"b\\""}'),
        ("opencode", 'a "b"'),
    ],
)
def test_a_reply_has_the_hosts_own_form(host, reply):
    assert format_reply(HOSTS[host], "prompt", 'a "b"') == reply
    assert format_reply(HOSTS[host], "prompt", "") == ""


@pytest.mark.parametrize("text", ["", "[]", "{", '{"session_id": 7}', '{"cwd": "/"}'])
def test_a_payload_that_is_none_is_refused(text):
    with pytest.raises(InvalidInput):
        read_payload(text)
