"""The inspector in a real browser, over a real server."""

import re
from urllib.parse import urlsplit

import pytest
from tests.server.chromium import InspectorPage, headless_chromium
from tests.server.running import models, running_server

from ekphory.cli.demo import demo_records
from ekphory.models.loading import load_embedder
from ekphory.retrieval.presets import BALANCED
from ekphory.service.handles import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

DEMO = Place("demo", "mara")
OTHER = Place("demo", "other")
SECRET = "the safe in the other project opens with 4711"
HOSTILE = (
    "<script>window.reached = 1</script><img src=x onerror='window.reached = 1'> & <b>bold</b>"
)
BUTTONS = {
    "search": "Search",
    "compare": "Compare",
    "agent": "Follow",
    "memories": None,
    "recorded": None,
    "store": None,
}
"""The button that asks, by view; None for one that shows what it has by itself."""


@pytest.fixture(scope="module")
def browser():
    with headless_chromium() as started:
        yield started


@pytest.fixture(scope="module")
def demo(tmp_path_factory, browser):
    """A server with the demo's memories, and two projects more."""
    used = models(embedder=load_embedder(None), reranker=None)
    with running_server(tmp_path_factory.mktemp("inspected") / "store", used=used) as server:
        for place in (DEMO, OTHER):
            server.service.projects.ensure(*place.owner)
        with server.service.memory(DEMO) as memory:
            memory.add_many(demo_records())
        with server.service.memory(OTHER) as memory:
            memory.add(SECRET)
            memory.add(HOSTILE, pool="shared_rules", producer="<i>x</i>")
        yield server


@pytest.fixture
def inspector(browser, demo):
    opened = InspectorPage(browser, demo.url)
    yield opened
    opened.close()
    assert opened.problems == []


def texts(locator):
    return [each.strip() for each in locator.all_inner_texts()]


def test_the_waterfall_shows_the_stages_of_the_preset_and_counts_them(inspector):
    search = inspector.ask("search", "What is Mara allergic to?", button="Search")
    names = [each.get_attribute("data-stage") for each in search.locator(".stage").all()]
    rerank = search.locator("[data-stage=rerank]")
    numbers = texts(search.locator(".stage .stage-number"))
    assert names == ["open scope", *(each.name for each in BALANCED.stages)]
    # As `ekphory search --explain` numbers them: what opens the scope is before the first.
    assert numbers == ["", *(str(number) for number in range(1, len(names)))]
    counted = re.search(r"(\d+) ran, (\d+) skipped", search.locator(".summary").inner_text())
    assert sum(map(int, counted.groups())) == len(names) - 1
    assert rerank.get_attribute("data-status") == "skipped"
    assert "no reranker" in rerank.inner_text()
    assert "127 → 10" in search.locator("[data-stage=cut]").inner_text()
    assert " ms" in search.locator("[data-stage=fuse]").inner_text()


def test_a_hit_tells_its_probability_its_age_and_why_it_is_there(inspector):
    search = inspector.ask("search", "What is Mara allergic to?", button="Search")
    hit = search.locator(".hit[data-id=s2-09]")
    assert "hazelnut" in hit.locator(".memory-text").inner_text()
    assert "%" in hit.locator(".probability").inner_text()
    assert "months ago" in hit.locator(".origin").inner_text()
    assert "by meaning: cosine" in hit.locator(".reasons").inner_text()
    hit.get_by_text("Scores and fields").click()
    assert "fused" in hit.locator(".account").inner_text()


def test_two_presets_are_compared_stage_by_stage_and_hit_by_hit(inspector):
    compare = inspector.ask("compare", "What happened to Biscuit in June?", button="Compare")
    heads = texts(compare.locator(".pairs thead th"))
    row = compare.locator(".pairs tr", has_text="search pools")
    assert heads == ["Stage", "A: fast", "B: balanced"]
    assert row.locator("td .pair-numbers").count() == 2
    numbers = texts(compare.locator(".pairs .stage-number"))
    assert numbers == ["", *(str(number) for number in range(1, len(numbers)))]
    moved = set(texts(compare.locator(".moved")))
    assert moved & {"same place", "only in A", "only in B"}


def test_the_agents_chain_is_stepped_through(inspector):
    question = "Where was the father of Rembrandt's wife born?"
    agent = inspector.ask("agent", question, button="Follow")
    position, following = agent.locator(".step-position"), agent.get_by_role("button", name="Next")
    assert position.inner_text().startswith("Step 1 of ")
    assert agent.locator(".hop-ahead").count() == 3
    while following.is_enabled():
        following.click()
    answers = texts(agent.locator(".hop-answer"))
    assert answers[:2] == ["Saskia van Uylenburgh", "Rombertus van Uylenburgh"]
    agent.locator(".step-hop_resolved").first.click()
    account = agent.locator(".step-account").inner_text()
    assert "wife of Rembrandt" in account
    assert "Rembrandt married Saskia van Uylenburgh in 1634" in account
    assert "%" in account


def test_memories_are_browsed_by_pool_type_importance_and_page(inspector):
    view = inspector.open("memories")
    place = view.locator(".pager-place")
    assert place.inner_text() == "1–20 of 127"
    view.get_by_role("button", name="Next").click()
    view.get_by_text("21–40 of 127").wait_for()
    view.get_by_label("Pool").select_option("shared_knowledge")
    view.get_by_text("1–7 of 7").wait_for()
    view.get_by_role("button", name="Clear filters").click()
    view.get_by_text("1–20 of 127").wait_for()
    view.get_by_label("Type").select_option("procedural")
    view.get_by_label("Least importance").fill("0.9")
    view.locator(".memory[data-id=howto-rollback]").wait_for()
    assert view.locator(".memory[data-id=fact-acme]").count() == 0


def test_a_bar_of_the_timeline_chooses_its_time(inspector):
    view = inspector.open("memories")
    bar = view.get_by_role("button", name="week of 5 Jan 2026")
    bar.focus()
    bar.press("ArrowRight")
    inspector.page.keyboard.press("Enter")
    view.locator(".memory[data-id=s2-03]").wait_for()
    assert view.get_by_label("From (UTC)").input_value() == "2026-02-02"
    assert view.get_by_label("Before (UTC)").input_value() == "2026-02-09"
    assert view.locator(".memory[data-id=s1-01]").count() == 0


def test_health_tells_what_doctor_tells(inspector):
    view = inspector.open("store")
    view.locator(".finding").first.wait_for()
    findings = " ".join(texts(view.locator(".finding")))
    assert "129 memories, 0 earlier versions and 129 vectors." in findings
    assert "All is well." in view.inner_text()


def test_the_keyboard_alone_is_enough(inspector):
    inspector.open("search")
    keys = inspector.page.keyboard

    def tab_to(selector):
        for _ in range(60):
            keys.press("Tab")
            if inspector.page.evaluate("s => document.activeElement.matches(s)", selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    tab_to("#search [name=query]")
    keys.type("What is the name of her dog?")
    keys.press("Enter")
    inspector.page.locator("#search .hit").first.wait_for()
    tab_to("#search [data-stage='open scope'] summary")
    keys.press("Enter")
    assert inspector.page.locator("#search .stage details[open]").count() == 1
    ring = "getComputedStyle(document.activeElement).outlineStyle"
    assert inspector.page.evaluate(ring) == "solid"


def test_nothing_scrolls_sideways_at_400_pixels(browser, demo):
    inspector = InspectorPage(browser, demo.url, width=400)
    question = "Where was the father of Rembrandt's wife born?"
    wide = {}
    for view, button in BUTTONS.items():
        if button is None:
            inspector.open(view).locator(".memory, .finding, .empty").first.wait_for()
        else:
            inspector.ask(view, question, button=button)
        wide[view] = inspector.page.evaluate("document.documentElement.scrollWidth")
    inspector.close()
    assert wide == dict.fromkeys(BUTTONS, 400)


def test_markup_in_a_memory_stays_text(inspector):
    inspector.open("memories")
    inspector.page.locator("#project").select_option("demo / other")
    shown = inspector.page.locator("#memories .memory", has_text="<script>")
    shown.wait_for()
    assert shown.locator(".memory-text").inner_text() == HOSTILE
    assert "<i>x</i>" in shown.inner_text()
    inspector.page.goto(f"{inspector.url}/inspect#/search")
    search = inspector.page.locator("#search")
    search.get_by_role("searchbox", name="Question").fill("<b>bold</b> safe")
    search.get_by_role("button", name="Search").click()
    search.locator(".hit", has_text="onerror").wait_for()
    assert inspector.page.evaluate("window.reached") is None
    assert inspector.page.locator("main img, main script, main b, main i").count() == 0


def test_no_request_leaves_the_server(inspector):
    inspector.ask("search", "tea", button="Search")
    inspector.ask("compare", "tea", button="Compare")
    for view in ("memories", "recorded", "store"):
        inspector.open(view)
    host = urlsplit(inspector.url).netloc
    assert {urlsplit(each).netloc for each in inspector.asked} == {host}


def test_the_memories_of_another_project_are_never_shown(inspector):
    search = inspector.ask("search", SECRET, button="Search")
    assert search.locator(".hit").count() == 10
    assert "4711" not in search.locator(".hits").inner_text()
    memories = inspector.open("memories")
    memories.get_by_text("1–20 of 127").wait_for()
    assert "4711" not in memories.locator(".results").inner_text()


def test_what_was_shown_goes_with_the_project(inspector):
    search = inspector.ask("search", "What is Mara allergic to?", button="Search")
    inspector.page.locator("#project").select_option("demo / other")
    # The page may say already how to ask.
    assert search.locator(".results .hit").count() == 0
    assert "hazelnut" not in search.locator(".results").inner_text()


def test_the_colour_scheme_is_the_systems_or_the_chosen_one(inspector):
    inspector.open("store")
    background = "getComputedStyle(document.body).backgroundColor"
    light = inspector.page.evaluate(background)
    inspector.page.emulate_media(color_scheme="dark")
    dark = inspector.page.evaluate(background)
    inspector.page.locator("#settings summary").click()
    inspector.page.get_by_label("Colour scheme").select_option("light")
    assert light != dark
    assert inspector.page.evaluate(background) == light


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that demands keys, with two projects."""
    store = tmp_path_factory.mktemp("guarded") / "store"
    with running_server(store, require_key=True) as server:
        for place, text in ((DEMO, "Mara drinks tea"), (OTHER, SECRET)):
            server.service.projects.ensure(*place.owner)
            with server.service.memory(place) as memory:
                memory.add(text)
        yield server


def test_a_key_is_asked_for_and_opens_its_own_project_alone(browser, guarded):
    key = guarded.service.keys.create(org="demo", project="mara", rights="read").text
    inspector = InspectorPage(browser, guarded.url)
    page = inspector.page
    page.goto(f"{guarded.url}/inspect#/memories")
    dialog = page.get_by_role("dialog", name="A key, please")
    dialog.get_by_label("Key").fill("ek_wrong_key")
    dialog.get_by_role("button", name="Use this key").click()
    dialog.get_by_text("not known or revoked").wait_for()
    dialog.get_by_label("Key").fill(key)
    dialog.get_by_role("button", name="Use this key").click()
    page.locator("#memories .memory", has_text="Mara drinks tea").wait_for()
    assert texts(page.locator("#project option")) == ["demo / mara", "Another …"]
    kept = page.evaluate("[JSON.stringify(localStorage), sessionStorage.getItem('ekphory.key')]")
    assert kept == ["{}", key]
    page.locator("#project").select_option("Another …")
    page.get_by_label("Organisation").fill("demo")
    page.locator("#project-dialog").get_by_label("Project").fill("other")
    page.get_by_role("button", name="Look there").click()
    refused = page.locator("#memories .notice-bad")
    refused.wait_for()
    assert "bound to another organisation or project" in refused.inner_text()
    assert "4711" not in page.content()
    page.goto(f"{guarded.url}/inspect#/store")
    page.locator("#store .notice", has_text="bound to nothing").wait_for()
    inspector.close()
