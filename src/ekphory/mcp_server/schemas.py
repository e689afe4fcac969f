"""JSON schemas of arguments and answers, as short as models of all makers can read them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue


class _Short(GenerateJsonSchema):
    """Without titles, and without a null beside a value that may as well be left out."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401  as inherited
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401  likewise
        shown = super().default_schema(schema)
        if shown.get("default", ...) is None:
            del shown["default"]
        return shown

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002  as inherited
        return False


def schema_of(
    model: type[BaseModel], mode: Literal["validation", "serialization"]
) -> dict[str, Any]:
    """Give the schema of what goes in (`validation`) or comes out (`serialization`)."""
    schema = model.model_json_schema(schema_generator=_Short, mode=mode)
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
    return schema
