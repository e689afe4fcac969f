import pytest

from ekphory.documents.blocks import Block, SkippedPart
from ekphory.documents.html import parse_page, read_html
from ekphory.documents.settings import ReadingSettings


def blocks(body):
    return [found for found in parse_page(f"<html><body>{body}") if isinstance(found, Block)]


def texts(body):
    return [(block.kind, block.text) for block in blocks(body)]


def test_headings_have_levels_and_no_anchor_sign():
    (heading,) = blocks('<h2>Oven <a class="headerlink" href="#oven">¶</a></h2>')
    assert (heading.level, heading.title) == (2, "Oven")


def test_blanks_collapse_and_breaks_stay():
    assert texts("<p>Preheat  to\n200&nbsp;°C.<br>Wait.</p>") == [
        ("paragraph", "Preheat to 200 °C.\nWait.")
    ]


def test_text_beside_a_paragraph_is_one_of_its_own():
    assert texts("<div>before <b>all</b><p>inside</p>after</div>") == [
        ("paragraph", "before all"),
        ("paragraph", "inside"),
        ("paragraph", "after"),
    ]


def test_code_keeps_its_blanks():
    assert texts("<pre><code>if x:\n    y\n</code></pre>") == [("code", "if x:\n    y")]


def test_inner_lists_are_indented():
    body = "<ol><li>Tray<ul><li>pull</li></ul></li><li><p>Wipe</p></li></ol>"
    assert texts(body) == [("list", "1. Tray\n  - pull\n2. Wipe")]


def test_a_table_has_a_line_for_each_row():
    body = "<table><tr><th>Mode</th><th>Watt</th></tr><tr><td>Eco</td><td>900</td></tr></table>"
    assert texts(body) == [("table", "Mode | Watt\nEco | 900")]


def test_a_table_that_arranges_the_page_is_read_like_the_page():
    assert texts("<table><tr><td><h1>News</h1>All of it.</td></tr></table>") == [
        ("heading", "News"),
        ("paragraph", "All of it."),
    ]


@pytest.mark.parametrize(
    "noise",
    [
        "<script>var x = 1</script>",
        "<style>p {}</style>",
        "<p hidden>secret</p>",
        '<p style="display: none">secret</p>',
        '<p aria-hidden="true">secret</p>',
        "<!-- secret -->",
        "<button>Buy</button>",
    ],
)
def test_what_is_not_shown_is_not_read(noise):
    assert texts(f"<p>shown</p>{noise}") == [("paragraph", "shown")]


@pytest.mark.parametrize(
    "menu",
    [
        "<nav>Home</nav>",
        '<div role="navigation">Home</div>',
        "<footer>© ACME</footer>",
        "<ul><li><a>Home</a></li><li><a>About us</a></li><li><a>Contact</a></li></ul>",
    ],
)
def test_menus_and_footers_are_left_out_as_navigation(menu):
    assert list(parse_page(menu)) == [SkippedPart("navigation")]


def test_a_list_of_links_with_words_about_them_stays():
    items = "".join(f"<li><a>Tool {n}</a> measures the flow of water</li>" for n in range(4))
    assert [kind for kind, _ in texts(f"<ul>{items}</ul>")] == ["list"]


def test_only_the_main_part_is_read_where_there_is_one():
    assert texts("<p>Advertisement</p><main><p>The story.</p></main>") == [
        ("paragraph", "The story.")
    ]


def test_the_title_is_the_heading_of_a_page_without_one():
    page = "<html><head><title>Oven</title></head><body><p>Hot.</p></body></html>"
    assert [block.title for block in parse_page(page)] == ["Oven", ""]


def test_lines_are_those_of_the_file():
    heading, paragraph = parse_page("<html>\n<body>\n<h1>A</h1>\n<p>one\ntwo</p>\n")
    assert (heading.first, paragraph.first, paragraph.last) == (3, 4, 5)


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [("iso-8859-1", "cp1252"), ("shift_jis", "shift_jis"), ("utf-8", "utf-8")],
)
def test_a_declared_encoding_is_followed(file, declared, encoding):
    page = f'<meta charset="{declared}"><p>“5 kg”</p>' if encoding == "cp1252" else (
        f'<meta charset="{declared}"><p>猫は魚</p>'
    )  # fmt: skip
    (block,) = read_html(file("a.html", page.encode(encoding)), ReadingSettings())
    assert block.text in ("“5 kg”", "猫は魚")
