"""The agent tools that hooks are installed in: their configuration, events, payloads and replies.

Where each tool documents this is told in `docs/hooks.md`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from ekphory.atomic_write import write_aside
from ekphory.errors import InvalidInput
from ekphory.hooks.repository import ExcludeLines, apply_exclusion, plan_exclusion, plan_inclusion

EventName = Literal["prompt", "turn-end", "compact", "session-start", "session-end"]
EVENTS: tuple[EventName, ...] = get_args(EventName)
HostName = Literal["claude-code", "codex", "gemini-cli", "cursor", "opencode", "openclaw"]
HOST_NAMES: tuple[HostName, ...] = get_args(HostName)
_MARK = "hook"
_REMEDY = "Mend the file, or move it away"
_SECONDS: Mapping[EventName, int] = {**dict.fromkeys(EVENTS, 10), "session-end": 3}


@dataclass(frozen=True, slots=True)
class Host:
    """One tool, as `hosts.toml` tells it.

    Attributes:
        name: What the command calls it.
        folder: Where its user's configuration lies, below the home directory.
        file: The configuration, or the plugin, in that folder.
        variable: Names another folder, where the tool knows such a variable.
        local_file: The untracked file of one project, below it; None where it has none.
        events: Its names of the events.
        form: How a hook is written into the configuration; None where it is a plugin's file.
        beside: Names of the files that a plugin needs beside its own.
    """

    name: HostName
    folder: str
    file: str
    variable: str = ""
    local_file: str | None = None
    events: Mapping[EventName, str] = field(default_factory=dict)
    form: Callable[[EventName, list[str]], dict[str, Any]] | None = None
    beside: tuple[str, ...] = ()


def _argv_form(event: EventName, command: list[str]) -> dict[str, Any]:
    hook = {"type": "command", "command": command[0], "args": command[1:]}
    return {"hooks": [{**hook, "timeout": _SECONDS[event]}]}


def _shell_form(event: EventName, command: list[str]) -> dict[str, Any]:
    # Nothing of a payload is in the string: it comes on standard input.
    hook = {"type": "command", "command": shlex.join(command), "timeout": _SECONDS[event]}
    return {"hooks": [hook]}


def _gemini_form(event: EventName, command: list[str]) -> dict[str, Any]:
    hook = {"type": "command", "name": f"ekphory-{event}", "command": shlex.join(command)}
    return {"hooks": [{**hook, "timeout": 1000 * _SECONDS[event]}]}


def _cursor_form(event: EventName, command: list[str]) -> dict[str, Any]:
    return {"command": shlex.join(command), "timeout": _SECONDS[event]}


_FORMS = {"argv": _argv_form, "shell": _shell_form, "gemini": _gemini_form, "cursor": _cursor_form}
_TABLE = tomllib.loads(files(__package__).joinpath("hosts.toml").read_text("utf-8"))
HOSTS: Mapping[str, Host] = {
    name: Host(**{"name": name, **entry, "form": _FORMS.get(entry.get("form"))})
    for name, entry in _TABLE.items()
}


def find_host(name: str) -> Host:
    """Return a host by its name.

    Raises:
        InvalidInput: There is none of that name.
    """
    if name not in HOSTS:
        raise InvalidInput("host", name, "no such tool", f"Choose one of {', '.join(HOSTS)}")
    return HOSTS[name]


# Where a host's configuration lies, and what is written there.


@dataclass(frozen=True, slots=True)
class HookChange:
    """What an installation changes.

    Attributes:
        host: The tool.
        file: Its file.
        before, after: The file's text; None where there is no such file.
        exclusion: How the repository that the file lies in leaves it out, or no longer does; None
            where nothing is to be changed for that.
    """

    host: HostName
    file: Path
    before: str | None
    after: str | None
    exclusion: ExcludeLines | None = None

    @property
    def is_change(self) -> bool:
        """Whether anything is to be written."""
        return self.before != self.after or self.exclusion is not None


def find_file(host: Host, *, config_dir: Path | None, project: Path | None) -> Path:
    """Return the file that the hooks of a host are written into.

    Args:
        host: The tool.
        config_dir: Its folder of configuration; None for the user's own.
        project: For this project's untracked file alone; None for the user.

    Raises:
        InvalidInput: The tool has no file of a project that stays out of the repository.
    """
    if project is not None:
        if host.local_file is None:
            problem = f"{host.name} has no file for one project that a repository leaves out"
            raise InvalidInput("scope", "project", problem, "Use --scope user")
        return project / host.local_file
    if config_dir is not None:
        return config_dir / host.file
    named = os.environ.get(host.variable, "").strip() if host.variable else ""
    return (Path(named).expanduser() if named else Path.home() / host.folder) / host.file


def plan_install(
    host: Host, file: Path, *, options: list[str], command: list[str] | None = None
) -> HookChange:
    """Return what an installation writes; what else the file holds is kept.

    Where the file lies in a git repository, the repository leaves it out.

    Args:
        host: The tool.
        file: Where.
        options: What the hooks are run with, such as `--store DIR`.
        command: How ekphory is called; None finds it.

    Raises:
        InvalidInput: The file is not what the tool can read, or a repository commits it.
    """
    before, exclusion = _read(file), plan_exclusion(find_files(host, file))
    called = find_command() if command is None else command
    if host.form is None:
        plugin = _plugin(host, called, options)
        return HookChange(host.name, file, before, plugin, exclusion)
    content = _parse(file, before)
    hooks = _without_ours(content.get("hooks", {}))
    for event, name in host.events.items():
        words = [*called, _MARK, "run", host.name, event, *options]
        hooks.setdefault(name, []).append(host.form(event, words))
    after = {**_begin(host), **content, "hooks": hooks}
    return HookChange(host.name, file, before, _format(after), exclusion)


def _begin(host: Host) -> dict[str, Any]:
    """Return what a host's configuration holds that has nothing in it."""
    return {"version": 1} if host.name == "cursor" else {}


def plan_uninstall(host: Host, file: Path) -> HookChange:
    """Return what is left of a host's file without our hooks, also of one that is committed."""
    before, exclusion = _read(file), plan_inclusion(find_files(host, file))
    if before is None or host.form is None:
        return HookChange(host.name, file, before, None, exclusion)
    content = _parse(file, before)
    if not _has_ours(content.get("hooks", {})):
        return HookChange(host.name, file, before, before, exclusion)
    hooks = _without_ours(content.get("hooks", {}))
    rest = {name: value for name, value in content.items() if name != "hooks"}
    if hooks:
        rest["hooks"] = hooks
    is_kept = rest != _begin(host) or file.is_symlink()  # a link stays one
    return HookChange(host.name, file, before, _format(rest) if is_kept else None, exclusion)


def is_installed(host: Host, file: Path) -> bool:
    """Return whether our hooks stand in a host's file."""
    text = _read(file)
    if text is None or host.form is None:
        return text is not None
    return _has_ours(_parse(file, text).get("hooks", {}))


def find_files(host: Host, file: Path) -> list[Path]:
    """Return the files that an installation writes: the host's, and what a plugin needs beside."""
    return [file, *(file.parent / name for name in host.beside)]


def apply_change(change: HookChange) -> None:
    """Write a planned change, whole or not at all.

    Raises:
        InvalidInput: The repository that the file lies in cannot be made to leave it out.
    """
    if change.exclusion is not None:
        apply_exclusion(change.exclusion)  # first, so that the file is at no moment committed
    if change.before == change.after:
        return
    file, *beside = find_files(HOSTS[change.host], change.file)
    if change.after is None:
        for each in (file, *beside):
            each.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    for each in beside:
        each.write_text(_read_plugin(each.name), encoding="utf-8")
    # A link to a file that is kept elsewhere stays one.
    target = file.resolve()
    with write_aside(target) as part:
        part.write_text(change.after, encoding="utf-8")
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)


def find_command() -> list[str]:
    """Return how ekphory is called from anywhere."""
    beside = Path(sys.executable).with_name("ekphory")
    if beside.is_file():
        return [str(beside)]
    found = shutil.which("ekphory")
    return [found] if found else [sys.executable, "-m", "ekphory"]


def _plugin(host: Host, command: list[str], options: list[str]) -> str:
    source = _read_plugin(f"{host.name}.js")
    program, *before = command
    replaced = {"__PROGRAM__": program, "__BEFORE__": before, "__OPTIONS__": options}
    for mark, value in replaced.items():
        source = source.replace(f'"{mark}"', json.dumps(value))
    return source


def _read_plugin(name: str) -> str:
    return files(__package__).joinpath("plugins", name).read_text("utf-8")


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput("file", str(file), "is not UTF-8", _REMEDY) from error


def _parse(file: Path, text: str | None) -> dict[str, Any]:
    if text is None or not text.strip():
        return {}
    try:
        content = json.loads(text, object_pairs_hook=_make_object, parse_constant=_refuse)
    except ValueError as error:
        raise InvalidInput("file", str(file), f"is not JSON ({error})", _REMEDY) from error
    hooks = content.get("hooks", {}) if isinstance(content, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise InvalidInput("file", str(file), "has hooks of another form", _REMEDY)
    return dict(content)


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice!r} stands in one object twice")  # one of them would be lost
    return made


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a number in JSON")


def _format(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    # Half of a surrogate pair stays the escape that it was: UTF-8 cannot carry it.
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def _has_ours(hooks: Mapping[str, Any]) -> bool:
    return any(_rest_of(each) != [each] for entries in hooks.values() for each in entries)


def _without_ours(hooks: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        name: [rest for entry in entries for rest in _rest_of(entry)]
        for name, entries in hooks.items()
    }
    return {name: entries for name, entries in kept.items() if entries or not hooks[name]}


def _rest_of(entry: object) -> list[object]:
    """Return an entry without our hooks, for somebody may have put one beside them; else none."""
    if _is_ours(entry):
        return []
    inner = entry.get("hooks") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(inner, list):
        return [entry]
    rest = [each for each in inner if not _is_ours(each)]
    if len(rest) == len(inner):
        return [entry]
    return [{**entry, "hooks": rest}] if rest else []


def _is_ours(hook: object) -> bool:
    """Return whether a hook runs `ekphory hook run`, wherever ekphory lies."""
    if not isinstance(hook, Mapping):
        return False
    command, arguments = str(hook.get("command", "")), hook.get("args")
    try:
        words = shlex.split(command)
    except ValueError:  # somebody else's, for another shell
        words = command.split()
    words += map(str, arguments if isinstance(arguments, list) else ())
    return "ekphory" in " ".join(words) and words.count("run") > 0 and _MARK in words


# Payloads and replies.


@dataclass(frozen=True, slots=True)
class HookPayload:
    """What a host tells a hook.

    Attributes:
        session: Id of the session.
        folder: Where it runs.
        prompt: What the user asks, at a prompt; else empty.
        transcript: The file that the dialogue is in; None where it is sent, or not known.
        messages: The lines of the dialogue where it is sent; None where it is not.
        is_of_a_helper: Whether a part of the tool speaks, not the user's own session.
    """

    session: str
    folder: Path
    prompt: str
    transcript: Path | None
    messages: list[Mapping[str, Any]] | None
    is_of_a_helper: bool


def read_payload(text: str) -> HookPayload:
    """Read the JSON that a host sends.

    Raises:
        InvalidInput: It is no JSON object, or names no session.
    """
    remedy = "Let the tool itself run the hook"
    try:
        given = json.loads(text)
    except ValueError as error:
        # Nothing of the payload is told: it may hold a secret.
        raise InvalidInput("payload", len(text), "is not JSON", remedy) from error
    if not isinstance(given, Mapping):
        raise InvalidInput("payload", len(text), "must be an object", remedy)
    session = given.get("conversation_id") or given.get("session_id")
    if not isinstance(session, str) or not session:
        raise InvalidInput("session_id", type(session).__name__, "names no session", remedy)
    roots = given.get("workspace_roots")
    folder = given.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
    transcript, messages, prompt = (
        given.get(name) for name in ("transcript_path", "messages", "prompt")
    )
    return HookPayload(
        session=session,
        folder=Path(folder) if isinstance(folder, str) else Path.cwd(),
        prompt=prompt if isinstance(prompt, str) else "",
        transcript=Path(transcript) if isinstance(transcript, str) and transcript else None,
        messages=[each for each in messages if isinstance(each, Mapping)]
        if isinstance(messages, list)
        else None,
        is_of_a_helper=bool(given.get("agent_id")) and "session_key" not in given,
    )


def format_reply(host: Host, event: EventName, context: str) -> str:
    """Return what a hook prints, so that the host puts a text before the model; empty for none."""
    if not context:
        return ""
    if host.form is None:
        return context
    if host.name == "cursor":
        return json.dumps({"continue": True, "additional_context": context}, ensure_ascii=False)
    told = {"hookEventName": host.events[event], "additionalContext": context}
    return json.dumps({"hookSpecificOutput": told}, ensure_ascii=False)
