# SPDX-License-Identifier: MIT
"""The report in a browser: tables sort and filter, links open pages, points and themes work.

Needs a Chromium on the path and the Python package playwright, whose own browsers are not used.
"""

import os
import re
import shutil
from pathlib import Path

import pytest
import suite
from ladder.commands.cli import main
from page import ATTACKS, hostile

playwright = pytest.importorskip("playwright.sync_api", reason="no Python package playwright")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    BROWSER is None or Path(BROWSER).resolve().is_relative_to("/snap"),
    reason="no Chromium on the path, or one that sees no files",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Reports of two GPUs against a slower and a faster base, and of attacks."""
    folder = tmp_path_factory.mktemp("browser")
    heads = [suite.document(), suite.document(0.5, gpu_name="NVIDIA A100", gpu_uuid="other")]
    for i, head in enumerate([*heads, suite.document(1.1)]):
        suite.write(folder / f"{i}.json", suite.only(head, "sgemm/", "roof/"))
    files = [str(folder / "0.json"), str(folder / "1.json")]
    base = ["--base", str(folder / "2.json")]
    assert main(["report", *files, *base, "-o", str(folder / "gpus")]) == 1
    attack = suite.write(folder / "attack.json", hostile())
    assert main(["report", str(attack), "-o", str(folder / "attack")]) == 0
    arguments = Path(__file__).parent / "data/suites/arguments.json"
    assert main(["report", str(arguments), "-o", str(folder / "arguments")]) == 0
    long = folder / "a_name_that_is_as_long_as_a_phone_is_wide"  # stands in a note: no figures
    file = suite.write(long.with_suffix(".json"), single())
    assert main(["report", str(file), "-o", str(long)]) == 0
    return folder


def single() -> dict:
    return {"context": {}, "benchmarks": [{"name": "a", "real_time": 1.0, "time_unit": "ns"}]}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=BROWSER, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, folder):
    """A page that has loaded without a network, and must not complain."""
    said: list[str] = []
    context = browser.new_context(offline=True, color_scheme="light")
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.goto((folder / "gpus/report.html").as_uri())
    yield page
    context.close()
    assert said == []


def shows(page, title: str) -> None:
    """Wait for the page of that title: what a click or a fragment opens comes a little later."""
    heading = page.locator("section.page:visible h1")
    playwright.expect(heading).to_have_text(re.compile(rf"^{re.escape(title)}( |$)"))


def visit(page, route: str) -> None:
    """Open the page at a route, and wait for it."""
    page.goto(f"{page.url.partition('#')[0]}#{route}")
    page.locator(f'section.page[data-route="{route}"]:visible').wait_for()


def column(page, title: str) -> list[str]:
    table = page.locator(".rows:visible")
    titles = [text.strip() for text in table.locator("thead th").all_inner_texts()]
    return table.locator(f"tbody td:nth-child({titles.index(title) + 1})").all_inner_texts()


def test_links_open_pages_and_back_returns(page):
    shows(page, "NVIDIA H200")
    page.locator("section.page:visible a", has_text="SGEMM").first.click()
    shows(page, "SGEMM")
    page.locator("section.page:visible tbody a", has_text="pipelined").first.click()
    shows(page, "pipelined")
    assert len(column(page, "case")) == 6
    page.go_back()
    shows(page, "SGEMM")
    visit(page, "/sgemm/cublas")
    page.reload()
    shows(page, "cublas")
    page.goto(page.url.partition("#")[0] + "#/no/such")
    shows(page, "No such page")


def test_tables_sort_by_keyboard_and_filter(page):
    visit(page, "/sgemm")
    assert len(column(page, "time")) == 48
    speed = page.locator(".rows:visible th button", has_text="speed")
    speed.focus()
    page.keyboard.press("Enter")
    header = page.locator(".rows:visible th[aria-sort=descending]")
    assert header.inner_text().strip() == "speed"
    assert column(page, "speed")[:2] == ["416 TFLOP/s", "393 TFLOP/s"]
    page.keyboard.press("Enter")
    assert column(page, "speed")[0] == "440 GFLOP/s"  # though 440 is the larger number

    page.get_by_label("Filter").and_(page.locator(":visible")).fill("tile K:77")
    assert column(page, "rung") == ["register_tile", "tiled"]  # still by speed
    count = page.locator(".rows:visible output")
    assert count.inner_text() == "2 of 48 rows"
    assert count.get_attribute("aria-live") == "polite"


def test_points_tell_what_they_are_and_lead_to_their_rung(page):
    pytest.importorskip("vl_convert", reason="no Python package vl-convert-python")
    visit(page, "/sgemm")
    tip = page.locator("#tip:visible")
    chart = page.locator(".chart:visible")
    point = chart.locator('path[tabindex="0"]')  # one stop of the tab key
    playwright.expect(point).to_have_count(1)
    naive = chart.locator('path[aria-label^="naive at 4096"]')
    naive.hover()
    playwright.expect(tip).to_have_text("naive at 4096: 0.500 TFLOP/s, 0.785 % of its ceiling")
    naive.focus()
    page.keyboard.press("ArrowRight")
    playwright.expect(tip).to_contain_text("naive at 8192: 0.500 TFLOP/s")
    page.keyboard.press("ArrowUp")
    playwright.expect(tip).to_contain_text("coalesced at 8192: 5.80 TFLOP/s")
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")
    page.keyboard.press("Enter")
    shows(page, "coalesced")
    own = page.locator(".chart:visible path[aria-label]")
    own.first.wait_for()  # the chart is drawn after the page has opened
    assert {"coalesced", "naive", "pipelined", "cublas"} <= {
        each.get_attribute("aria-label").split()[0] for each in own.all()
    }
    own.locator('xpath=self::*[starts-with(@aria-label, "naive at 512:")]').click()
    shows(page, "naive")


def test_the_tree_leads_from_rung_to_rung(page):
    visit(page, "/sgemm/tiled")
    tree = page.locator(".tree:visible")
    playwright.expect(tree.locator("[aria-current=page]")).to_have_text("tiled")
    playwright.expect(tree).to_contain_text("tiled 9.10 TFLOP/s")
    tree.locator("a", has_text="register_tile").click()
    shows(page, "register_tile")
    playwright.expect(tree.locator("[aria-current=page]")).to_have_text("register_tile")


def test_a_rungs_page_has_its_chapter_and_its_counters(page):
    visit(page, "/sgemm/tiled")
    chapter = page.locator("details[data-source]:visible")
    playwright.expect(chapter).to_contain_text("__global__ void tiled(")
    playwright.expect(page.locator(".counters:visible")).to_contain_text("static_shared_bytes")
    page.locator("section.page:visible a", has_text="kernels/sgemm/ladder.cu").click()
    shows(page, "kernels/sgemm/ladder.cu")


@pytest.mark.parametrize(("width", "theme"), [(1300, "dark"), (400, "light")])
def test_no_serious_violation_of_accessibility(page, theme, width):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no Python package axe-playwright-python"
    )
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    for route in ("/", "/sgemm", "/sgemm/tiled", "changes", "rows"):
        visit(page, route)
        if route.startswith("/sgemm"):
            page.locator("section.page:visible .rows table").wait_for()
        found = axe.Axe().run(page).response["violations"]
        grave = [each["help"] for each in found if each["impact"] in ("serious", "critical")]
        assert grave == [], route


def test_themes_and_gpus_can_be_chosen(page):
    body = playwright.expect(page.locator("body"))
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    body.not_to_have_css("background-color", light)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Theme: auto").click()
    body.to_have_css("background-color", light)
    page.get_by_role("button", name="Theme: light").click()
    page.emulate_media(color_scheme="light")
    body.to_have_css("background-color", dark)

    visit(page, "/sgemm/cublas")
    page.locator("#gpu").select_option("2")
    where = page.locator("section.page:visible .where").first
    playwright.expect(where).to_contain_text("A100")
    shows(page, "cublas")
    page.locator(".home").click()
    shows(page, "NVIDIA A100")


def test_a_phone_has_no_scrolling_sideways(page):
    page.set_viewport_size({"width": 390, "height": 800})
    chapter = "source/kernels/sgemm/01_textbook.cuh"
    for route in ("/", "/sgemm", "/sgemm/tiled", "/sgemm/cublas", chapter, "changes", "rows"):
        visit(page, route)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, route
    for route in ("/", "/sgemm", "rows"):  # nor of a table, down to the speed
        visit(page, route)
        header = page.locator("section.page:visible th:visible", has_text="speed").first
        box = header.bounding_box()
        assert box["x"] + box["width"] <= 390, route


@pytest.mark.parametrize("suite_of", ["arguments", "a_name_that_is_as_long_as_a_phone_is_wide"])
def test_another_suite_fits_a_phone(page, folder, suite_of):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto((folder / suite_of / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    visit(page, "rows")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_attacks_run_nowhere(page, folder):
    page.goto((folder / "attack/report.html").as_uri() + "#rows")
    assert page.locator(".rows:visible tbody tr").count() == 3 * len(ATTACKS)
    assert ATTACKS[0] in page.locator(".rows:visible tbody").inner_text()
    page.locator(".rows:visible tbody a").first.click()
    assert page.locator("section.page:visible .lede").inner_text() == ATTACKS[0]
    if page.locator(".chart:visible").count():  # the library is there
        page.locator(f".chart:visible path[aria-label^='{ATTACKS[0][:7]}']").first.hover()
        assert ATTACKS[0].replace("/", "") in page.locator("#tip:visible").inner_text()
