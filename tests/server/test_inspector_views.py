"""What the inspector's views show and do, in a real browser."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.chromium import InspectorPage, headless_chromium
from tests.server.running import models, running_server

from ekphory import revise
from ekphory.cli.demo import demo_records
from ekphory.models.loading import load_embedder
from ekphory.server import inspector as inspector_files
from ekphory.service.handles import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

DEMO = Place("demo", "mara")
EMPTY = Place("demo", "vacant")
JUNE = "What happened to Biscuit in June?"
HIGHEST_LINE = """canvas => {
    const { width, height } = canvas;
    const column = canvas.getContext("2d").getImageData(width * 0.6, 0, 1, height).data;
    const colours = (row) => [0, 1, 2].map((part) => column[4 * row + part]);
    const rows = [...Array(height).keys()];
    return rows.find((row) => Math.max(...colours(row)) - Math.min(...colours(row)) > 60);
}"""
"""Where a chart's highest coloured line is, a little right of its middle."""


@pytest.fixture(scope="module")
def browser():
    with headless_chromium() as started:
        yield started


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A server with the demo's memories, and a project without any."""
    used = models(embedder=load_embedder(None), reranker=None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("EKPHORY_RECORD_SEARCHES", "100")
        with running_server(tmp_path_factory.mktemp("viewed") / "store", used=used) as server:
            for place in (DEMO, EMPTY):
                server.service.projects.ensure(*place.owner)
            with server.service.memory(DEMO) as memory:
                memory.add_many(demo_records())
            yield server


@pytest.fixture
def inspector(browser, demo):
    opened = InspectorPage(browser, demo.url, width=1440)
    yield opened
    opened.close()
    assert opened.problems == []


def box(locator):
    locator.wait_for()
    return locator.bounding_box()


@pytest.mark.parametrize(("width", "beside"), [(1440, True), (390, False)])
def test_the_hits_come_first_and_the_stages_beside_or_below_them(browser, demo, width, beside):
    inspector = InspectorPage(browser, demo.url, width=width)
    search = inspector.ask("search", JUNE, button="Search")
    first, last = box(search.locator(".hit").first), box(search.locator(".hit").last)
    stages = box(search.locator(".waterfall"))
    assert first["y"] < 600
    assert (stages["x"] > first["x"] + first["width"]) is beside
    assert (stages["y"] > last["y"]) is not beside
    inspector.close()


def test_a_hit_tells_its_date_speaker_session_and_the_dialogue_around_it(inspector):
    search = inspector.ask("search", JUNE, button="Search")
    hit = search.locator(".hit").first
    origin = hit.locator(".origin").inner_text()
    assert all(each in origin for each in ("Mara", "27 Jun 2026", "session s6"))
    hit.get_by_text("The dialogue around it").click()
    hit.locator(".turn").first.wait_for()
    turns = hit.locator(".turn .memory-text").all_inner_texts()
    assert len(turns) == 7
    assert "hard-wax oil" in turns[2]
    assert turns[3] == hit.locator(".turn-found .memory-text").inner_text()
    assert turns[4] == "Poor dog. Did they find out what it was?"


def test_a_passage_of_a_file_tells_path_lines_and_heading_and_offers_no_dialogue(inspector, demo):
    place = {"path": "pkg/basket.py", "lines": "6-9", "heading": "basket.checkout"}
    passage = {"text": "def checkout(basket):", "session": "/srv/code/pkg/basket.py"}
    with demo.service.memory(DEMO) as memory:
        memory.add_many([passage | place])
    search = inspector.ask("search", "def checkout(basket)", button="Search")
    hit = search.locator(".hit", has_text="def checkout(basket):")
    origin = hit.locator(".origin").inner_text()
    assert "pkg/basket.py (6-9)\nbasket.checkout" in origin
    assert "/srv/code" not in origin
    assert hit.get_by_text("The dialogue around it").count() == 0


def test_each_boost_says_what_it_did_and_no_share_is_above_a_whole(inspector):
    search = inspector.ask("search", JUNE, button="Search")
    reasons = " ".join(search.locator(".reason").all_inner_texts())
    assert "Lifted 13.9 times: it lies in the time asked for." in reasons
    assert "Lifted by 6%: its importance was given as 0.8." in reasons
    shares = [int(each) for each in re.findall(r"(\d+)%", search.inner_text())]
    assert max(shares) <= 100


def test_the_block_for_the_prompt_is_what_a_model_gets(inspector, demo):
    search = inspector.ask("search", "What is Mara allergic to?", button="Search")
    search.get_by_role("button", name="As the model gets it").click()
    block = search.locator(".prompt-text").inner_text()
    with demo.service.memory(DEMO) as memory:
        given = memory.search("What is Mara allergic to?").to_prompt(2000)
    assert block.splitlines()[0] == given.splitlines()[0]
    assert "hazelnut" in block
    assert search.locator(".hit").first.is_hidden()
    left_out = search.locator(".prompt p.hint").inner_text()
    assert re.fullmatch(r"Left out: hits \d+(, \d+)+: too unlikely\.", left_out)


def test_reload_and_back_keep_question_preset_and_project(inspector):
    page = inspector.page
    search = inspector.open("search")
    page.locator("#project").select_option("demo / mara")
    page.locator("h1#search-title").click(force=True)
    page.keyboard.press("/")
    page.keyboard.type("dog")
    search.get_by_role("combobox", name="Preset", exact=True).select_option("fast")
    search.get_by_role("button", name="Search").click()
    search.locator(".hit").first.wait_for()
    first = page.url
    search.get_by_role("searchbox", name="Question").fill("hotel")
    page.keyboard.press("Enter")
    search.locator(".hit", has_text="Lichttoren").first.wait_for()
    page.go_back()
    search.locator(".hit", has_text="dog").first.wait_for()
    page.reload()
    search.locator(".hit", has_text="dog").first.wait_for()
    assert page.url == first
    assert "project_id=mara" in first
    assert "preset=fast" in first
    assert search.get_by_role("searchbox", name="Question").input_value() == "dog"
    assert search.locator(".summary").get_by_text("fast").is_visible()


@pytest.mark.parametrize("view", ["compare", "agent", "changes", "recorded", "store"])
def test_a_view_that_its_tab_opened_keeps_the_project_on_reload(inspector, view):
    page = inspector.page
    inspector.open("search")
    page.locator("#project").select_option("demo / vacant")
    page.locator(f".tabs a[data-view={view}]").click()
    page.locator(f"#{view}").wait_for()
    assert page.url.endswith(f"#/{view}?org_id=demo&project_id=vacant")
    page.reload()
    page.locator("html[data-ready]").wait_for()
    assert page.locator("#project option:checked").inner_text() == "demo / vacant"


def test_the_heads_of_the_stages_do_not_run_into_each_other(inspector):
    head = inspector.ask("search", JUNE, button="Search").locator(".waterfall-head")
    wide, column = head.get_by_text("Candidates").evaluate(
        "head => [head.scrollWidth, head.clientWidth]"
    )
    assert wide <= column


def test_why_nothing_was_read_again_is_a_plain_sentence(inspector, demo):
    said = {
        "hard-gate-high: spread=0.2079 > 0.08 (vector confident); none reads the context": (
            "the best vectors stand out clearly, so nothing was read again"
            " (spread 0.208, from 0.08 on); none reads the context"
        ),
        "hard-gate-low: spread=0.0100 < 0.02 (tied set)": (
            "the best vectors are too much alike to tell apart, so nothing was read again"
            " (spread 0.01, below 0.02)"
        ),
        "auto-gate-skip: probability_gap=0.4321 outside [0.0100, 0.3000]": (
            "reading again would hardly change the order"
            " (probability gap 0.432, not between 0.01 and 0.3)"
        ),
        "no reranker": "no reranker",
    }
    inspector.open("search")
    plainly = f"async (said) => (await import('{demo.url}/inspect/gate_words.js')).plainly(said)"
    assert {each: inspector.page.evaluate(plainly, each) for each in said} == said


def test_the_stage_that_the_gate_skips_says_it_in_plain_words(browser, tmp_path):
    with running_server(tmp_path / "store", used=models(embedder=load_embedder(None))) as server:
        server.service.projects.ensure(*DEMO.owner)
        with server.service.memory(DEMO) as memory:
            memory.add_many(demo_records())
        inspector = InspectorPage(browser, server.url)
        inspector.page.goto(f"{server.url}/inspect#/search?query={JUNE}&preset=memory_spark")
        rerank = inspector.page.locator("[data-stage=rerank]")
        rerank.wait_for()
        assert "the best vectors stand out clearly" in rerank.inner_text()
        inspector.close()


def test_memories_are_found_by_text_and_session_and_the_address_keeps_that(inspector):
    view = inspector.open("memories")
    view.locator(".memory").first.wait_for()
    inspector.page.keyboard.press("/")
    inspector.page.keyboard.type("BISCUIT")
    view.get_by_text("1–6 of 6").wait_for()
    view.get_by_label("Session").select_option("s6")
    view.get_by_text("1–1 of 1").wait_for()
    inspector.page.reload()
    view.get_by_text("1–1 of 1").wait_for()
    assert "courtyard" in view.locator(".memory").inner_text()


def test_memories_are_chosen_by_user_and_source(inspector, demo):
    with demo.service.memory(DEMO) as memory:
        kept = {"text": "The kettle whistles", "session": "kettle"}
        memory.add_many([kept | {"user": "otto"}, kept | {"user": "ines", "source": "letter"}])
    inspector.page.goto(f"{demo.url}/inspect#/memories?session=kettle")
    view = inspector.page.locator("#memories")
    view.get_by_text("1–2 of 2").wait_for()
    view.get_by_label("User").select_option("ines")
    view.get_by_text("1–1 of 1").wait_for()
    view.get_by_label("Source").select_option("letter")
    view.get_by_text("1–1 of 1").wait_for()
    assert inspector.page.url.endswith("session=kettle&user=ines&source=letter")


def test_memories_are_chosen_by_what_they_name(inspector, demo):
    with demo.service.memory(DEMO) as memory:
        for text, named in (("Ann rang", "person: Ann"), ("Anna wrote", "person: Anna")):
            memory.add(text, session="calls", metadata={"entities": named})
    inspector.page.goto(f"{demo.url}/inspect#/memories?session=calls")
    view = inspector.page.locator("#memories")
    view.get_by_text("1–2 of 2").wait_for()
    view.get_by_label("Entity").select_option("person: Ann")
    view.get_by_text("1–1 of 1").wait_for()
    assert "Ann rang" in view.locator(".memory").inner_text()


def test_a_memory_is_changed_forgotten_and_taken_back(inspector, demo):
    with demo.service.memory(DEMO) as memory:
        memory.add("The bike is red", id="bike", session="garage")
    inspector.page.goto(f"{demo.url}/inspect#/memories?session=garage")
    card = inspector.page.locator(".memory[data-id=bike]")
    card.get_by_role("button", name="Edit").click()
    card.get_by_label("Text").fill("The bike is blue")
    card.get_by_role("button", name="Save").click()
    card.get_by_text("Changed.").wait_for()
    card.get_by_text("Earlier versions").click()
    card.locator(".versions", has_text="The bike is red").wait_for()
    card.get_by_role("button", name="Forget").click()
    dialog = inspector.page.get_by_role("dialog", name="Forget this memory?")
    dialog.get_by_role("button", name="Forget").click()
    card.get_by_text("Forgotten.").wait_for()
    with demo.service.memory(DEMO) as memory:
        assert memory.count(filter="id = 'bike'") == 0
        card.get_by_role("button", name="Undo").click()
        card.get_by_text("It is there again.").wait_for()
        assert [each.text for each in memory.history("bike")] == [
            "The bike is blue",
            "The bike is red",
        ]


def test_recorded_searches_are_listed_filtered_opened_and_gone_with_what_is_purged(inspector, demo):
    asked = {"org_id": "demo", "project_id": "mara"}
    with demo.service.memory(DEMO) as memory:
        memory.add("The shed key hangs behind the ivy", id="shed")
        memory.surface = "python"
        memory.search("Where is the shed key?", k=1)
    demo.answer("/memories/search", {**asked, "query": "Who plays the cello?", "top_k": 2})
    view = inspector.open("recorded")
    view.locator(".record", has_text="cello").first.wait_for()
    view.get_by_label("Asked through").select_option("python")
    view.locator(".record", has_text="cello").first.wait_for(state="hidden")
    view.locator(".record", has_text="shed key").click()
    view.locator(".hit[data-id=shed]").wait_for()
    assert view.locator("[data-stage=fuse]").is_visible()
    inspector.page.go_back()
    view.locator(".record", has_text="shed key").wait_for()
    inspector.page.goto(f"{demo.url}/inspect#/memories?text=ivy")
    card = inspector.page.locator(".memory[data-id=shed]")
    card.get_by_role("button", name="Forget").click()
    dialog = inspector.page.get_by_role("dialog", name="Forget this memory?")
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Forget").click()
    card.get_by_text("wiped from the disk").wait_for()
    assert card.get_by_role("button", name="Undo").count() == 0
    inspector.open("recorded")
    view.get_by_label("Question contains").fill("shed")
    view.get_by_text("No recorded search is like this").wait_for()
    assert b"shed key" not in (Path(demo.store) / "searches.sqlite3").read_bytes()


def test_a_question_is_withdrawn_when_another_view_is_shown(inspector, demo):
    card = inspector.open("memories").locator(".memory").first
    card.get_by_role("button", name="Forget").click()
    dialog = inspector.page.get_by_role("dialog", name="Forget this memory?")
    dialog.wait_for()
    inspector.page.goto(f"{demo.url}/inspect#/changes")
    dialog.wait_for(state="hidden")
    inspector.page.go_back()
    card.get_by_role("button", name="Forget").wait_for()


def test_the_store_draws_its_growth_and_the_latency_of_the_last_hour(inspector):
    inspector.ask("search", "tea", button="Search")
    view = inspector.open("store")
    view.locator("canvas").nth(2).wait_for()
    told = [each.get_attribute("aria-label") for each in view.locator(".chart-place").all()]
    assert told[0].startswith("Memories by project: demo / mara: 1")
    assert "shared_knowledge: 7" in told[1]
    assert "of this process in the last hour; in every minute 95% of them took at most" in told[2]
    facts = view.locator(".summary").inner_text()
    assert all(each in facts for each in ("on disk", "index", "upkeep\nsucceeds"))


def test_what_was_written_within_an_hour_is_drawn_as_a_step(inspector):
    chart = inspector.open("store").locator(".chart-place canvas").first
    chart.wait_for()
    highest = inspector.page.wait_for_function(HIGHEST_LINE, arg=chart.element_handle())
    height_of_nothing = 200 - 32
    assert abs(highest.json_value() - height_of_nothing) < 3


def test_an_empty_project_says_the_next_step_in_the_store_that_is_served(inspector, demo):
    inspector.open("search")
    inspector.page.locator("#project").select_option("demo / vacant")
    place = f" --store {demo.url}/ --org demo --project vacant"
    for view in ("search", "compare", "agent", "memories"):
        section = inspector.open(view)
        section.get_by_text("ekphory add").wait_for()
        assert section.locator(".command").first.inner_text().endswith(place)
    inspector.open("changes").get_by_text(f"ekphory conflicts --scan{place}").wait_for()
    inspector.open("recorded").get_by_text("Nothing was searched here yet").wait_for()


ASKING = {"search": "Search", "compare": "Compare", "agent": "Follow"}
"""The button that asks, by view."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A server on a store that nothing was ever written to."""
    with running_server(tmp_path_factory.mktemp("bare") / "store") as server:
        yield server


@pytest.mark.parametrize(("view", "button"), ASKING.items())
def test_a_question_to_an_empty_store_is_answered_with_how_to_add_something(
    browser, bare, view, button
):
    inspector = InspectorPage(browser, bare.url)
    section = inspector.ask(view, JUNE, button=button)
    told = section.locator(".empty").inner_text()
    shown = section.locator("table.moves").count()
    inspector.close()
    assert told.startswith("This store holds no memories yet")
    assert f'ekphory add "Mara is allergic to hazelnuts" --store {bare.url}/' in told
    assert "Take back" not in told
    assert shown == 0


@pytest.mark.parametrize("view", ASKING)
def test_a_view_says_how_to_ask_before_the_first_question(inspector, view):
    told = inspector.open(view).locator(".empty")
    told.wait_for()
    assert "Type a question" in told.inner_text()


def test_what_hides_everything_is_named_where_there_is_something(inspector, demo):
    inspector.page.goto(f"{demo.url}/inspect#/search?query=dog&filter=producer%3D'nobody'")
    told = inspector.page.locator("#search .empty")
    told.wait_for()
    assert "Take back, under “More settings”, what hides the rest: the filter" in told.inner_text()


def test_the_project_choice_of_an_empty_store_offers_none(browser, bare):
    inspector = InspectorPage(browser, bare.url)
    inspector.open()
    offered = inspector.page.locator("#project option").all_inner_texts()
    inspector.close()
    assert offered == ["none yet", "Another …"]


def test_the_head_takes_one_line_at_390_pixels(browser, demo):
    inspector = InspectorPage(browser, demo.url, width=390)
    inspector.open("search")
    head = box(inspector.page.locator(".masthead"))
    inspector.close()
    assert head["height"] < 60


def test_the_vendored_files_are_what_their_publisher_gave():
    folder = Path(inspector_files.__file__).parent / "vendored"
    listed = dict(
        reversed(line.split()) for line in (folder / "SHA256SUMS").read_text().splitlines()
    )
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert listed == {name: found[name] for name in found.keys() - {"SHA256SUMS", "README.md"}}


def test_a_decision_is_shown_and_taken_back(inspector, demo):
    with demo.service.memory(DEMO) as memory:
        memory.add("The bell rings at nine", id="nine", session="bell")
        memory.add("The bell rings at ten", id="ten", session="bell")
    inspector.page.goto(f"{demo.url}/inspect#/memories?session=bell")
    card = inspector.page.locator(".memory[data-id=nine]")
    card.get_by_role("button", name="Supersede").click()
    card.get_by_label("Id of the memory").fill("ten")
    card.get_by_role("button", name="Supersede").click()
    card.get_by_text("Superseded.").wait_for()
    view = inspector.open("changes")
    decided = view.get_by_role("list", name="Decided").locator(".change")
    decided.wait_for()
    assert "100% sure, decided by caller" in decided.inner_text()
    assert [each.inner_text() for each in decided.locator(".memory-text").all()] == [
        "The bell rings at nine",
        "The bell rings at ten",
    ]
    decided.get_by_role("button", name="Undo").click()
    decided.get_by_text("Taken back: both hold.").wait_for()
    with demo.service.memory(DEMO) as memory:
        assert memory.revisions() == ()


def test_superseding_offers_the_other_memories_of_the_page(inspector, demo):
    with demo.service.memory(DEMO) as memory:
        memory.add("The gate is green", id="green", session="gate")
        memory.add("The gate is grey", id="grey", session="gate")
    inspector.page.goto(f"{demo.url}/inspect#/memories?session=gate")
    card = inspector.page.locator(".memory[data-id=green]")
    card.get_by_role("button", name="Supersede").click()
    field = card.get_by_label("Id of the memory")
    offered = field.evaluate(
        "field => [...field.list.options].map((each) => [each.value, each.label])"
    )
    assert offered == [["grey", "The gate is grey"]]


@pytest.mark.parametrize("width", [1440, 390])
def test_the_id_that_supersedes_has_a_line_of_its_own(browser, demo, width):
    inspector = InspectorPage(browser, demo.url, width=width)
    card = inspector.open("memories").locator(".memory").first
    card.get_by_role("button", name="Supersede").click()
    field, form = box(card.get_by_label("Id of the memory")), box(card.locator("form"))
    inspector.close()
    assert field["width"] == form["width"]


def test_a_conflict_is_confirmed(inspector, demo, add_conflict):
    add_conflict(older="The pool opens at six", newer="The pool opens at seven")
    view = inspector.open("changes")
    waiting = view.get_by_role("list", name="To look at").locator(".change")
    waiting.get_by_text("Perhaps the newer one replaces the older one").wait_for()
    waiting.get_by_role("button", name="The newer one holds").click()
    waiting.get_by_text("Decided: the newer one holds.").wait_for()
    with demo.service.memory(DEMO) as memory:
        (pair,) = memory.revisions()
        assert (pair.revision.state, pair.revision.decided_by) == ("active", "caller")
        assert pair.newer.text == "The pool opens at seven"
        memory.unsupersede(revision=pair.revision.id)


@pytest.fixture
def add_conflict(demo):
    """Returns what writes two memories that may contradict each other."""

    def add(*, older, newer):
        with demo.service.memory(DEMO) as memory:
            ids = [memory.add(text, session="conflict").ids[0] for text in (older, newer)]
            made = memory.supersede(ids[0], by=ids[1])
            engine = memory._engine
            entries = revise.visible_entries(engine, memory.scope)
            (entry,) = (each for each in entries if each.revision.id == made.id)
            doubted = replace(entry.revision, state="conflict", probability=0.4)
            waiting = replace(entry, revision=doubted)
            engine.writer.submit(lambda: engine.ledger.append([waiting])).result()

    return add
