"""A log of JSON objects, one a line, in which no exception tells what was stored."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

from ekphory.moments import now_utc

LOG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "ekphory.server.json_lines.JsonLines"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": level, "propagate": False}
        # Uvicorn tells of every start and stop; what matters of it is a warning or worse. What the
        # MCP SDK warns of may quote what a client sent.
        for name, level in (("ekphory", "INFO"), ("uvicorn.error", "WARNING"), ("mcp", "ERROR"))
    },
}
"""The log of a server, as `logging.config.dictConfig` reads it; it goes to standard error."""


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object; of an exception its type and places, not its text."""

    def format(self, record: logging.LogRecord) -> str:
        """Give one line."""
        line: dict[str, Any] = {
            "at": now_utc().isoformat(),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = places_of(record.exc_info[1])
        return json.dumps(line)


def places_of(error: BaseException) -> dict[str, Any]:
    """Give an exception's type and where it came from; its text might hold what was stored."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "type": type(error).__name__,
        "places": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }
