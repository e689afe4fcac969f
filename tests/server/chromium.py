"""A real browser, headless: Debian's Chromium, driven by Playwright."""

from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
PATIENCE = 15_000
"""Milliseconds that something on a page may take; the machine may be busy."""


@contextmanager
def headless_chromium():
    """Start it; skips the tests where there is none."""
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}: apt-get install chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class InspectorPage:
    """The inspector in a tab of its own, and every address that it asked."""

    def __init__(self, browser, url, *, width=1280):
        self._context = browser.new_context(viewport={"width": width, "height": 900})
        self._context.set_default_timeout(PATIENCE)
        self.page = self._context.new_page()
        self.url = url
        self.asked = []
        self.problems = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))

    def open(self, view="search"):
        """Show a view, and return its section."""
        self.page.goto(f"{self.url}/inspect#/{view}")
        self.page.locator("html[data-ready]").wait_for()
        return self.page.locator(f"#{view}")

    def ask(self, view, question, *, button):
        """Put a question in a view, and return the view when it has answered."""
        section = self.open(view)
        section.get_by_role("searchbox", name="Question").fill(question)
        section.get_by_role("button", name=button).click()
        section.locator(".summary").wait_for()
        return section

    def close(self):
        self._context.close()
