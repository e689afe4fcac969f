"""Memory that fills itself: from raw messages to memories, without their secrets."""

from ekphory.capture.cleaning import (
    CleanedMessages,
    clean_messages,
    clean_records,
    clean_text,
    values_of,
)
from ekphory.capture.secrets import REDACTED, find_secrets, redact
from ekphory.capture.selection import Captured, CaptureReport, capture
from ekphory.capture.services import Entity, EntityFinder, LabelScorer
from ekphory.capture.transcript import read_messages

__all__ = [
    "REDACTED",
    "CaptureReport",
    "Captured",
    "CleanedMessages",
    "Entity",
    "EntityFinder",
    "LabelScorer",
    "capture",
    "clean_messages",
    "clean_records",
    "clean_text",
    "find_secrets",
    "read_messages",
    "redact",
    "values_of",
]
