"""What hosts of agents put around a message, as data: blocks, prefixes of lines, whole lines.

The list is that of Memory-Spark's query cleaning, in the forms in which OpenClaw and its kin write
it; everything needs a mark that people do not type, so that brackets and code in a question stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text from a mark at which it opens to the next mark at which it closes.

    Attributes:
        name: What the trace calls it; None for what must be kept, whatever stands in it.
        opens: Matches its beginning, and begins with a plain character, which keeps scans fast.
        closes: Matches its end; matches nothing at all where `opens` is the whole block.
    """

    name: str | None
    opens: re.Pattern[str]
    closes: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class LineMark:
    """A mark at the start of a line, or a line that is nothing else."""

    name: str
    pattern: re.Pattern[str]


_METADATA_LABELS = (
    "Conversation info",
    "Sender",
    "Thread starter",
    "Replied message",
    "Forwarded message context",
    "Chat history since last reply",
)
_CHANNELS = (
    "Discord|Feishu|Google Chat|IRC|LINE|Matrix|Mattermost|MS Teams|Nostr|Signal|Slack|Telegram|"
    "Tlon|WebChat|WhatsApp|Zalo|iMessage"
)
_WEEKDAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_MOMENT = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?"
_ZONE = r"(?:Z| ?(?:UTC|GMT)?[+-]\d{1,2}(?::?\d{2})?| [A-Z]{2,5})?"
_EXTERNAL = r"<<<EXTERNAL_UNTRUSTED_CONTENT[^<>]{0,200}>>>"
_EXTERNAL_END = r"<<<END_EXTERNAL_UNTRUSTED_CONTENT[^<>]{0,200}>>>"


def _block(name: str | None, opens: str, closes: str = "") -> Block:
    return Block(name, re.compile(opens), re.compile(closes))


def _prefix(name: str, pattern: str) -> LineMark:
    return LineMark(name, re.compile(rf"{pattern}\s*+"))


def _line(name: str, pattern: str) -> LineMark:
    return LineMark(name, re.compile(pattern))


BLOCKS: tuple[Block, ...] = (
    _block(
        "conversation history",
        r"\[Chat messages since your last reply - for context\]",
        r"\[Current message - respond to this\]",
    ),
    *(
        _block("metadata", rf"{label} \(untrusted[^()\n]{{0,80}}\):\s{{0,20}}```", "```")
        for label in _METADATA_LABELS
    ),
    _block("metadata", r'```json\s{0,20}\{[^`]*?"message_id"', "```"),
    _block(
        "metadata", rf"Untrusted context \([^()\n]{{0,120}}\):\s{{0,20}}{_EXTERNAL}", _EXTERNAL_END
    ),
    _block("external content", _EXTERNAL, _EXTERNAL_END),
    _block("recalled memories", r"<relevant-memories(?:\s[^<>]{0,200})?>", "</relevant-memories>"),
    _block("summary", r'<summary\s[^<>]{0,200}?\bid="sum_[^<>]{0,200}>', "</summary>"),
    _block("comment", "<!--", "-->"),
    _block("attachment", r"\[media attached(?: \d{1,3}/\d{1,3})?:[^\[\]\n]{0,1000}\]"),
    _block(None, "```", "```"),
    _block(None, "`[^`\n]{1,200}`"),
)
"""In the order in which they are tried at one place."""

TASK_QUEUE = re.compile(
    r"""
    ^[^\S\n]*+ (?: \#\#\ Current\ Task\ Queue | \#\#\#\ 🔄\ In\ Progress )
    [^\S\n]*+ (?: \([^()\n]{0,80}\) )?+ :?+ [^\S\n]*+ $
    (?: \n[^\S\n]*+ (?: (?: [-*+•|>] | \d{1,3}[.)] | \#{3,6}\  ) [^\n]*+ | $ ) )*+
    """,
    re.MULTILINE | re.VERBOSE,
)
"""The heading, and the lists, tables, lesser headings and empty lines that follow it."""

PREFIXES: tuple[LineMark, ...] = (
    _prefix(
        "timestamp",
        rf"\[(?:(?:{_CHANNELS})\b[^\[\]\n]{{0,120}}? )?(?:{_WEEKDAYS}),? {_MOMENT}{_ZONE}\]",
    ),
    _prefix("timestamp", rf"\[(?:{_CHANNELS})\b[^\[\]\n]{{0,120}}? {_MOMENT}{_ZONE}\]"),
    _prefix("system note", r"\[System:[^\[\]\n]{0,1000}\]"),
    _prefix("message id", r"\[message_id:[^\[\]\n]{0,200}\]"),
    _prefix("sender", r"\[from:[^\[\]\n]{0,200}\]"),
    _prefix("reply tag", r"\[\[reply_to[^\[\]\n]{0,200}\]\]"),
)
"""What a line may begin with, several in a row."""

LINES: tuple[LineMark, ...] = (
    _line("heartbeat", r"\W*+(?:(?:HEARTBEAT_OK|HEARTBEAT_DISABLED|NO_REPLY)(?!\w)\W*+)++"),
    _line("system note", rf"System: \[(?:(?:{_WEEKDAYS}),? )?{_MOMENT}{_ZONE}\].*+"),
)
"""What a line may be as a whole."""
