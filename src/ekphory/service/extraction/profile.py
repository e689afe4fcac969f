"""The category that needs nobody to add it: a profile of each user."""

from __future__ import annotations

from collections.abc import Mapping

from ekphory.catalog.categories import Category, Tag
from ekphory.catalog.semantic_sets import SemanticSet
from ekphory.service.semantic_names import set_of

PROFILE_NAME = "profile"
_USER_KEYS = ("user_id", "producer_id")
"""The metadata that says whose profile it is; the first that a message has."""
_UNHEARD_ROLES = frozenset({"assistant", "system", "tool"})
"""What these say is no evidence about a user."""
_PROMPT = (
    "What is worth knowing about the user in later conversations: who they are, how they live and "
    "work, what they like, want, plan and can do. Only what concerns the user, or people and "
    "things close to them; no passing small talk, no general knowledge, no secrets such as "
    "passwords or keys."
)
PROFILE_TAGS = (
    Tag(name="identity", description="name, age, gender, origin, languages, appearance"),
    Tag(name="health", description="conditions, allergies, diet, sleep, fitness"),
    Tag(name="home", description="where and how they live, pets, possessions"),
    Tag(name="people", description="family, partner, friends, colleagues, and how they get on"),
    Tag(name="work", description="job, employer, studies, projects, income"),
    Tag(name="skills", description="what they know or can do, and how well"),
    Tag(name="interests", description="hobbies, sports, music, books, subjects they follow"),
    Tag(name="preferences", description="likes, dislikes, tastes, favourites"),
    Tag(name="habits", description="what they do regularly, and when"),
    Tag(name="plans", description="goals, appointments, wishes, decisions, with their dates"),
    Tag(name="events", description="what happened to them or what they did, with its date"),
    Tag(name="opinions", description="views, values, feelings about something"),
    Tag(name="conversation", description="how they want to be addressed and answered"),
)


def user_set(org: str, project: str, metadata: Mapping[str, str]) -> SemanticSet | None:
    """Give the set that holds the profile of a message's user; None where it names none.

    It is the project's own, so that no other project learns of it.
    """
    for key in _USER_KEYS:
        if metadata.get(key):
            return set_of(org, project, {key: metadata[key]})
    return None


def profile_of(owner: SemanticSet) -> Category | None:
    """Give the category that a set has by itself; None where it is no user's."""
    if owner.project is None or len(owner.tags) != 1 or not set(owner.tags) <= set(_USER_KEYS):
        return None
    return Category(
        org=owner.org, project=owner.project, set_id=owner.id, name=PROFILE_NAME, prompt=_PROMPT
    )


def is_profile(category: Category) -> bool:
    """Whether a category is the one that sets have by themselves."""
    return not category.id


def tells_of_its_user(role: str) -> bool:
    """Whether what is said in a chat role may tell something about the user."""
    return role.lower() not in _UNHEARD_ROLES
