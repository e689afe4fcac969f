"""Payloads and transcripts in the form of each tool, as its documentation or code has them."""

import json

CLAUDE_LINES = [
    {
        "parentUuid": None, "isSidechain": False, "cwd": "/home/u/app", "sessionId": "s1",
        "version": "2.1.332", "type": "user",
        "message": {"role": "user", "content": "Use tabs here"},
        "uuid": "a1", "timestamp": "2026-11-25T12:00:00.123Z",
    },
    {
        "parentUuid": "a1", "isSidechain": False, "sessionId": "s1", "type": "assistant",
        "message": {
            "id": "msg_01", "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "…", "signature": "…"},
                {"type": "text", "text": "Reading it now."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}},
            ],
        },
        "uuid": "b1", "timestamp": "2026-11-25T12:00:01Z",
    },
    {
        "sessionId": "s1", "type": "user",
        "message": {
            "role": "user",
            "content": [{"tool_use_id": "t1", "type": "tool_result", "content": "ok\n"}],
        },
        "toolUseResult": {"stdout": "ok\n"}, "uuid": "c1", "timestamp": "2026-11-25T12:00:02Z",
    },
    {"type": "system", "subtype": "compact_boundary", "uuid": "d1"},
    {
        "type": "user", "isSidechain": True, "uuid": "e1",
        "message": {"role": "user", "content": "a helper's own prompt"},
    },
    {
        "type": "user", "uuid": "f1",
        "message": {"role": "user", "content": "<command-name>/clear</command-name>"},
    },
]  # fmt: skip

CODEX_LINES = [
    {"timestamp": "2026-11-25T12:00:00Z", "type": "session_meta", "payload": {"id": "s1"}},
    {
        "timestamp": "2026-11-25T12:00:00Z", "type": "response_item",
        "payload": {
            "type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>…"}],
        },
    },
    {
        "timestamp": "2026-11-25T12:00:01Z", "type": "response_item",
        "payload": {
            "type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "Use tabs here"}],
        },
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Use tabs here"}},
    {
        "timestamp": "2026-11-25T12:00:02Z", "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    },
    {
        "timestamp": "2026-11-25T12:00:03Z", "type": "response_item",
        "payload": {
            "type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "Done."}],
        },
    },
]  # fmt: skip

GEMINI_LINES = [
    {"sessionId": "s1", "kind": "main"},
    {
        "id": "u1", "timestamp": "2026-11-25T12:00:00Z", "type": "user",
        "content": [{"text": "Use tabs"}],
    },
    {"$set": {"lastUpdated": "2026-11-25T12:00:01Z"}},
    {"id": "g1", "timestamp": "2026-11-25T12:00:01Z", "type": "gemini", "content": "Reading"},
    {
        "id": "g1", "timestamp": "2026-11-25T12:00:01Z", "type": "gemini", "content": "Done.",
        "toolCalls": [{"id": "c1", "name": "shell", "resultDisplay": "ok"}],
    },
    {"id": "u2", "timestamp": "2026-11-25T12:00:02Z", "type": "user", "content": "taken back"},
    {"$rewindTo": "u2"},
]  # fmt: skip

CURSOR_LINES = [
    {
        "role": "user",
        "message": {
            "content": [
                {
                    "type": "text",
                    "text": "<timestamp>Wed</timestamp>\n<user_query>\nUse tabs\n</user_query>",
                }
            ]
        },
    },
    {
        "role": "assistant",
        "message": {
            "content": [
                {"type": "text", "text": "Done."},
                {"type": "tool_use", "name": "Shell", "input": {"command": "make"}},
            ]
        },
    },
]

OPENCODE_LINES = [
    {
        "info": {"id": "m1", "role": "user", "time": {"created": 1764072000000}},
        "parts": [{"id": "p1", "type": "text", "text": "Use tabs"}],
    },
    {
        "info": {"id": "m2", "role": "assistant", "time": {"created": 1764072001000}},
        "parts": [
            {"type": "step-start"},
            {"type": "text", "text": "recalled before", "synthetic": True},
            {"type": "text", "text": "Done."},
            {"type": "tool", "tool": "bash", "state": {"status": "completed", "output": "ok"}},
        ],
    },
]

OPENCLAW_LINES = [
    {"role": "user", "content": [{"type": "text", "text": "Use tabs"}], "timestamp": 1764072000000},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Done."},
            {"type": "toolCall", "id": "c1", "name": "exec", "arguments": {}},
        ],
        "timestamp": 1764072001000,
    },
    {
        "role": "toolResult",
        "toolCallId": "c1",
        "content": [{"type": "text", "text": "ok"}],
        "timestamp": 1764072002000,
    },
]


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
