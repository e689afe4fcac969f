"""Names of organisations, projects and ids, and the numbers that all requests share."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

UNIVERSAL = "universal"
"""The organisation and the project of a request that names none."""
_LONGEST_NAME = 1_000
_NAME = re.compile(r"[\w:-]+")


def _is_name(value: str) -> str:
    if not _NAME.fullmatch(value) or len(value) > _LONGEST_NAME:
        raise ValueError("a name has 1 to 1,000 letters, digits, underscores, hyphens and colons")
    return value


def _is_name_or_empty(value: str) -> str:
    return value and _is_name(value)


Name = Annotated[
    str,
    AfterValidator(_is_name),
    WithJsonSchema({"type": "string", "pattern": r"^[A-Za-z0-9_:-]+$", "maxLength": _LONGEST_NAME}),
]
"""Letters and digits of any script, `_`, `-` and `:`."""
NameOrEmpty = Annotated[str, AfterValidator(_is_name_or_empty)]


class InProject(BaseModel):
    """Names a project; the universal one where it names none."""

    org_id: Annotated[Name, Field(description="The organisation.", examples=["home"])] = UNIVERSAL
    project_id: Annotated[Name, Field(description="The project.", examples=["chat"])] = UNIVERSAL
