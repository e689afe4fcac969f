"""The Markdown bundle that instructs a language model, and the same as a directory of skills."""

from __future__ import annotations

import base64
import io
import re
import shlex
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from ekphory.errors import InvalidInput, MissingExtra

# The Markdown bundle: front matter and sections, checked when it is loaded.

SpecKind = Literal["top-level", "sub-agent"]
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_VERSION = "v1"
_PACKAGE = "ekphory.agent.bundle"


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
            raise InvalidInput(place, name, "must be a field of the front matter", "Remove it")
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
        raise InvalidInput(place, text[:40], f"must be YAML: {error}", "Correct it") from error
    if not isinstance(given, dict):
        raise InvalidInput(place, given, "must be a mapping", "Give `name: value` lines")
    return given


def _frozen(value: object) -> Any:  # noqa: ANN401  whatever YAML holds; checked below
    return tuple(value) if isinstance(value, list) else value


def _check(spec: AgentSpec, place: str) -> None:
    if spec.version != _VERSION:
        raise InvalidInput(place, spec.version, "must be a known version", f"Write {_VERSION}")
    if spec.kind not in get_args(SpecKind):
        raise InvalidInput(
            place, spec.kind, "must be a kind", f"Write {' or '.join(get_args(SpecKind))}"
        )
    for name in ("timeout_seconds", "max_return_len", "max_steps"):
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInput(place, value, f"{name} must be an integer above 0", "Give one")
    for name in ("allowed_actions", "allowed_tools", "required_sections"):
        value = getattr(spec, name)
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            raise InvalidInput(place, value, f"{name} must be a list of strings", "Give one")
    for section in spec.required_sections:
        if not re.search(rf"^## {re.escape(section)}\s*$", spec.body, re.MULTILINE):
            raise InvalidInput(place, section, "is a section that is missing", f"Add ## {section}")


# The bundle as a directory of skills, for services that read it from one.

_READING = frozenset({"cat", "head", "tail", "sed", "less", "more", "nl"})
_SEARCHING = ("memmachine", "search")
_MANIFEST = "SKILL.md"
_NOT_ALLOWED = 'Only reading the attached guidance and `memmachine search "<query>"` are allowed.'


@dataclass(frozen=True, slots=True)
class ShellSearch:
    """A command that is a search."""

    query: str


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """What a command gives."""

    text: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class BundleDirectory:
    """The bundle on disk, a directory for each skill.

    Attributes:
        root: Where the skills lie.
        specs: The skills.
    """

    root: Path
    specs: tuple[AgentSpec, ...]

    def path(self, spec: AgentSpec) -> Path:
        """Return the directory of a skill."""
        return self.root / spec.name

    def run(self, command: str) -> ShellSearch | ShellOutput:
        """Interpret a command that a model wants run; no shell ever sees it.

        Files of the bundle are given whole, whatever part was asked for; the command that
        searches is handed back; everything else is refused.
        """
        try:
            words = shlex.split(command)
        except ValueError:
            return ShellOutput(_NOT_ALLOWED, 126)
        if tuple(words[:2]) == _SEARCHING and len(words) > 2:
            return ShellSearch(" ".join(words[2:]))
        if words[:1] == ["ls"]:
            return ShellOutput(
                "\n".join(str(self.path(spec) / _MANIFEST) for spec in self.specs), 0
            )
        named = next((spec for spec in self.specs if words and self._names(words[-1], spec)), None)
        if words[:1] and words[0] in _READING and named is not None:
            return ShellOutput(manifest(named), 0)
        return ShellOutput(_NOT_ALLOWED, 126)

    def _names(self, word: str, spec: AgentSpec) -> bool:
        """Whether a word is the path of a skill's file, which is compared and never opened."""
        return Path(word).name == _MANIFEST and Path(word).parent.name == spec.name


def manifest(spec: AgentSpec) -> str:
    """Return a skill's file: its name and description, and the guidance."""
    return f"---\nname: {spec.name}\ndescription: {spec.description}\n---\n\n{spec.body}"


def zipped(spec: AgentSpec) -> str:
    """Return a skill as a zip archive, in base64."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writing:
        # A fixed date: the same skill gives the same bytes.
        entry = zipfile.ZipInfo(f"{spec.name}/{_MANIFEST}", date_time=(2020, 1, 1, 0, 0, 0))
        writing.writestr(entry, manifest(spec))
    return base64.b64encode(archive.getvalue()).decode("ascii")


@contextmanager
def lay_out(specs: Sequence[AgentSpec], root: str | None) -> Iterator[BundleDirectory]:
    """Lay the bundle out for one session, and remove it afterwards.

    Args:
        specs: The skills.
        root: Directory to make it in; None for that of temporary files.

    Raises:
        InvalidInput: The directory cannot be written.
    """
    try:
        folder = None if root is None else Path(root).expanduser()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(
            prefix="ekphory-agent-", dir=folder, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise _unwritable(root, error) from error
    with made as place:
        try:
            _write(specs, Path(place))
        except OSError as error:
            raise _unwritable(root, error) from error
        yield BundleDirectory(Path(place), tuple(specs))


def _write(specs: Sequence[AgentSpec], place: Path) -> None:
    for spec in specs:
        (place / spec.name).mkdir()
        (place / spec.name / _MANIFEST).write_text(manifest(spec), encoding="utf-8")


def _unwritable(root: str | None, error: OSError) -> InvalidInput:
    return InvalidInput(
        "agent_native_bundle_root", root, f"cannot be written: {error.strerror}", "Name another"
    )
