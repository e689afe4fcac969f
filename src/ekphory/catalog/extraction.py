"""Episodes that features are still to be learnt from, and how large groups of features are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ekphory.catalog.database import Database, Value

# How large each group of features was when it was last put in order.


class FeatureGroup(NamedTuple):
    """The features of one user, in one set, under one tag of one category.

    Attributes:
        org, project: Whose set it is; a project of None is the whole organisation's.
        set_id, category, tag: Which features.
        user: Whom they are about; None for those that are about no user.
    """

    org: str
    project: str | None
    set_id: str
    category: str
    tag: str
    user: str | None


class Consolidations:
    """The table of sizes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def size(self, group: FeatureGroup) -> int:
        """Return how many features were left when the group was put in order; 0 for never."""
        rows = self._database.read(
            "SELECT features FROM consolidations WHERE org = ? AND project IS ? AND set_id = ? "
            "AND category = ? AND tag = ? AND user IS ?",
            group,
        )
        return rows[0]["features"] if rows else 0

    def note(self, group: FeatureGroup, size: int) -> None:
        """Note how many features are left in a group that was put in order."""
        self._database.write(
            "INSERT OR REPLACE INTO consolidations "
            "(org, project, set_id, category, tag, user, features) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*group, size),
        )


# The queue of episodes from which features are still to be learnt.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionJob:
    """One episode from which features are to be learnt.

    Attributes:
        id: Its number; lower ones were added earlier.
        org, project: Whose episode it is.
        reach: How far changes may go, as `Place.reach` has it.
        episode: The episode's id.
        done: Which steps of it need not be done again.
        attempts: How often it has failed.
    """

    id: int
    org: str
    project: str
    reach: str
    episode: str
    done: frozenset[str] = frozenset()
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class FailedExtraction:
    """An episode from which nothing more will be learnt unless that is asked for anew."""

    episode: str
    reason: str
    attempts: int


class ExtractionQueue:
    """The table of jobs. What is in it outlives this process, also where it is killed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, owner: tuple[str, str], reach: str, episodes: Iterable[str], *, due: float = 0
    ) -> None:
        """Add episodes of a project, in order; one that is in the queue already stays as it is.

        They are read from `due` (Unix seconds) on, or from when `let_begin` is called.
        """
        org, project = owner
        shared: dict[str, Value] = {"org": org, "project": project, "reach": reach, "due": due}
        rows = [{**shared, "episode": episode} for episode in episodes]
        self._database.insert_new("extraction_jobs", rows)

    def let_begin(self, owner: tuple[str, str], *, least: int) -> None:
        """Let a project's episodes be read now, if so many of them have gathered."""
        if self.length(owner)[0] >= least:
            self._database.write(
                "UPDATE extraction_jobs SET due = 0 "
                "WHERE org = ? AND project = ? AND failure IS NULL AND attempts = 0",
                owner,
            )

    def next(self, now: float) -> ExtractionJob | None:
        """Return the earliest job that is due at a moment (Unix seconds); None where there is none.

        While a job waits for its next attempt, later ones of the same project wait behind it:
        what was said later must be learnt later.
        """
        rows = self._database.read(
            "SELECT id, org, project, reach, episode, done, attempts "
            "FROM extraction_jobs AS job WHERE failure IS NULL AND due <= ?1 "
            "AND NOT EXISTS (SELECT 1 FROM extraction_jobs AS earlier WHERE failure IS NULL "
            "AND due > ?1 AND earlier.id < job.id "
            "AND earlier.org = job.org AND earlier.project = job.project) "
            "ORDER BY id LIMIT 1",
            (now,),
        )
        if not rows:
            return None
        return ExtractionJob(**{**rows[0], "done": frozenset(json.loads(rows[0]["done"]))})

    def holds(self, job: ExtractionJob) -> bool:
        """Whether a job is still wanted: its project may have been deleted meanwhile."""
        return bool(self._database.read("SELECT 1 FROM extraction_jobs WHERE id = ?", (job.id,)))

    def note_done(self, job: ExtractionJob, step: str) -> None:
        """Note that a step of a job need not be done again."""
        self._database.write(
            "UPDATE extraction_jobs SET done = json_insert(done, '$[#]', ?) WHERE id = ?",
            (step, job.id),
        )

    def finish(self, job: ExtractionJob) -> None:
        """Take a job out, as all of it is done."""
        self._database.write("DELETE FROM extraction_jobs WHERE id = ?", (job.id,))

    def drop(self, owner: tuple[str, str]) -> None:
        """Take out all jobs of a project."""
        self._database.write("DELETE FROM extraction_jobs WHERE org = ? AND project = ?", owner)

    def put_off(self, job: ExtractionJob, *, due: float) -> None:
        """Count a failure, and let the job wait until a moment (Unix seconds)."""
        self._database.write(
            "UPDATE extraction_jobs SET attempts = attempts + 1, due = ? WHERE id = ?",
            (due, job.id),
        )

    def give_up(self, job: ExtractionJob, reason: str) -> None:
        """Count a failure, and keep the job with its reason, to be seen and asked for anew."""
        self._database.write(
            "UPDATE extraction_jobs SET attempts = attempts + 1, failure = ? WHERE id = ?",
            (reason, job.id),
        )

    def ask_again(self, owner: tuple[str, str]) -> int:
        """Let a project's failed jobs wait again; return how many."""
        return self._database.write(
            "UPDATE extraction_jobs SET failure = NULL, attempts = 0, due = 0 "
            "WHERE org = ? AND project = ? AND failure IS NOT NULL",
            owner,
        )

    def failed(self, owner: tuple[str, str], *, limit: int) -> list[FailedExtraction]:
        """Return a project's failed jobs, the newest first."""
        rows = self._database.read(
            "SELECT episode, failure AS reason, attempts FROM extraction_jobs "
            "WHERE org = ? AND project = ? AND failure IS NOT NULL ORDER BY id DESC LIMIT ?",
            (*owner, limit),
        )
        return [FailedExtraction(**row) for row in rows]

    def length(self, owner: tuple[str, str] | None = None) -> tuple[int, int]:
        """Return how many episodes of a project, or of all, wait, and how many were given up."""
        org, project = owner or (None, None)
        rows = self._database.read(
            "SELECT count(*) FILTER (WHERE failure IS NULL) AS waiting, "
            "count(*) FILTER (WHERE failure IS NOT NULL) AS failed FROM extraction_jobs "
            "WHERE ?1 IS NULL OR (org = ?1 AND project = ?2)",
            (org, project),
        )
        return rows[0]["waiting"], rows[0]["failed"]
