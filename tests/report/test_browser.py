import re
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from s2osc.data.answers import read_labels
from s2osc.report import page as page_module
from s2osc.report.check_page import check_page
from s2osc.report.page import write_report

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
if BROWSER is None:
    pytest.skip("no chromium: browser tests left out", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: left out")

LAPTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
OPTIONS = ["--no-sandbox", "--headless=new", "--disable-gpu", "--no-first-run"]
OPTIONS += ["--disable-background-networking", "--renderer-process-limit=1"]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def visitor(browser):
    """A visitor with such a screen, who opens one report after the other in the same tab."""

    @cache
    def open_tab(width, scheme):
        context = browser.new_context(
            viewport=LAPTOP if width == LAPTOP["width"] else PHONE,
            color_scheme=scheme,
            has_touch=width == PHONE["width"],
            reduced_motion="reduce",
        )
        page, troubles, requests = context.new_page(), [], []
        page.set_default_timeout(5000)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        return page, troubles, requests

    return open_tab


@pytest.fixture
def show(visitor, tmp_path):
    """Open the page of a pool; at the end, hold it to making no noise and no request."""
    visitors = []

    def open_page(inputs, viewport=LAPTOP, scheme="light"):
        path = tmp_path / "report.html"
        write_report(path, inputs, seed=0)
        page, troubles, requests = visitor(viewport["width"], scheme)
        page.mouse.move(0, 0)  # away from where the report before was pointed at
        troubles.clear()
        requests.clear()
        visitors.append((troubles, requests))
        page.goto(path.as_uri())
        return page

    yield open_page
    for troubles, requests in visitors:
        assert troubles == []
        assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def scene(page):
    """The map as it is painted while the mouse points at nothing."""
    page.mouse.move(2, 2)
    page.evaluate(PAINTED)
    return page.locator("#map").evaluate("canvas => canvas.toDataURL()")


def centre_of_map(page):
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(LAPTOP, "light", id="laptop"),
        pytest.param(PHONE, "dark", id="phone"),
        pytest.param(LAPTOP, "dark", id="dark laptop", marks=pytest.mark.slow),
        pytest.param(PHONE, "light", id="light phone", marks=pytest.mark.slow),
    ],
)
def test_the_page_fits_the_screen(pool, show, viewport, scheme):
    classes = ("<script>alert(1)</script>", "a long name " * 5, "手写数字")
    names = [f"{'deep/' * 20}{place}.png" for place in range(60)]
    truth = ["a true class with a long name"] * 60
    summary = {
        "settings": {"a_setting_without_any_space_" * 4: "value_" * 30},
        "warnings": ["x" * 300],
    }
    page = show(pool(classes=classes, names=names, truth=truth, summary=summary), viewport, scheme)
    page.locator("details").evaluate_all("parts => parts.forEach(part => { part.open = true })")
    page.locator("[data-select='1']").click()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= viewport["width"]


def test_many_classes_and_groups_fit_a_phone(pool, show):
    page = show(pool(n=200, n_classes=30, n_groups=20), PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("[data-toggle]").count() == 50


def test_pointing_at_an_item_shows_its_card(pool, show):
    page = show(pool(n=1))
    card = page.locator("#card")
    assert card.is_hidden()
    page.mouse.move(*centre_of_map(page))
    assert card.is_visible()
    assert "item-0000.png" in card.inner_text()
    assert "class 0" in card.inner_text()
    page.mouse.move(5, 5)
    assert card.is_hidden()


def test_pointing_at_either_of_two_items_shows_that_one(pool, show):
    embeddings = np.array([[0.0, 0.0], [1.0, 0.0]], dtype=np.float32)
    page = show(pool(n=2, embeddings=embeddings))
    x, y = centre_of_map(page)
    names = set()
    for step in np.linspace(-1, 1, 33):
        page.mouse.move(x + step * 352, y)
        if page.locator("#card").is_visible():
            names.add(page.locator("#card .item-name").inner_text())
    assert names == {"item-0000.png", "item-0001.png"}


def test_a_tap_shows_the_card_on_a_phone(pool, show):
    page = show(pool(n=1), PHONE)
    page.touchscreen.tap(*centre_of_map(page))
    assert "item-0000.png" in page.locator("#card").inner_text()


def test_arrow_keys_walk_through_the_items(pool, show):
    page = show(pool(n=3))
    page.locator("#map").focus()
    seen = []
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        seen.append(page.locator("#card .item-name").inner_text())
    assert sorted(seen) == ["item-0000.png", "item-0001.png", "item-0002.png"]


def test_the_legend_hides_a_kind_and_brings_it_back(pool, show):
    page = show(pool())
    chip = page.locator("[data-toggle='0']")
    before = scene(page)
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert scene(page) != before
    chip.press("Enter")
    assert chip.get_attribute("aria-pressed") == "true"
    assert scene(page) == before


def test_a_bar_shows_only_its_items_until_all_are_shown_again(pool, show):
    page = show(pool())
    before = scene(page)
    n_tiles = page.locator("li[data-kind]:visible").count()
    page.locator("[data-select='3']").click()
    assert scene(page) != before
    kinds = page.locator("li[data-kind]:visible").evaluate_all(
        "all => all.map(t => t.dataset.kind)"
    )
    assert set(kinds) == {"3"}
    assert "Only Group 0" in page.locator("#selection").inner_text()
    page.get_by_role("button", name="Show all").click()
    assert page.locator("#selection").is_hidden()
    assert page.locator("li[data-kind]:visible").count() == n_tiles
    assert scene(page) == before


def test_the_map_can_be_coloured_zoomed_and_filled_with_pictures(pool, show):
    page = show(pool())
    scenes = [scene(page)]
    for selector in (
        "[data-colour='w']",
        "[data-colour='confidence']",
        "#pictures",
        "[data-zoom='1.6']",
    ):
        page.locator(selector).click()
        scenes.append(scene(page))
    assert len(set(scenes)) == len(scenes)
    for selector in ("[data-zoom='0']", "#pictures", "[data-colour='answer']"):
        page.locator(selector).click()
    assert scene(page) == scenes[0]


@pytest.mark.parametrize("images", [True, False], ids=["images", "vectors"])
def test_choosing_a_tile_opens_everything_about_its_item(pool, show, images):
    page = show(pool() if images else pool(images=None))
    tile = page.locator(".tile").first
    tile.click()
    dialog = page.locator("dialog")
    assert tile.get_attribute("title") in dialog.inner_text()
    assert dialog.locator("img").count() == int(images)
    page.keyboard.press("Escape")
    assert dialog.is_hidden()


def test_choosing_a_point_shows_its_figures_and_the_command_that_applies_it(pool, seeded, show):
    page = show(seeded(pool(n=12)))
    panel = page.locator(".choice")
    assert "This is how the pool is decided now." in panel.inner_text()
    assert page.locator("#choice-command").is_hidden()
    page.get_by_label("2.0% false alarms, 70.0% recall").click()
    expected = "s2osc decide --out results --false-alarm 0.02 --aim recall"
    assert page.locator("#command").text_content() == expected
    assert "70.0% (60.0% to 80.0%)" in panel.inner_text()
    assert "decided now" not in panel.inner_text()
    page.get_by_label("now: 4.0% false alarms").click()
    assert page.locator("#choice-command").is_hidden()


def test_arrow_keys_walk_along_the_operating_curve(pool, seeded, show):
    page = show(seeded(pool(n=12)))
    page.get_by_label("now: 4.0% false alarms").focus()
    commands = []
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
        commands.append(page.locator("#command").text_content())
    assert [command.split()[5] for command in commands] == ["0.02", "0.01"]


def test_pointing_beside_a_point_chooses_the_nearest(pool, seeded, show):
    page = show(seeded(pool(n=12)), PHONE)
    area = page.locator("#choices")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] - 12, box["y"] + box["height"] * 0.3)
    assert page.locator("#command").text_content().split()[5] == "0.1"
    assert page.get_by_label("10.0% false alarms").is_checked()


def test_the_command_is_copied_or_selected_to_be_copied(pool, seeded, show):
    page = show(seeded(pool(n=12)))
    expected = "s2osc decide --out results --false-alarm 0.01 --aim recall"
    page.get_by_label("1.0% false alarms").click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#copy").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == expected
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject() }")
    page.locator("#copy").click()
    page.get_by_text("Selected: copy it").wait_for()
    assert page.evaluate("getSelection().toString()") == expected


@pytest.mark.parametrize(
    "viewport",
    [
        pytest.param(LAPTOP, id="laptop", marks=pytest.mark.slow),
        pytest.param(PHONE, id="phone"),
    ],
)
def test_an_audit_of_many_classes_with_long_names_fits_the_screen(
    pool, seeded, unsure, show, viewport
):
    classes = tuple(f"{'long name ' * 4}{'without_any_space' * 3}{place}" for place in range(30))
    inputs = seeded(unsure(pool(n=200, n_classes=30, classes=classes)), sure_known_below=0.7)
    page = show(inputs, viewport, "dark")
    page.locator("details").evaluate_all("parts => parts.forEach(part => { part.open = true })")
    page.get_by_label("1.0% false alarms").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    overhang = page.locator("#audit .card").evaluate_all(
        "cards => cards.map(card => card.scrollWidth - card.clientWidth)"
    )
    assert max(overhang) <= 0


def test_only_unsure_items_can_be_shown(pool, unsure, show):
    page = show(unsure(pool(n=12)))
    page.locator("[data-show='unsure']").click()
    pressed = page.locator("[data-toggle][aria-pressed='true']")
    assert pressed.all_inner_texts() == ["Unsure"]


def test_labels_written_on_the_page_of_a_check_are_saved_as_its_table(browser, tmp_path):
    path, saved = tmp_path / "check.html", tmp_path / "saved.csv"
    items = {4: '=a, "b".png', 2: "é.png", 7: "c.png"}
    path.write_bytes(check_page(items, {}, ("cat", "dog"), name="check.csv"))
    page = browser.new_page(viewport=LAPTOP)
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(path.as_uri())
    fields = page.locator("input[data-item]")
    fields.nth(0).fill("cat")
    fields.nth(2).fill("unknown")
    assert page.locator("#done").inner_text() == "2 of 3 labelled"
    with page.expect_download() as download:
        page.locator("#save").click()
    assert download.value.suggested_filename == "check.csv"
    download.value.save_as(saved)
    page.close()
    assert troubles == []
    assert read_labels(saved, like="it").labels == {
        items[4]: "cat",
        items[2]: "",
        items[7]: "unknown",
    }


def test_pictures_of_other_numbers_of_groups_are_shown_whole(pool, show):
    html = (Path(page_module.__file__).parent / "report.html").read_text(encoding="utf-8")
    gallery = re.search(r'<p class="(\w+)">{% for item in items %}', html)[1]
    page = show(pool())
    page.evaluate(
        """of => document.body.insertAdjacentHTML(
            "beforeend", `<div class="alternative"><p class="${of}"><img alt=""></p></div>`)""",
        gallery,
    )
    around, picture = (
        page.locator(place).bounding_box() for place in (".alternative p", ".alternative img")
    )
    assert around["height"] >= picture["height"] > 40
