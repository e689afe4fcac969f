import pytest

from ekphory.documents.blocks import Block, SkippedPart
from ekphory.documents.html import parse_page, read_html
from ekphory.documents.settings import ReadingSettings


def blocks(body):
    return [found for found in parse_page(f"<html><body>{body}") if isinstance(found, Block)]


def texts(body):
    return [(block.kind, block.text) for block in blocks(body)]


ROWS = "<tr><th>Mode</th><th>Watt</th></tr><tr><td>Eco</td><td>900</td></tr>"
HIDDEN = (
    *("<script>var x = 1</script>", "<style>p {}</style>", "<p hidden>secret</p>"),
    *('<p style="display: none">secret</p>', '<p aria-hidden="true">secret</p>'),
    *("<!-- secret -->", "<button>Buy</button>"),
)


@pytest.mark.parametrize(
    ("body", "paragraphs"),
    [
        ("<p>Preheat  to\n200&nbsp;°C.<br>Wait.</p>", ["Preheat to 200 °C.\nWait."]),
        # Text beside a paragraph is one of its own.
        ("<div>before <b>all</b><p>inside</p>after</div>", ["before all", "inside", "after"]),
        # Only the main part is read where there is one.
        ("<p>Advertisement</p><main><p>The story.</p></main>", ["The story."]),
        *((f"<p>shown</p>{each}", ["shown"]) for each in HIDDEN),
    ],
)
def test_what_is_shown_is_read_as_paragraphs(body, paragraphs):
    assert texts(body) == [("paragraph", text) for text in paragraphs]


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("<pre><code>if x:\n    y\n</code></pre>", "code", "if x:\n    y"),
        ("<ol><li>Tray<ul><li>pull</li></ul><i hidden>x</i></li><li><p>Wipe</p></li></ol>",
         "list", "1. Tray\n  - pull\n2. Wipe"),
        (f"<table>{ROWS}</table>", "table", "Mode | Watt\nEco | 900"),
        # A table that arranges the page is read like the page.
        ("<table><tr><td><h1>News</h1></td></tr></table>", "heading", "News"),
    ],
)  # fmt: skip
def test_code_lists_and_tables_keep_their_lines(body, kind, text):
    assert texts(body) == [(kind, text)]


def test_headings_have_levels_and_no_anchor_sign():
    (heading,) = blocks('<h2>Oven <a class="headerlink" href="#oven">¶</a></h2>')
    assert (heading.level, heading.title) == (2, "Oven")


@pytest.mark.parametrize(
    "menu",
    [
        *("<nav>Home</nav>", '<div role="navigation">Home</div>', "<footer>© ACME</footer>"),
        "<ul><li><a>Home</a></li><li><a>About us</a></li><li><a>Contact</a></li></ul>",
    ],
)
def test_menus_and_footers_are_left_out_as_navigation(menu):
    assert list(parse_page(menu)) == [SkippedPart("navigation")]


def test_a_list_of_links_with_words_about_them_stays():
    items = "".join(f"<li><a>Tool {n}</a> measures the flow of water</li>" for n in range(4))
    assert [kind for kind, _ in texts(f"<ul>{items}</ul>")] == ["list"]


def test_the_title_is_the_heading_of_a_page_without_one():
    page = "<html><head><title>Oven</title></head><body><p>Hot.</p></body></html>"
    assert [block.title for block in parse_page(page)] == ["Oven", ""]


def test_lines_are_those_of_the_file():
    heading, paragraph = parse_page("<html>\n<body>\n<h1>A</h1>\n<p>one\ntwo</p>\n")
    assert (heading.first, paragraph.first, paragraph.last) == (3, 4, 5)


def test_a_declared_encoding_is_followed(file):
    for declared, encoding, text in (
        ("iso-8859-1", "cp1252", "“5 kg”"),
        ("shift_jis", "shift_jis", "猫は魚"),
        ("utf-8", "utf-8", "猫は魚"),
    ):
        page = f'<meta charset="{declared}"><p>{text}</p>'.encode(encoding)
        (block,) = read_html(file("a.html", page), ReadingSettings())
        assert block.text == text
