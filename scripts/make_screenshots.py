"""Makes pictures of the inspector over the demo's memories: python scripts/make_screenshots.py DIR.

Needs the extra `server`, Playwright for Python, and Debian's `chromium`.
"""

from __future__ import annotations

import os
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
WIDTHS = (1440, 390)
QUESTION = "What happened to Biscuit in June?"
CHAIN = "Where was the father of Rembrandt's wife born?"
ASKED_BEFORE = ("What is Mara allergic to?", "Where does Biscuit sleep?", "Who plays the cello?")
PROJECT = {"org_id": "demo", "project_id": "mara"}
VACANT = {"org_id": "demo", "project_id": "vacant"}


@contextmanager
def served_demo(folder: Path) -> Iterator[str]:
    """Serve a store with the demo's memories and recorded searches, and yield its address."""
    os.environ["EKPHORY_RECORD_SEARCHES"] = "100"
    with Memory(folder, org="demo", project="mara") as memory:
        memory.add_many(demo_records())
        for query in ASKED_BEFORE:
            memory.search(query)
    with serving(str(folder), (), log=folder.parent / "server.log") as server:
        with httpx.Client(base_url=f"{server.url}/api/v2", timeout=60) as client:
            for project in (PROJECT, VACANT):
                client.post("/projects", json=project).raise_for_status()
            # What is loaded with the first search is not what a picture is to show.
            for preset in ("accurate", "memory_spark"):
                asked = PROJECT | {"query": QUESTION, "preset": preset}
                client.post("/inspect/search", json=asked).raise_for_status()
            for query in ASKED_BEFORE:
                asked = PROJECT | {"query": query}
                client.post("/memories/search", json=asked).raise_for_status()
        yield server.url


def search(view: Locator) -> None:
    """Ask a question, and unfold what was said around the best hit."""
    view.get_by_role("searchbox", name="Question").fill(QUESTION)
    view.get_by_role("combobox", name="Preset", exact=True).select_option("memory_spark")
    view.get_by_role("button", name="Search").click()
    view.get_by_role("list", name="Hits").wait_for()
    view.get_by_text("The dialogue around it").first.click()
    view.locator(".turn-found").wait_for()


def prompt(view: Locator) -> None:
    """Ask a question, and show the block for the prompt."""
    view.get_by_role("searchbox", name="Question").fill(QUESTION)
    view.get_by_role("button", name="Search").click()
    view.get_by_role("button", name="As the model gets it").click()


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


def memories(view: Locator) -> None:
    """Find some memories by their text, and begin to change one."""
    view.get_by_label("Text contains").fill("biscuit")
    view.get_by_text("1–6 of 6").wait_for()
    view.get_by_role("button", name="Edit").nth(1).click()


def recorded(view: Locator) -> None:
    """Wait for the list of recorded searches."""
    view.locator(".record").first.wait_for()


def store(view: Locator) -> None:
    """Wait for the charts."""
    view.locator("canvas").nth(2).wait_for()


def vacant(view: Locator) -> None:
    """Look at a project that holds nothing."""
    view.page.locator("#project").select_option("demo / vacant")
    view.locator(".empty").wait_for()


SCENES: dict[str, tuple[str, Callable[[Locator], None]]] = {
    "search": ("search", search),
    "memories": ("memories", memories),
    "store": ("store", store),
    "prompt": ("search", prompt),
    "comparison": ("compare", comparison),
    "agent-chain": ("agent", agent_chain),
    "recorded": ("recorded", recorded),
    "vacant": ("search", vacant),
}
DARK = ("search", "store")
PICTURES = (
    *((name, width, "light") for name in SCENES for width in WIDTHS),
    *((name, width, "dark") for name in DARK for width in WIDTHS),
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
            # As high as the page, so that what is fixed to the window's edge is not in the middle.
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": width, "height": height})
            page.screenshot(path=file, animations="disabled")
            page.close()
            print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/screenshots"))
