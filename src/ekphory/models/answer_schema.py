"""Checks an answer against a JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match

from ekphory.errors import InvalidInput


class AnswerSchema:
    """A JSON schema (draft 2020-12) that answers have to follow."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Check the schema itself.

        Raises:
            InvalidInput: It is no JSON schema.
        """
        self.schema = dict(schema)
        try:
            Draft202012Validator.check_schema(self.schema)
        except SchemaError as error:
            raise InvalidInput(
                "schema", self.schema, f"no JSON schema ({error.message})", "Correct it"
            ) from error
        self._validator = Draft202012Validator(self.schema)

    def breach(self, answer: object) -> str | None:
        """Say where an answer breaks the schema and how; None where it follows it."""
        error = best_match(self._validator.iter_errors(answer))
        return None if error is None else f"{error.json_path}: {error.message}"
