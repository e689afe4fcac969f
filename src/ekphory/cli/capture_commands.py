"""`ekphory capture`, and `ekphory hook`: memory that fills itself."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column, Table

from ekphory.cli.command import command, message_console, print_result, result_console
from ekphory.cli.options import OutputOptions, StoreOptions, open_for_writing, settings_for
from ekphory.cli.output import make_table, print_json
from ekphory.config import default_store
from ekphory.errors import InvalidInput, StoreError
from ekphory.hooks import hosts
from ekphory.resident import HOOK_SECONDS, read_late, wait_no_more
from ekphory.scope import DEFAULT_NAME

if TYPE_CHECKING:
    from ekphory.capture import Captured, CaptureReport
    from ekphory.hooks.running import OpenStore
    from ekphory.hooks.state import HookEvent, HookState

_HostArgument = Annotated[
    str,
    typer.Argument(
        metavar="HOST", help="claude-code, codex, gemini-cli, cursor, opencode or openclaw."
    ),
]
_column = partial(Column, overflow="fold")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SHOWN_EVENTS = 10


# `ekphory capture`.


@command
def capture(
    file: Path,
    where: StoreOptions,
    output: OutputOptions,
    *,
    source: str | None = None,
    label: list[str] | None = None,
    review: bool = False,
) -> None:
    """Keep what is worth remembering of a transcript, without its secrets.

    Transcripts of Claude Code, Codex, Gemini CLI, Cursor, opencode and OpenClaw are read, and
    messages with `role` and `content`. Repeating it adds nothing, and what hooks captured of the
    same session and project is there already; both get the labels that fit them.

    Args:
        file (FILE): A transcript: lines of JSON, or a JSON list.
        source: Where the messages come from.
        label: A topic that memories may be about; repeatable.
        review: Show what would be kept, and write nothing.
    """
    messages, labels = _read_messages(file), tuple(label or ())
    if review:
        report = _review(messages, labels)
    else:
        with open_for_writing(where) as memory:
            session = settings_for(where).session
            report = memory.capture(
                messages, session=session, source=source or file.name, labels=labels
            )
        _note_captured(where, messages)
    of = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
    title = f"{report.added} new {'memory' if report.added == 1 else 'memories'} of {of}"
    if review:
        title = f"Worth remembering: {len(report.kept)} of {of}"
    elif known := len(report.kept) - report.added:
        title += f", {known} known already"
    print_result(output, report, _make_captured_table(title, report.kept, labels=labels))
    if not output.json:
        told = f"{report.redactions} secrets cut out, {len(report.steering)} messages that steer."
        message_console().print(told, style="dim")


def _note_captured(where: StoreOptions, messages: Sequence[dict[str, Any]]) -> None:
    """Note which messages of a session are captured, so that no hook captures them again."""
    from ekphory.hooks.running import name_messages

    settings = settings_for(where)
    if settings.session is not None:
        scope = settings.org, settings.project or DEFAULT_NAME, settings.session
        find_hook_state(where).note_captured_by_hand(*scope, name_messages(messages))


def _read_messages(file: Path) -> list[dict[str, Any]]:
    """Read a transcript of any known form.

    Raises:
        InvalidInput: Nothing in it is a message.
    """
    from ekphory.hooks.transcripts import read_lines, read_transcript

    text = file.read_text(encoding="utf-8-sig", errors="replace")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        messages = read_transcript(file)
    else:
        lines = whole.get("messages", [whole]) if isinstance(whole, dict) else whole
        messages = list(read_lines([each for each in lines if isinstance(each, dict)]))
    if not messages:
        remedy = 'It needs lines such as {"role": "user", "content": "…"}'
        raise InvalidInput("file", str(file), "holds no message", remedy)
    return messages


def _make_captured_table(title: str, kept: Sequence[Captured], *, labels: Sequence[str]) -> Table:
    """Return what was captured, with its labels where some were asked for."""
    columns = ("class", "text", "names", *(("labels",) if labels else ()))
    table = make_table(title, *map(_column, columns))
    for each in kept:
        names = ", ".join(entity.text for entity in each.entities)
        cells = (each.class_, each.text, names, ", ".join(each.labels))
        table.add_row(*cells[: len(columns)])
    return table


def _review(messages: Sequence[dict[str, Any]], labels: Sequence[str]) -> CaptureReport:
    """Capture into a store that is thrown away."""
    from ekphory.memory import Memory

    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "store") as memory:
        return memory.capture(messages, labels=labels)


# `ekphory hook`.


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFile:
    """Which configuration of a tool is meant.

    Attributes:
        scope: user, or project for this folder's untracked file alone.
        config_dir (DIR): The tool's folder of configuration; else the user's own.
    """

    scope: str = "user"
    config_dir: Path | None = None


@command
def install_hook(
    host: _HostArgument,
    where: StoreOptions,
    output: OutputOptions,
    file: HookFile,
    *,
    dry_run: bool = False,
) -> None:
    """Install the hooks in an agent tool: it recalls before each prompt and captures after it.

    What else stands in the tool's configuration is kept. Installing again changes nothing. A file
    that a git repository commits is refused; one that it would commit is left out of it.

    Args:
        dry_run: Show what would be written, and write nothing.
    """
    change = hosts.plan_install(*_find_place(host, file), options=_options(where))
    _apply(change, output, "installed", dry_run=dry_run)
    if host in _NEXT and not output.json and not dry_run:
        message_console().print(_NEXT[host])


_NEXT = {
    "codex": "In Codex, open /hooks once and trust them; before, they are off.",
    "openclaw": "Run `openclaw plugins enable ekphory`, and let it read the dialogue: in "
    "openclaw.json set plugins.entries.ekphory.hooks.allowConversationAccess to true.",
}
"""What is left to do after the hooks of a tool are installed."""


_SKILL = "ekphory-memory"


@command
def install_skill(directory: str, output: OutputOptions) -> None:
    """Copy the skill into a folder of skills; what you wrote under `references` stays.

    Args:
        directory (DIR): Where the agent tool looks for skills.
    """
    if not directory.strip():
        raise InvalidInput("DIR", directory, "is empty", "Name the tool's folder of skills")
    target = Path(directory).expanduser() / _SKILL
    with as_file(files("ekphory") / "skills" / _SKILL) as source:
        written = []
        for each in sorted(source.rglob("*.md")):
            place = target / each.relative_to(source)
            if each.name == "SKILL.md" or not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                written.append(shutil.copyfile(each, place))
    shown = f"The skill is in {target}; say in references/connection.md which memory it uses."
    print_result(output, {"directory": str(target), "written": list(map(str, written))}, shown)


@command
def uninstall_hook(
    host: _HostArgument, output: OutputOptions, file: HookFile, *, dry_run: bool = False
) -> None:
    """Take the hooks out of an agent tool; what was captured stays.

    Args:
        dry_run: Show what would be written, and write nothing.
    """
    _apply(hosts.plan_uninstall(*_find_place(host, file)), output, "removed", dry_run=dry_run)


@command
def show_hooks(
    where: StoreOptions, output: OutputOptions, file: HookFile, host: str | None = None
) -> None:
    """Show where hooks are installed, what they did, and what failed last.

    Args:
        host ([HOST]): Only this tool.
    """
    from ekphory.hooks.repository import find_standing

    late = _read_late(where)
    state = find_hook_state(where)
    asked = hosts.HOST_NAMES if host is None else (hosts.find_host(host).name,)
    if file.scope == "project":
        asked = tuple(name for name in asked if hosts.find_host(name).local_file is not None)
    found: list[dict[str, Any]] = [
        {
            "host": name,
            "installed": _find_installed(tool, place),
            "file": str(place),
            "git": find_standing(place),
        }
        for name in asked
        for tool, place in [_find_place(name, file)]
    ]
    paused, events = state.paused_until(), [*late, *state.events(limit=_SHOWN_EVENTS)]
    events = sorted(events, key=lambda event: event.at, reverse=True)[:_SHOWN_EVENTS]
    failures = state.events(limit=1, failed=True)
    if output.json:
        told = {"hosts": found, "paused_until": paused, "waiting": len(state.waiting())}
        lasts = {
            "last_failure": next(iter(failures), None),
            "last_too_late": next(iter(late), None),
        }
        print_json({**told, **lasts, "too_late": len(late), "events": events})
        return
    table = make_table("Hooks", *map(_column, ("tool", "installed", "file", "git")))
    for each in found:
        shown = {True: "yes", False: "no", None: "cannot be read"}[each["installed"]]
        table.add_row(each["host"], shown, each["file"], each["git"] or "")
    result_console().print(table)
    done = make_table("What they did last", *map(_column, ("at", "tool", "event", "ms", "what")))
    for event in events:
        what = event.failure or event.did
        done.add_row(event.at, event.host, event.event, f"{event.milliseconds:.0f}", what)
    result_console().print(done if events else "No hook ran yet.")
    if paused:
        message_console().print(f"Paused until {paused:%Y-%m-%d %H:%M} UTC.")
    if failures:
        message_console().print(f"Failed last, {failures[0].at}: {failures[0].failure}")
    if late:
        told_late = f"{len(late)} prompts got nothing in time, the last one {late[0].at}"
        message_console().print(f"{told_late}: {late[0].did}")


def _read_late(where: StoreOptions) -> list[HookEvent]:
    """Return the prompts whose tool waited no longer, the newest first."""
    from ekphory.hooks.state import HookEvent

    store = _absolute_store(where)
    stores = {store, ""} if store == _absolute_store(StoreOptions()) else {store}
    return [
        HookEvent(line["at"], line["host"], line["event"], "", 1_000 * HOOK_SECONDS, line["did"])
        for line in read_late(stores)
    ]


def _find_installed(host: hosts.Host, file: Path) -> bool | None:
    """Return whether our hooks stand in a host's file; None where it cannot be read."""
    try:
        return hosts.is_installed(host, file)
    except (InvalidInput, OSError):
        return None


@command
def pause_hooks(where: StoreOptions, output: OutputOptions, span: str | None = None) -> None:
    """Let all hooks do nothing for a while: no recall, and what is said meanwhile is not kept.

    Args:
        span (--for SPAN): Such as 30m, 2h or 1d; else until resumed.
    """
    from ekphory.hooks.running import capture_waiting

    until = datetime.now(UTC) + (timedelta(days=36_500) if span is None else _read_span(span))
    state = find_hook_state(where)
    # What was noted before is kept first: later it could not be told from what is said meanwhile.
    capture_waiting(state, _opener(where))
    state.pause(until)
    shown = f"Paused until {until:%Y-%m-%d %H:%M} UTC." if span else "Paused until `hook resume`."
    print_result(output, {"paused_until": until.isoformat()}, shown)


@command
def resume_hooks(where: StoreOptions, output: OutputOptions) -> None:
    """Let the hooks go on."""
    find_hook_state(where).pause(None)
    print_result(output, {"paused_until": None}, "The hooks go on.")


@command
def run_hook(
    host: _HostArgument,
    event: str,
    where: StoreOptions,
    output: OutputOptions,  # noqa: ARG001  every command has them
) -> None:
    """Run one hook, as a tool does: its payload comes on standard input.

    Ends with 0 whatever happens, so that no tool fails for it; `hook status` tells what failed.

    Args:
        event: prompt, turn-end, compact, session-start or session-end.
    """
    from ekphory.hooks.running import HookRun

    name = next((each for each in hosts.EVENTS if each == event), None)
    if name is None:
        remedy = f"Choose one of {', '.join(hosts.EVENTS)}"
        raise InvalidInput("event", event, "no such event", remedy)
    settings, tool = settings_for(where), hosts.find_host(host)
    state, open_store = find_hook_state(where), _opener(where)
    run = HookRun(tool, name, state, open_store, project=settings.project, org=settings.org)
    if reply := run.reply(sys.stdin.read()):
        sys.stdout.write(reply + "\n")
        sys.stdout.flush()
    wait_no_more()
    _start_capture(state, open_store, where)


@command
def capture_noted(where: StoreOptions, output: OutputOptions) -> None:
    """Capture now what hooks have noted and no other process has captured."""
    from ekphory.hooks.running import capture_waiting

    done, state, open_store = 0, find_hook_state(where), _opener(where)
    while captured := capture_waiting(state, open_store):
        done += captured
    print_result(output, {"sessions": done}, f"{done:,} sessions captured.")


def _start_capture(state: HookState, open_store: OpenStore, where: StoreOptions) -> None:
    """Capture what waits, in a thread of this process or in a process of its own."""
    from ekphory.hooks.running import capture_waiting, find_worker
    from ekphory.resident import start_once

    try:
        if not state.waiting():
            return
    except StoreError:
        return  # as the hook itself has noted, or cannot note
    store, worker = _absolute_store(where), find_worker()
    if worker is not None:
        worker.add(store, partial(capture_waiting, state, open_store))
        return
    words = ["hook", "catch-up", *_options(replace(where, store=store))]
    start_once([sys.executable, "-m", "ekphory", *words], str(state.lock))


def _opener(where: StoreOptions) -> OpenStore:
    """Return what opens the store with a scope, whatever the environment is then."""
    from ekphory.memory import Memory

    settings = settings_for(where)
    models = {name: getattr(settings, name) for name in ("embedder", "reranker", "preset")}
    return partial(Memory, _absolute_store(where), **models)


def find_hook_state(where: StoreOptions) -> HookState:
    """Return what the hooks of a store have done."""
    from ekphory.hooks.state import HookState

    store = _absolute_store(where)
    return HookState(Path(default_store() if "://" in store else store))


def _absolute_store(where: StoreOptions) -> str:
    """Return the store, also for whoever runs in another folder."""
    store = settings_for(where).store
    return store if "://" in store else str(Path(store).expanduser().absolute())


def _find_place(host: str, at: HookFile) -> tuple[hosts.Host, Path]:
    """Return a tool, and the file of its configuration that is meant."""
    if at.scope not in ("user", "project"):
        raise InvalidInput("scope", at.scope, "no such scope", "Use user or project")
    project = Path.cwd() if at.scope == "project" else None
    found = hosts.find_host(host)
    return found, hosts.find_file(found, config_dir=at.config_dir, project=project)


def _options(where: StoreOptions) -> list[str]:
    """Return the options that name a store and a scope, for a command that is run later."""
    if where.store is not None:
        where = replace(where, store=_absolute_store(where))
    given = {name: getattr(where, name) for name in ("store", "project", "org", "embedder")}
    named = {f"--{name}": value for name, value in given.items() if value is not None}
    return [word for pair in named.items() for word in pair]


def _apply(change: hosts.HookChange, output: OutputOptions, done: str, *, dry_run: bool) -> None:
    if not dry_run:
        hosts.apply_change(change)
    file, is_changed = str(change.file), change.is_change and not dry_run
    told = {"host": change.host, "file": file, "changed": is_changed, "content": change.after}
    shown = f"{file}: {done if change.is_change else 'nothing to change'}"
    if dry_run:
        shown = f"{file}:\n{change.after or '(removed)'}"
    if exclusion := change.exclusion:
        told["exclude"] = {"file": str(exclusion.file), "lines": exclusion.lines}
        shown += f"\n{exclusion.file}: git {'leaves' if exclusion.is_added else 'no longer leaves'}"
        shown += f" out {', '.join(exclusion.lines)}"
    print_result(output, told, shown)


def _read_span(text: str) -> timedelta:
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise InvalidInput("for", text, "must be a span of time", "Write 30m, 2h or 1d")
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])
