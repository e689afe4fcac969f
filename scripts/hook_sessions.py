"""Sessions of Claude Code that were written by hand, and a home to play them in.

The file `tests/hooks/long_session.txt` says in its first lines what its marks mean.
"""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ekphory import resident
from ekphory.hooks.hosts import EventName
from ekphory.hooks.state import HookState

LONG_SESSION = Path(__file__).parents[1] / "tests" / "hooks" / "long_session.txt"
PROJECT = "code.drentmeer.example/meetnet/peilwacht"
_TELLING = 60
"""Characters of a message's beginning, by which it is known again."""
_BETWEEN_LINES = timedelta(seconds=70)
_WAIT_SECONDS = 300.0
_ROLES = {"u": "user", "a": "assistant", "t": "user", "s": "user", "x": "user"}


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """One line of a written session.

    Attributes:
        kind: `u`, `a`, `t`, `s` or `x`.
        key: What names the thing worth remembering in it; else empty.
        text: What is said.
        call: The tool that is called and with what; else empty.
    """

    kind: str
    key: str
    text: str
    call: str


@dataclass(frozen=True, slots=True)
class WrittenSession:
    """A written session and what is asked a day later.

    Attributes:
        lines: In their order.
        questions: The key of what is asked for, and the question.
        unrelated: Prompts that need nothing of the session.
    """

    lines: tuple[WrittenLine, ...]
    questions: tuple[tuple[str, str], ...]
    unrelated: tuple[str, ...]

    def answers(self, key: str, text: str) -> bool:
        """Return whether a memory's text is, or holds, the message that a key marks.

        Its beginning is looked for: further on, something may have been cut out as a secret.
        """
        return any(line.text[:_TELLING] in text for line in self.lines if line.key == key)


def read_session(path: Path = LONG_SESSION) -> WrittenSession:
    """Read a written session."""
    lines, questions, unrelated = [], [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark.startswith("?"):
            questions.append((mark[1:], text))
        elif mark == "!":
            unrelated.append(text)
        elif mark[:1] in _ROLES:
            said, _, call = text.replace("\\n", "\n").partition(">> ")
            lines.append(WrittenLine(mark[0], mark[1:].lstrip("#!"), said.strip(), call))
    return WrittenSession(tuple(lines), tuple(questions), tuple(unrelated))


def transcript_lines(
    lines: Sequence[WrittenLine], *, session: str, folder: Path, began: datetime
) -> list[dict[str, Any]]:
    """Return the lines of Claude Code's transcript of a written session."""
    made: list[dict[str, Any]] = []
    for place, line in enumerate(lines):
        made.append(
            {
                "parentUuid": made[-1]["uuid"] if made else None,
                "isSidechain": line.kind == "s",
                "cwd": str(folder),
                "sessionId": session,
                "version": "2.1.332",
                "type": _ROLES[line.kind],
                "message": _message(line, place),
                "uuid": f"{session}-{place}",
                "timestamp": (began + place * _BETWEEN_LINES).isoformat().replace("+00:00", "Z"),
                **({"isCompactSummary": True} if line.kind == "x" else {}),
                **({"toolUseResult": {"stdout": line.text}} if line.kind == "t" else {}),
            }
        )
    return made


def _message(line: WrittenLine, place: int) -> dict[str, Any]:
    content: Any = line.text
    if line.kind == "t":
        called = f"toolu_{place - 1:04}"
        content = [{"tool_use_id": called, "type": "tool_result", "content": line.text}]
    elif line.kind == "a":
        content = [{"type": "text", "text": line.text}] if line.text else []
    if line.call:
        tool, _, given = line.call.partition(": ")
        name = {"Bash": "command", "Grep": "pattern"}.get(tool, "file_path")
        use = {"type": "tool_use", "id": f"toolu_{place:04}", "name": tool, "input": {name: given}}
        content = [*content, use]
    return {"role": _ROLES[line.kind], "content": content}


def find_turns(lines: Sequence[WrittenLine]) -> Iterator[tuple[int, int]]:
    """Yield of each prompt its place and the place behind the last line of its turn."""
    prompts = [place for place, line in enumerate(lines) if line.kind == "u"]
    yield from zip(prompts, [*prompts[1:], len(lines)], strict=True)


class HookHome:
    """A home of its own with a store, whose hooks are run as Claude Code runs them."""

    def __init__(self, path: Path) -> None:
        """Take a folder; its path is short, as that of a socket in it must be."""
        self.path, self.store = path, path / "store"
        self.folder = path / "peilwacht"
        kept = {name: value for name, value in os.environ.items() if name[:8] != "EKPHORY_"}
        self.environment = {**kept, "HOME": str(path), "XDG_DATA_HOME": str(path / "data")}
        self.state = HookState(self.store)
        # The resident process is asked by this process too.
        os.environ.update(HOME=str(path), XDG_DATA_HOME=str(path / "data"))
        self.folder.mkdir()
        self._git("init", "-q")
        self._git("remote", "add", "origin", f"git@{PROJECT.replace('/', ':', 1)}.git")

    @property
    def scopes(self) -> list[dict[str, str]]:
        """The scopes that a hook recalls from."""
        return [{"project": PROJECT}, {"user": getpass.getuser()}]

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(self.folder), *arguments], check=True)

    def command(self, *words: str) -> list[str]:
        """Return the words of a command on the home's store."""
        return [sys.executable, "-m", "ekphory", *words, "--store", str(self.store)]

    def fire(self, event: EventName, *, session: str, **given: object) -> str:
        """Run a hook with a payload, and return what it answers."""
        payload = {"session_id": session, "cwd": str(self.folder), **given}
        done = subprocess.run(
            self.command("hook", "run", "claude-code", event),
            input=json.dumps(payload, default=str),
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def play(self, written: WrittenSession, *, session: str, began: datetime) -> Path:
        """Run the hooks of a whole session, and return its transcript once all is captured."""
        path = self.path / f"{session}.jsonl"
        lines = transcript_lines(written.lines, session=session, folder=self.folder, began=began)
        path.touch()
        self.fire("session-start", session=session, transcript_path=path, source="startup")
        for start, end in find_turns(written.lines):
            prompt = written.lines[start].text
            self.fire("prompt", session=session, transcript_path=path, prompt=prompt)
            write_lines(path, lines[start:end])
            if any(line.kind == "x" for line in written.lines[start:end]):
                self.fire("compact", session=session, transcript_path=path, trigger="auto")
            self.fire("turn-end", session=session, transcript_path=path, stop_hook_active=False)
        self.fire("session-end", session=session, transcript_path=path, reason="exit")
        self.wait_for_captures()
        return path

    def wait_for_captures(self) -> None:
        """Wait until nothing waits to be captured.

        Raises:
            TimeoutError: It takes longer than five minutes.
        """
        end = time.monotonic() + _WAIT_SECONDS
        while self.state.waiting():
            if time.monotonic() > end:
                raise TimeoutError("what hooks have noted is not captured")
            time.sleep(0.1)

    def find_resident(self) -> int | None:
        """Return the id of the home's resident process; None where there is none."""
        try:
            return int(resident.ask({"status": True}, seconds=10)["pid"])
        except (resident.NoResident, resident.Unanswered):
            return None

    def wait_for_resident(self) -> int:
        """Return the id of the home's resident process once it answers.

        Raises:
            TimeoutError: None came within five minutes.
        """
        end = time.monotonic() + _WAIT_SECONDS
        while (found := self.find_resident()) is None:
            if time.monotonic() > end:
                raise TimeoutError("no resident process came")
            time.sleep(0.1)
        return found

    def stop(self) -> None:
        """End the resident process."""
        subprocess.run(
            [sys.executable, "-m", "ekphory", "daemon", "stop"],
            env=self.environment,
            check=False,
            capture_output=True,
        )


def write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Add lines to a transcript, in one write."""
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
