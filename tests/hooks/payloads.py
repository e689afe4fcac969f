"""Payloads and transcripts in the form of each tool, as its documentation or code has them."""

import json
from pathlib import Path

TRANSCRIPTS = {
    file.stem: [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for file in (Path(__file__).parent / "transcripts").glob("*.jsonl")
}
CLAUDE_LINES, OPENCODE_LINES = TRANSCRIPTS["claude-code"], TRANSCRIPTS["opencode"]


def write_lines(path, lines):
    """Write lines of JSON, each with its line break."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def prompt_payload(host, *, folder, prompt, session="s1", transcript=None):
    """What a host sends when a prompt is submitted."""
    place = None if transcript is None else str(transcript)
    if host == "cursor":
        return {
            "conversation_id": session, "generation_id": "g",
            "hook_event_name": "beforeSubmitPrompt", "cursor_version": "3.20.17",
            "workspace_roots": [str(folder)],
            "transcript_path": place, "prompt": prompt, "attachments": [],
        }  # fmt: skip
    names = {"gemini-cli": "BeforeAgent"}
    return {
        "session_id": session, "transcript_path": place, "cwd": str(folder),
        "hook_event_name": names.get(host, "UserPromptSubmit"), "prompt": prompt,
    }  # fmt: skip


def end_payload(host, *, folder, session="s1", transcript=None, messages=None):
    """What a host sends at the end of a turn."""
    given = prompt_payload(host, folder=folder, prompt="", session=session, transcript=transcript)
    del given["prompt"]
    return given if messages is None else {**given, "messages": messages}
