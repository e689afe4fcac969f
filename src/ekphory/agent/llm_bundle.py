"""The Markdown bundle that instructs a language model, and the same as a directory of skills."""

from __future__ import annotations

import base64
import io
import shlex
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ekphory.errors import InvalidInput, MissingExtra

_PACKAGE = "ekphory.agent.bundle"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One Markdown file of the bundle.

    Attributes:
        name: What it is called.
        description: What it is for.
        max_return_len: Most characters of one answer of the tool.
        max_steps: Most messages of the model.
        body: The Markdown after the front matter.
    """

    name: str
    description: str
    max_return_len: int
    max_steps: int
    body: str


def load_spec(name: str) -> AgentSpec:
    """Load one of the bundled files, `retrieve_agent` or `coq`.

    Raises:
        MissingExtra: The YAML reader is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("agent", "The agent's language models") from error
    text = files(_PACKAGE).joinpath(f"{name}.md").read_text(encoding="utf-8")
    _, front_matter, body = text.split("---\n", 2)
    return AgentSpec(**yaml.safe_load(front_matter), body=body.strip() + "\n")


# The bundle as a directory of skills, for services that read it from one.

_READING = frozenset({"cat", "head", "tail", "sed", "less", "more", "nl"})
_SEARCHING = ("memmachine", "search")
_MANIFEST = "SKILL.md"
_ROOT = "agent_native_bundle_root"
_NOT_ALLOWED = 'Only reading the attached guidance and `memmachine search "<query>"` are allowed.'


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

    def run(self, command: str, search: Callable[[str], str]) -> str:
        """Interpret a command that a model wants run; no shell ever sees it.

        Files of the bundle are given whole, whatever part was asked for; the command that
        searches is answered by `search`; everything else is refused.
        """
        try:
            words = shlex.split(command)
        except ValueError:
            return _NOT_ALLOWED
        if tuple(words[:2]) == _SEARCHING and len(words) > 2:
            return search(" ".join(words[2:]))
        if words[:1] == ["ls"]:
            return "\n".join(str(self.path(spec) / _MANIFEST) for spec in self.specs)
        named = next((spec for spec in self.specs if words and self._names(words[-1], spec)), None)
        if named is not None and words[0] in _READING:
            return render_manifest(named)
        return _NOT_ALLOWED

    def _names(self, word: str, spec: AgentSpec) -> bool:
        """Whether a word is the path of a skill's file, which is compared and never opened."""
        return Path(word).name == _MANIFEST and Path(word).parent.name == spec.name


def render_manifest(spec: AgentSpec) -> str:
    """Return a skill's file: its name and description, and the guidance."""
    return f"---\nname: {spec.name}\ndescription: {spec.description}\n---\n\n{spec.body}"


def zip_skill(spec: AgentSpec) -> str:
    """Return a skill as a zip archive, in base64."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writing:
        # A fixed date: the same skill gives the same bytes.
        entry = zipfile.ZipInfo(f"{spec.name}/{_MANIFEST}", date_time=(2020, 1, 1, 0, 0, 0))
        writing.writestr(entry, render_manifest(spec))
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
    with ExitStack() as made:
        try:
            folder = None if root is None else Path(root).expanduser()
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            held = tempfile.TemporaryDirectory(
                prefix="ekphory-agent-", dir=folder, ignore_cleanup_errors=True
            )
            place = Path(made.enter_context(held))
            for spec in specs:
                (place / spec.name).mkdir()
                (place / spec.name / _MANIFEST).write_text(render_manifest(spec), encoding="utf-8")
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise InvalidInput(_ROOT, root, problem, "Name another") from error
        yield BundleDirectory(place, tuple(specs))
