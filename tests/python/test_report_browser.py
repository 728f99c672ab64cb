# SPDX-License-Identifier: MIT
"""The report in a browser: tables sort and filter, links open pages, points and themes work.

Needs a Chromium on the path and the Python package playwright, whose own browsers are not used.
"""

import os
import shutil
from pathlib import Path

import pytest
import suite
from ladder.cli import main
from test_report import ATTACKS, hostile

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
        head["benchmarks"] = [
            r for r in head["benchmarks"] if r["name"].startswith(("sgemm/", "roof/"))
        ]
        suite.write(folder / f"{i}.json", head)
    files = [str(folder / "0.json"), str(folder / "1.json")]
    base = ["--base", str(folder / "2.json")]
    assert main(["report", *files, *base, "-o", str(folder / "gpus")]) == 1
    attack = suite.write(folder / "attack.json", hostile())
    assert main(["report", str(attack), "-o", str(folder / "attack")]) == 0
    return folder


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


def shown(page) -> str:
    return page.locator("section.page:visible h1").inner_text()


def column(page, title: str) -> list[str]:
    table = page.locator(".rows:visible")
    titles = [text.strip() for text in table.locator("thead th").all_inner_texts()]
    return table.locator(f"tbody td:nth-child({titles.index(title) + 1})").all_inner_texts()


def test_links_open_pages_and_back_returns(page):
    assert shown(page) == "NVIDIA H200"
    page.locator("section.page:visible a", has_text="SGEMM").first.click()
    assert shown(page) == "SGEMM"
    page.locator("section.page:visible tbody a", has_text="pipelined").first.click()
    assert shown(page) == "pipelined"
    assert len(column(page, "case")) == 6
    page.go_back()
    assert shown(page) == "SGEMM"
    page.goto(page.url.partition("#")[0] + "#/sgemm/cublas")
    page.reload()
    assert shown(page).startswith("cublas")
    page.goto(page.url.partition("#")[0] + "#/no/such")
    assert shown(page) == "No such page"


def test_tables_sort_by_keyboard_and_filter(page):
    page.goto(page.url + "#/sgemm")
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
    assert page.locator(".rows:visible output").inner_text() == "2 of 48 rows"


def test_points_tell_what_they_are_and_lead_to_their_rung(page):
    page.goto(page.url + "#/sgemm")
    point = page.locator("a.point:visible:not([tabindex])").first
    point.focus()
    assert "naive · m = n = k = 4096 · 500 GFLOP/s" in page.locator("#tip:visible").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**#/sgemm/naive")
    page.locator("#tip").wait_for(state="hidden")


def test_themes_and_gpus_can_be_chosen(page):
    def colour() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = colour()
    page.emulate_media(color_scheme="dark")
    dark = colour()
    assert light != dark
    page.get_by_role("button", name="Theme: auto").click()
    assert colour() == light
    page.get_by_role("button", name="Theme: light").click()
    page.emulate_media(color_scheme="light")
    assert colour() == dark

    page.goto(page.url.partition("#")[0] + "#/sgemm/cublas")
    page.locator("#gpu").select_option("2")
    assert "A100" in page.locator("section.page:visible .where").first.inner_text()
    assert shown(page).startswith("cublas")
    page.locator(".home").click()
    assert shown(page) == "NVIDIA A100"


def test_a_phone_has_no_scrolling_sideways(page):
    page.set_viewport_size({"width": 390, "height": 800})
    for route in ("/", "/sgemm", "/sgemm/cublas", "changes", "rows"):
        page.goto(page.url.partition("#")[0] + "#" + route)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, route


def test_attacks_run_nowhere(page, folder):
    page.goto((folder / "attack/report.html").as_uri() + "#rows")
    assert page.locator(".rows:visible tbody tr").count() == 2 * len(ATTACKS)
    assert ATTACKS[0] in page.locator(".rows:visible tbody").inner_text()
    page.locator(".rows:visible tbody a").first.click()
    assert page.locator("section.page:visible .lede").inner_text() == ATTACKS[0]
