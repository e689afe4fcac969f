"""Who asks, and where that lets them act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from ekphory.catalog.access_keys import AccessKey, Rights
from ekphory.catalog.failures import NotPermitted
from ekphory.server.wire.names import InProject
from ekphory.service.place import Place

_ORDER: tuple[Rights, ...] = get_args(Rights)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request.

    Attributes:
        name: The id of their key, or an address; for logs and rate limits.
        org, project: What their key is bound to; None for any.
        rights: What they may do.
    """

    name: str
    org: str | None = None
    project: str | None = None
    rights: Rights = "admin"

    @classmethod
    def with_key(cls, key: AccessKey) -> Caller:
        """Give the caller that a key stands for."""
        return cls(key.id, key.org, key.project, key.rights)

    def may(self, needed: Rights) -> bool:
        """Whether this much is allowed anywhere at all."""
        return _ORDER.index(self.rights) >= _ORDER.index(needed)

    def check_rights(self, needed: Rights) -> None:
        """Check that this much is allowed anywhere at all.

        Raises:
            NotPermitted: It is not.
        """
        if not self.may(needed):
            raise NotPermitted(
                f"This needs a key with the right to {needed}; this one may {self.rights}."
            )

    def may_see(self, org: str, project: str) -> bool:
        """Whether a project is within what the key is bound to."""
        return self.org in (None, org) and self.project in (None, project)

    def place(self, org: str, project: str, needed: Rights) -> Place:
        """Give a project to act in.

        Raises:
            NotPermitted: The key does not reach there, or not for this.
        """
        self.check_rights(needed)
        if not self.may_see(org, project):
            raise NotPermitted("The key is bound to another organisation or project.")
        return Place(org, project, "org" if self.project is None else "project")

    def place_of(self, request: InProject, needed: Rights) -> Place:
        """Give the project that a request names; where it names none, the key's own.

        Raises:
            NotPermitted: The key does not reach there, or not for this.
        """
        given = request.model_fields_set
        org = request.org_id if "org_id" in given else self.org or request.org_id
        project = request.project_id if "project_id" in given else self.project
        return self.place(org, project or request.project_id, needed)
