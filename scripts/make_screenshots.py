"""Makes pictures of the inspector over the demo's memories: python scripts/make_screenshots.py DIR.

Needs the extra `server`, Playwright for Python, and Debian's `chromium`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Locator, sync_playwright

from ekphory.cli.demo import demo_records
from ekphory.memory import Memory
from ekphory_lab.bench.serving import serving

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
WIDTHS = (1280, 400)
QUESTION = "What happened to Biscuit in June?"
CHAIN = "Where was the father of Rembrandt's wife born?"


@contextmanager
def served_demo(folder: Path) -> Iterator[str]:
    """Serve a store with the demo's memories; gives its address."""
    with Memory(folder, org="demo", project="mara") as memory:
        memory.add_many(demo_records())
    with serving(str(folder), (), log=folder.parent / "server.log") as server:
        project = {"org_id": "demo", "project_id": "mara"}
        httpx.post(f"{server.url}/api/v2/projects", json=project).raise_for_status()
        # What is loaded with the first search is not what a picture is to show.
        for preset in ("accurate", "memory_spark"):
            asked = project | {"query": QUESTION, "preset": preset}
            httpx.post(
                f"{server.url}/api/v2/inspect/search", json=asked, timeout=60
            ).raise_for_status()
        yield server.url


def waterfall(view: Locator) -> None:
    """Ask a question, stage by stage."""
    view.get_by_role("searchbox", name="Question").fill(QUESTION)
    view.get_by_role("combobox", name="Preset", exact=True).select_option("memory_spark")
    view.get_by_role("button", name="Search").click()
    view.get_by_role("list", name="Hits").wait_for()


def comparison(view: Locator) -> None:
    """Compare two presets."""
    view.get_by_role("searchbox", name="Question").fill(QUESTION)
    view.get_by_label("Preset B").select_option("accurate")
    view.get_by_role("button", name="Compare").click()
    view.locator(".moves").wait_for()


def agent_chain(view: Locator) -> None:
    """Let the agent follow a question, and step to its last hop."""
    view.get_by_role("searchbox", name="Question").fill(CHAIN)
    view.get_by_role("button", name="Follow").click()
    view.locator(".step-hop_resolved").last.click()


def timeline(view: Locator) -> None:
    """Wait for the picture of all memories."""
    view.locator(".timeline").wait_for()


def health(view: Locator) -> None:
    """Wait for the state of the store."""
    view.locator(".finding").first.wait_for()


SCENES: dict[str, tuple[str, Callable[[Locator], None]]] = {
    "waterfall": ("search", waterfall),
    "comparison": ("compare", comparison),
    "agent-chain": ("agent", agent_chain),
    "timeline": ("memories", timeline),
    "health": ("health", health),
}
PICTURES = (
    *((name, width, "light") for name in SCENES for width in WIDTHS),
    *(("waterfall", width, "dark") for width in WIDTHS),
)


def main(target: Path) -> None:
    """Write one picture for each scene, width and colour scheme."""
    if not CHROMIUM.exists():
        raise SystemExit(f"There is no {CHROMIUM}. Install it with `apt-get install chromium`.")
    target.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        served_demo(Path(folder) / "store") as url,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS) as browser,
    ):
        for name, width, scheme in PICTURES:
            view, act = SCENES[name]
            size = {"width": width, "height": 900}
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(f"{url}/inspect#/{view}")
            page.locator("html[data-ready]").wait_for()
            act(page.locator(f"#{view}"))
            file = target / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=file, full_page=True, animations="disabled")
            page.close()
            print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/screenshots"))
