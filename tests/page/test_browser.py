"""The page in a real headless browser: light and dark, wide and narrow."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hillinfer.page.contents import CHAPTERS

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'hillinfer[test]'")

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = (1280, 390)

# Every piece of text in an element: its colour over the nearest background, both as [red, green, blue].
_DRAWN = "figure:not([id^=figure-needles]) svg text"  # numbers on a map's colours have tests of their own
_CONTRASTS = """
(selector) => {
  const parse = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll(selector)].filter(element => element.textContent.trim()).map(element => {
    const style = getComputedStyle(element);
    const ink = light(parse(element instanceof SVGElement ? style.fill : style.color)), paper = light(behind(element));
    return [(Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05), element.textContent.trim().slice(0, 40)];
  });
}
"""

# Of every picture: what it says to those who don't see it, and the size of its table.
_FIGURES = """
() => [...document.querySelectorAll("figure")].map(figure => ({
  texts: figure.querySelector("svg[role=img]").getAttribute("aria-labelledby").split(" ")
    .map(id => document.getElementById(id).textContent),
  rows: figure.querySelectorAll("details table tbody tr").length,
  headings: figure.querySelectorAll("details table thead th[scope=col]").length,
}))
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"needs a browser: one of {', '.join(BROWSERS)} (apt-get install chromium-headless-shell)")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(params=[(scheme, width) for scheme in ("light", "dark") for width in WIDTHS], ids=str)
def opened(request: pytest.FixtureRequest, browser: Any, page: Path) -> Iterator[Any]:
    scheme, width = request.param
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab.set_default_timeout(60_000)
    complaints: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    yield tab
    assert complaints == []
    assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]
    tab.close()


def test_all_sections_fit_and_can_be_read(opened):
    keys = opened.eval_on_selector_all("main section", "all => all.map(each => each.id)")
    assert keys == [*(chapter.key for chapter in CHAPTERS), "machine"]
    assert opened.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    opened.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true })")
    assert opened.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for selector in ("p, figcaption *, h1, h2, h3, nav a, summary, code, .theme span", "th, td, caption", _DRAWN):
        contrasts = opened.evaluate(_CONTRASTS, selector)
        assert contrasts
        assert [each for each in contrasts if each[0] < 4.5] == []


def test_every_picture_has_a_text_and_its_figures(opened):
    figures = opened.evaluate(_FIGURES)
    assert len(figures) > 10
    for figure in figures:
        assert all(len(text) > 5 for text in figure["texts"]), figure
        assert figure["rows"] > 0, figure
        assert figure["headings"] > 1, figure


def test_the_theme_is_chosen_by_keyboard(browser, page):
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    tab.goto(page.as_uri())

    def paper() -> str:
        return tab.evaluate("getComputedStyle(document.body).backgroundColor")

    light = paper()
    tab.keyboard.press("Tab")  # the link to the figures, for those who don't see the page
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "theme-auto"
    tab.keyboard.press("ArrowRight")
    assert paper() == light
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.id") == "theme-dark"
    assert paper() != light
    tab.emulate_media(media="print")
    assert paper() == light
    assert not tab.is_visible("nav")
    tab.close()
