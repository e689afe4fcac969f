"""Memory that fills itself: from raw messages to memories, without their secrets."""

from ekphory.capture.secrets import REDACTED, find_secrets, redact
from ekphory.capture.selection import (
    Captured,
    CaptureReport,
    Entity,
    capture,
    clean_messages,
    clean_records,
    clean_text,
)
from ekphory.capture.transcript import read_messages

__all__ = [
    "REDACTED",
    "CaptureReport",
    "Captured",
    "Entity",
    "capture",
    "clean_messages",
    "clean_records",
    "clean_text",
    "find_secrets",
    "read_messages",
    "redact",
]
