"""Plots, the notebook table and the report: content, escaping, and life in a browser."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("jinja2", reason="reports need jinja2")
pytest.importorskip("pandas", reason="the frames of these tests are pandas'")

import pandas as pd

from klnumba.tables import Comparison, compare, report

SCRIPT = "<script>alert(1)</script>"
BAD = [
    SCRIPT,
    '"><img src=x onerror=alert(2)>',
    "{{ 7*7 }}",
    "</style></title>",
    "' onmouseover='alert(3)",
    "$x$",
    "日本 🙂",
]


def evil() -> Comparison:
    """Names and categories that would like to be markup."""
    rng = np.random.default_rng(0)
    before = pd.DataFrame({name: rng.choice(BAD, 400) for name in BAD})
    after = pd.DataFrame({name: rng.choice([*BAD[:4], "<b>new</b>"], 300) for name in BAD})
    before["number"], after["number"] = rng.normal(size=400), rng.normal(2, size=300)
    before["same"], after["same"] = 1.5, 1.5
    before["gone" + SCRIPT] = 1
    return compare(before, after)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return evil()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    return tags


def test_untrusted_names_stay_text(found, tmp_path):
    for html in (found.report(tmp_path / "r.html", title=SCRIPT).read_text("utf-8"), found._repr_html_()):
        tags = parsed(html)
        assert tags.tags.count("script") == html.count("<script>") <= 1
        assert not {"img", "b", "iframe", "object"} & set(tags.tags)
        assert not [name for name, _ in tags.attributes if name.startswith("on")]
        text = "".join(tags.text)
        assert all(bad in text for bad in BAD)


def test_the_report_needs_nothing_and_holds_no_row(tmp_path):
    values = np.random.default_rng(0).normal(size=500)
    frame = pd.DataFrame({"x": values})
    html = compare(frame, frame + 1).report(tmp_path / "r.html").read_text("utf-8")
    assert not re.findall(r"https?://|src=|@import|url\(", html)
    inner = np.sort(values)[30:-30:50]
    shown = [text for text in (f"{value:.12g}" for value in inner) if text in html]
    assert shown == []


def test_a_report_is_whole_or_not_there(found, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("before")
    with monkeypatch.context() as patched:
        patched.setattr(report, "render", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            found.report(path)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["r.html"]
    nowhere = tmp_path / "no" / "r.html"
    with pytest.raises(FileNotFoundError, match=re.escape(f"'{nowhere}'")):
        compare(pd.DataFrame({"x": [1]}), pd.DataFrame({"x": [1]})).report(nowhere)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=re.escape(f"'{tmp_path / 'folder'}'")):
        found.report(tmp_path / "folder")


class Safe(str):
    """A text that claims to be markup."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def test_titles_that_claim_to_be_safe_stay_text(found, tmp_path):
    html = found.report(tmp_path / "r.html", title=Safe("<b>bold</b>")).read_text("utf-8")
    assert "<b>" not in html
    assert "&lt;b&gt;bold" in html


def test_half_a_surrogate_pair_is_written_as_its_code(tmp_path):
    name = pd.Index(["\ud800"], dtype=object)
    before, after = (pd.DataFrame(np.ones((rows, 1)), columns=name) for rows in (3, 4))
    html = compare(before, after).report(tmp_path / "r.html", title="\udfff").read_text("utf-8")
    assert r"<bdi>\ud800</bdi>" in html or r">\ud800</a>" in html
    assert r"<title>\udfff</title>" in html


def test_the_interval_stands_beside_the_estimate_that_it_is_around(found, tmp_path):
    values = found.results["number"].values
    corrected, ends = report.number(values["kl_corrected"]), report.interval(values)
    assert corrected != report.number(values["kl"])
    html = found.report(tmp_path / "r.html").read_text("utf-8")
    for text in (html, found._repr_html_()):
        cells = parsed(text).text
        at = cells.index(ends)
        assert [one for one in cells[:at] if one.strip()][-1] == corrected
    assert f"corrected {corrected}, {ends}; p " in html


def test_names_written_from_right_to_left_stay_apart(tmp_path):
    name, label = "\u202ename", "\u202elabel"
    before, after = (pd.DataFrame({name: [label] * rows + ["b"] * 9}) for rows in (9, 90))
    found = compare(before, after)
    for text in (found.report(tmp_path / "r.html").read_text("utf-8"), found._repr_html_()):
        for one in (name, label):
            shown = re.findall(rf"<[^<>]*>{one}<[^<>]*>", text)
            assert shown or one == label
            assert {"bdi" in tags or "#column" in tags for tags in shown} <= {True}


def test_an_unknown_interval_is_one_dash(tmp_path):
    found = compare(pd.DataFrame({"x": [1.0]}), pd.DataFrame({"y": [1.0]}))
    assert "– to –" not in found._repr_html_() + found.report(tmp_path / "r.html").read_text("utf-8")


def test_notebook_table_lists_every_column(found):
    tags = parsed(found._repr_html_())
    assert tags.tags.count("tr") == len(found.rows()) + 1
    assert "is not in current" in "".join(tags.text)


def test_long_columns_are_cut_and_say_so(tmp_path):
    rng = np.random.default_rng(0)
    a, b = (pd.DataFrame({"id": rng.integers(0, 5000, 20_000).astype(str)}) for _ in range(2))
    html = compare(a, b).report(tmp_path / "r.html").read_text("utf-8")
    assert "further cells" in html
    assert "rarer categories of the reference" in html
    assert html.count("<tr>") < 100


@pytest.mark.filterwarnings("ignore:Glyph")  # the fonts at hand lack some of the signs
def test_plots_take_and_return_axes(found):
    plt = pytest.importorskip("matplotlib.pyplot", reason="drawings need matplotlib")
    plt.switch_backend("agg")
    made, ax = plt.subplots()
    assert found.plot(ax=ax) is ax
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [name.replace("$", r"\$") for name in found.by_evidence()]
    plt.close(made)
    bars = found.plot("number")
    assert "KL = " in bars.get_title()
    heights = [patch.get_width() for patch in bars.patches]
    kept = found.results["number"].used
    np.testing.assert_allclose(heights, [*found.results["number"].p[kept], *found.results["number"].q[kept]])
    found.plot("$x$").figure.canvas.draw()
    plt.close("all")
    with pytest.raises(ValueError, match="column: 'nope' is not in the comparison"):
        found.plot("nope")
    with pytest.raises(ValueError, match="is not in current"):
        found.plot("gone" + SCRIPT)


@pytest.mark.parametrize(("confidence", "text"), [(0.95, "95 %"), (0.975, "97.5 %"), (0.99999, "99.999 %")])
def test_intervals_are_told_with_their_confidence(confidence, text):
    plt = pytest.importorskip("matplotlib.pyplot", reason="drawings need matplotlib")
    plt.switch_backend("agg")
    frame = pd.DataFrame({"x": [1.0, 2.0] * 50})
    made = compare(frame, frame, confidence=confidence)
    assert f"with {text} interval" in made.plot().get_xlabel()
    assert f">{text} interval<" in made._repr_html_()
    plt.close("all")


def test_plots_of_infinite_values():
    plt = pytest.importorskip("matplotlib.pyplot", reason="drawings need matplotlib")
    plt.switch_backend("agg")
    a, b = pd.DataFrame({"x": list("ab") * 50}), pd.DataFrame({"x": ["a"] * 100})
    found = compare(a, b, smoothing="none")
    assert found.results["x"].values["kl"] == np.inf
    for column in (None, "x"):
        ax = found.plot(column)
        ax.figure.canvas.draw()
        assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()
    plt.close("all")


def test_plots_of_half_a_surrogate_pair():
    plt = pytest.importorskip("matplotlib.pyplot", reason="drawings need matplotlib")
    plt.switch_backend("agg")
    names = pd.Index(["\ud800"], dtype=object)
    frame = pd.DataFrame([["a\udcff"], ["b"]] * 9, columns=names, dtype=object)
    found = compare(frame, frame)
    for axes, text in ((found.plot(), "\\ud800"), (found.plot("\ud800"), "a\\udcff")):
        axes.figure.canvas.draw()
        assert text in [label.get_text() for label in axes.get_yticklabels()]
    plt.close("all")


def test_plots_of_columns_that_say_nothing():
    plt = pytest.importorskip("matplotlib.pyplot", reason="drawings")
    names = [pd.DataFrame({"x": [f"{k}" for k in range(start, start + 1500)]}) for start in (0, 1500)]
    for pair in (names, [names[0].head(0)] * 2, [names[0], names[0].head(0)]):
        comparison = compare(*pair)
        for column in (None, "x"):
            ax = comparison.plot(column)
            ax.figure.canvas.draw()
            assert np.isfinite(ax.get_xlim()).all()
    plt.close("all")


# --- in a browser ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="drives the browser")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine")
    with sync.sync_playwright() as driver:
        one = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture
def page(browser, found, tmp_path):
    path = found.report(tmp_path / "report.html")
    context = browser.new_context()
    one = context.new_page()
    one.complaints, seen = [], []
    one.on("console", lambda message: one.complaints.append(message.text))
    one.on("pageerror", lambda error: one.complaints.append(str(error)))
    one.on("dialog", lambda dialog: (one.complaints.append(dialog.message), dialog.dismiss()))
    one.on("request", lambda request: seen.append(request.url))
    one.goto(path.as_uri())
    yield one
    assert one.complaints == []
    assert [url for url in seen if not url.startswith(("file:", "data:"))] == []
    context.close()


def names(page) -> list[str]:
    return page.locator("#columns tbody tr:not([hidden]) th").all_inner_texts()


def test_browser_opens_sorts_and_filters(page, found):
    assert len(names(page)) == len(found.rows())
    page.get_by_role("button", name="KL", exact=True).click()
    values = {row["column"]: row["kl"] for row in found.rows()}
    shown = [values[name] for name in names(page) if values[name] == values[name]]
    assert shown == sorted(shown)
    head = page.locator("th", has=page.get_by_role("button", name="KL", exact=True))
    assert head.get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="KL", exact=True).click()
    shown = [values[name] for name in names(page) if values[name] == values[name]]
    assert shown == sorted(shown, reverse=True)
    assert names(page)[-1].startswith("gone")
    page.get_by_label("Find a column").fill("numb")
    assert names(page) == ["number"]
    assert page.get_by_role("status").inner_text() == f"1 of {len(found.rows())} columns"
    page.get_by_label("Find a column").fill("")
    page.get_by_label("Show").select_option("problem")
    assert names(page) == ["gone" + SCRIPT]


SEARCHES = {"İstanbul": ["istan", "İSTAN", "stanb"], "Größe é": ["GRÖ", "e\u0301"], "plain": ["PLAIN"]}


def test_browser_finds_names_in_any_capitals_and_accents(browser, tmp_path):
    frame = pd.DataFrame({name: [1.0, 2.0, 3.0] for name in SEARCHES})
    one = browser.new_page()
    one.goto(compare(frame, frame).report(tmp_path / "report.html").as_uri())
    for name, texts in SEARCHES.items():
        for text in texts:
            one.get_by_label("Find a column").fill(text)
            assert names(one) == [name]
    one.close()


def sections(page) -> list[str]:
    return page.locator("details:visible > summary > bdi").all_inner_texts()


def test_browser_filters_the_sections_with_the_table(page, found):
    changed = {row["column"] for row in found.rows() if row["p_adjusted"] < 0.05}
    assert sections(page) == found.by_evidence()
    page.get_by_label("Show").select_option("changed")
    assert set(sections(page)) == set(names(page)) == changed != set(found.by_evidence())
    page.get_by_label("Find a column").fill("numb")
    assert sections(page) == names(page) == ["number"]
    page.get_by_role("link", name="number", exact=True).click()
    page.locator("details[open]:visible").wait_for()  # one alone; it opens once the browser has told of the new address
    page.get_by_label("Find a column").fill("same")
    assert sections(page) == names(page) == []
    assert page.get_by_role("heading", name="Column by column").count() == 0  # nothing would stand below it
    page.get_by_label("Show").select_option("problem")
    page.get_by_label("Find a column").fill("")
    assert (names(page), sections(page)) == (["gone" + SCRIPT], [])
    page.get_by_label("Show").select_option("all")
    assert sections(page) == found.by_evidence()
    assert page.get_by_role("heading", name="Column by column").count() == 1


def test_browser_prints_what_is_not_filtered(page, found):
    page.emulate_media(media="print")
    for name, expected in (("numb", ["number"]), ("", found.by_evidence())):
        page.get_by_label("Find a column").evaluate(
            "(one, text) => { one.value = text; one.dispatchEvent(new Event('input')); }", name
        )
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert sections(page) == expected
        assert page.locator("details:visible > .wide:visible").count() == len(expected)
        rows = len(found.rows()) if not name else 1
        assert len(names(page)) == rows
        assert page.get_by_role("status").inner_text() == f"{rows} of {len(found.rows())} columns"
        assert page.get_by_role("status").is_visible()
        assert not page.get_by_label("Find a column").is_visible()


def test_browser_works_by_keyboard_and_link(page, found):
    page.get_by_role("button", name="Column", exact=True).focus()
    page.keyboard.press("Enter")
    head = page.locator("th", has=page.get_by_role("button", name="Column", exact=True))
    assert head.get_attribute("aria-sort") == "ascending"
    page.get_by_role("link", name="number", exact=True).click()
    assert page.locator("details[open] summary").first.inner_text().startswith("number")


def test_browser_phone_dark_and_print(page, tmp_path):
    page.set_viewport_size({"width": 360, "height": 700})
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    value = page.locator("#columns tbody tr").first.locator("td").nth(1).bounding_box()  # KL, without scrolling
    assert 0 < value["x"] < value["x"] + value["width"] <= 360
    page.locator("details summary").first.click()
    for cell in page.locator("details[open] tbody tr").first.locator("td.bar").all():
        box = cell.bounding_box()
        assert box["x"] + box["width"] <= 360
    assert page.pdf(path=tmp_path / "r.pdf").startswith(b"%PDF")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0


def test_browser_every_control_has_a_name(page):
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, button, [role=region]')].filter(one => !("
        "one.labels?.length || one.textContent.trim() || one.ariaLabel || one.getAttribute('aria-labelledby'))).length"
    )
    assert nameless == 0
    assert page.locator("table th:not([scope])").count() == 0
    assert page.locator("html").get_attribute("lang") == "en"


def test_columns_with_a_remark_are_found_by_the_filter():
    before = pd.DataFrame({"x": [1.0, 2.0], "y": [1, 2]})
    found = compare(before, before.assign(x=np.nan), missing="drop")
    html = report.render(found, "title")
    assert [row["status"] for row in found.rows()] == ["current has no values", "ok"]
    assert 'data-name="x" data-states="same problem"' in html
    assert 'data-name="y" data-states="same"' in html
