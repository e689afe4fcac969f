"""What `recall` and `explain` both take: a question, and how it is asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ekphory.mcp_server.shown import MOST_SHOWN
from ekphory.types import TimeUse

FILTER = (
    "Only memories for which this holds, such as: type = 'semantic' AND at >= date('2026-01-31') "
    "AND metadata.topic IN ('travel')."
)
Count = Annotated[int, Field(ge=1, le=MOST_SHOWN, description="How many hits at most.")]
Condition = Annotated[str | None, Field(description=FILTER)]
LeastScore = Annotated[
    float | None, Field(description="Only hits of at least this probability, 0 to 1.")
]
TimeInWords = Annotated[
    TimeUse,
    Field(
        description="What a time in the question does, such as last week: boost lifts what lies "
        "in it, filter hides all else, ignore does nothing."
    ),
]
Timezone = Annotated[str, Field(description="Where the user's days begin, such as Europe/Berlin.")]
MostTokens = Annotated[int, Field(ge=1, description="Limit for the text of the answer.")]
