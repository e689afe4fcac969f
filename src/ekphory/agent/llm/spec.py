"""The Markdown bundle: front matter and sections, checked when it is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any, Literal, get_args

from ekphory.errors import InvalidInput, MissingExtra

SpecKind = Literal["top-level", "sub-agent"]
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_VERSION = "v1"
_PACKAGE = "ekphory.agent.llm.bundle"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One Markdown file of the bundle.

    Attributes:
        name: What it is called.
        version: Version of the form.
        kind: `top-level` for the agent, `sub-agent` for guidance that it may take up.
        description: What it is for.
        route_name: What a trace calls the way.
        timeout_seconds: How long it is meant to take.
        max_return_len: Most characters of one answer of the tool.
        max_steps: Most messages of the model.
        fallback_hook: What is done where it cannot go on.
        allowed_actions, allowed_tools: What it may use.
        required_sections: Which sections the body has.
        body: The Markdown after the front matter.
    """

    name: str
    version: str
    kind: SpecKind
    description: str
    route_name: str
    timeout_seconds: int
    max_return_len: int
    max_steps: int
    fallback_hook: str
    allowed_actions: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    required_sections: tuple[str, ...]
    body: str


def load_spec(name: str) -> AgentSpec:
    """Load one of the bundled files, `retrieve_agent` or `coq`.

    Raises:
        InvalidInput: It breaks the form.
        MissingExtra: The YAML reader is not installed.
    """
    text = files(_PACKAGE).joinpath(f"{name}.md").read_text(encoding="utf-8")
    return read_spec(text, place=f"{name}.md")


def read_spec(text: str, *, place: str) -> AgentSpec:
    """Read a Markdown file of the bundle.

    Args:
        text: The file.
        place: What error messages call it.

    Raises:
        InvalidInput: A field or a section is missing, or a value is wrong.
        MissingExtra: The YAML reader is not installed.
    """
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise InvalidInput(place, text[:40], "has no front matter", "Begin it with --- lines")
    given = _front_matter(found[1], place)
    body = found[2].strip() + "\n"
    names = [field.name for field in fields(AgentSpec) if field.name != "body"]
    for name in names:
        if name not in given:
            raise InvalidInput(place, name, "is missing in the front matter", "Add it")
    for name in given:
        if name not in names:
            raise InvalidInput(place, name, "is no field of the front matter", "Remove it")
    spec = AgentSpec(body=body, **{name: _frozen(given[name]) for name in names})
    _check(spec, place)
    return spec


def _front_matter(text: str, place: str) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("agent", "The agent's language models") from error
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidInput(place, text[:40], f"is no YAML: {error}", "Correct it") from error
    if not isinstance(given, dict):
        raise InvalidInput(place, given, "is no mapping", "Give `name: value` lines")
    return given


def _frozen(value: object) -> Any:  # noqa: ANN401  whatever YAML holds; checked below
    return tuple(value) if isinstance(value, list) else value


def _check(spec: AgentSpec, place: str) -> None:
    if spec.version != _VERSION:
        raise InvalidInput(place, spec.version, "is no known version", f"Write {_VERSION}")
    if spec.kind not in get_args(SpecKind):
        raise InvalidInput(
            place, spec.kind, "is no kind", f"Write {' or '.join(get_args(SpecKind))}"
        )
    for name in ("timeout_seconds", "max_return_len", "max_steps"):
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInput(place, value, f"{name} is no whole number above 0", "Give one")
    for name in ("allowed_actions", "allowed_tools", "required_sections"):
        value = getattr(spec, name)
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            raise InvalidInput(place, value, f"{name} is no list of texts", "Give one")
    for section in spec.required_sections:
        if not re.search(rf"^## {re.escape(section)}\s*$", spec.body, re.MULTILINE):
            raise InvalidInput(place, section, "is a section that is missing", f"Add ## {section}")
