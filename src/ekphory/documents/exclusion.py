"""Which files and folders a caller wants passed over."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from ekphory.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Files and folders that are passed over, by shell patterns; a folder with all that is in it.

    A pattern without `/` is compared with the names of files and folders at any depth; one with `/`
    with their paths below the root, where `*` also stands for `/`. Upper and lower case differ.

    Attributes:
        patterns: Such as `drafts`, `*.draft.md` or `handbook/old/*`; a `/` at the end is no matter.
    """

    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if not pattern.strip("/ "):
                raise InvalidInput("exclude", pattern, "names nothing", "Give one like 'drafts'.")

    def covers(self, path: str) -> bool:
        """Say whether a path below the root, written with `/`, is excluded by its own name.

        That a folder above it is excluded is not looked at.
        """
        return any(_matches(path, pattern.rstrip("/")) for pattern in self.patterns)


def _matches(path: str, pattern: str) -> bool:
    if "/" in pattern:
        return fnmatchcase(path, pattern.removeprefix("./").lstrip("/"))
    return fnmatchcase(path.rpartition("/")[2], pattern)


NOTHING_EXCLUDED = Exclusion()
