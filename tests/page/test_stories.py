"""Whole stories in a browser, as a person lives them."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest
from PIL import Image

from files import image
from page_helpers import BROWSER, ELSEWHERE, OPTIONS, Live, Server, act, folder_of_axe
from s2osc.cli.main import main

if BROWSER is None:
    pytest.skip("no chromium: browser tests left out", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: left out")

LAPTOP, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 844}
VIEWS = ("groups", "map", "unsure", "check", "people", "learn", "export")


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        names = f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"
        opened = driver.chromium.launch(executable_path=BROWSER, args=[*OPTIONS, names])
        yield opened
        opened.close()


@pytest.fixture
def server(work):
    with Live(work) as running:
        yield running


@pytest.fixture
def visit(chromium):
    """Open the page as a person; at the end, hold it to making no noise and no request outside."""
    contexts, troubles, requests = [], [], []

    def open_page(server, name="", *, viewport=LAPTOP, scheme="light", noise=False):
        context = chromium.new_context(
            viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        if not noise:
            page.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: requests.append(r.url) if server.host not in r.url else None)
        page.goto(server.link)
        page.wait_for_selector(".card")
        if name:
            page.locator("#person").fill(name)
        page.locator("main").focus()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
    assert [url for url in requests if not url.startswith(("data:", "blob:"))] == []


def go(page, view):
    page.evaluate("view => { location.hash = view }", view)
    page.wait_for_timeout(150)


def count(page, name):
    """Items of the card of a class or group."""
    card = page.locator(".card", has=page.get_by_role("link", name=name, exact=True))
    return int(card.locator("header .soft").inner_text().split()[0].replace(",", ""))


def name_group(page, name):
    """Name the first group, and see it confirmed."""
    page.get_by_label("Name all of Group 0").fill(name)
    page.keyboard.press("Enter")
    page.get_by_role("link", name=name, exact=True).wait_for()


def test_a_group_is_named_and_the_name_taken_back(server, visit):
    page = visit(server, "Ada")
    before = count(page, "Group 0")
    name_group(page, "owl")
    assert count(page, "owl") == before
    assert "token" not in page.url
    page.locator("main").focus()
    page.keyboard.press("z")
    page.get_by_role("link", name="Group 0", exact=True).wait_for()
    assert count(page, "Group 0") == before
    assert page.get_by_role("link", name="owl", exact=True).count() == 0


@pytest.mark.slow
def test_a_browser_on_another_machine_can_name_a_group(work, visit):
    with Live(work, ELSEWHERE) as server:
        page = visit(server, "Ada", noise=True)  # headers count for encrypted pages alone
        assert not page.evaluate("isSecureContext")
        name_group(page, "owl")
        assert work.project.changes(0)["targets"] == ["class owl"]
        page.close()


@pytest.mark.slow
def test_a_slider_that_is_moved_by_keys_is_one_act(server, visit):
    page = visit(server, "Ada")
    before = page.locator("#rate-words").inner_text()
    page.locator("#rate").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('#rate-words').innerText !== before", arg=before
    )
    page.locator("main").focus()
    page.wait_for_timeout(1_500)
    assert server.ask("/api/changes?since=0")["act"] == 1
    page.keyboard.press("z")
    page.locator(".toast", has_text="Taken back: the operating point").wait_for()
    page.wait_for_timeout(300)
    assert page.locator("#rate-words").inner_text() == before


@pytest.mark.slow
def test_a_pool_from_audit_to_export_with_the_keyboard_alone(server, visit, out):
    page = visit(server, "Ada")
    go(page, "kind/group 0")
    page.locator(".grid").wait_for()
    page.wait_for_timeout(300)
    page.keyboard.press("a")
    bar = page.locator("#bar")
    bar.get_by_text("items selected").wait_for()
    page.keyboard.press("Escape")
    bar.wait_for(state="hidden")
    for key in ("ArrowRight", "Space", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    bar.get_by_text("3 items selected").wait_for()
    page.keyboard.press("2")  # the second class
    page.locator(".toast", has_text="3 items: top").wait_for()
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()
    assert "of known items are at least as strange" in page.locator("dialog").inner_text()
    page.keyboard.press("1")
    page.locator("dialog[open]").wait_for(state="hidden")
    page.keyboard.press("/")
    page.keyboard.type("1")
    page.keyboard.press("Enter")
    page.locator("h2", has_text="“1”").wait_for()
    go(page, "unsure")
    page.locator(".stage img").wait_for()
    for key in ("1", "Enter", "u", "ArrowLeft"):
        page.keyboard.press(key)
        page.wait_for_timeout(200)
    go(page, "check")
    page.locator(".stage img").wait_for()
    for key in "1212":
        page.keyboard.press(key)
        page.wait_for_timeout(300)
    page.locator("text=4 of 30 items").wait_for()
    page.locator(".figure").first.wait_for()
    go(page, "export")
    page.get_by_role("button", name="Write").nth(1).click()
    page.locator("code", has_text="labels.csv").wait_for()
    assert (out.with_name("out-export") / "labels.csv").is_file()


@pytest.mark.slow
def test_the_model_learns_a_new_class_and_goes_back(server, visit):
    page = visit(server, "Ada")
    name_group(page, "corner")
    go(page, "learn")
    page.get_by_role("button", name="Learn from").click()
    page.locator(".job progress").wait_for()
    assert server.wait_for_job()["state"] == "done"
    page.locator("h3", has_text="Before and after").wait_for()
    assert "corner" in page.locator(".pairs").inner_text()
    assert server.ask("/api/project")["classes"] == ["corner", "left", "top"]
    page.get_by_role("button", name="Go back to this").click()
    page.wait_for_timeout(2500)
    assert server.ask("/api/project")["classes"] == ["left", "top"]
    assert server.ask("/api/changes?since=0")["targets"] == ["class corner"]


@pytest.mark.slow
def test_learning_can_be_cancelled_and_leaves_everything_as_it_was(server, visit):
    page = visit(server, "Ada")
    name_group(page, "corner")
    go(page, "learn")
    page.get_by_role("button", name="Learn from").click()
    page.get_by_role("button", name="Cancel").click()
    page.locator("text=It was cancelled").wait_for()
    assert server.ask("/api/project")["classes"] == ["left", "top"]


@pytest.mark.slow
def test_two_browsers_see_each_other_within_two_seconds_and_disagree(server, visit):
    ada, bob = visit(server, "Ada"), visit(server, "Bob")
    go(ada, "kind/class left")
    go(bob, "kind/class left")
    for page, key in ((ada, "1"), (bob, "2")):
        page.locator(".grid").focus()
        page.keyboard.press("Home")
        page.keyboard.press("Space")
        page.keyboard.press(key)
        ada.locator(".tile.labelled").first.wait_for(timeout=2_000)
    bob.locator("#tabs .count", has_text="1").wait_for(timeout=2_000)
    ada.locator("#tabs .count", has_text="1").wait_for(timeout=2_000)
    go(ada, "people")
    ada.locator("text=they disagree on 1").wait_for()
    assert ada.locator(".tile.disputed").count() == 1


@pytest.mark.slow
def test_acts_wait_while_the_network_is_away(server, visit):
    page = visit(server, "Ada", noise=True)
    page.context.set_offline(True)
    page.get_by_label("Name all of Group 0").fill("owl")
    page.keyboard.press("Enter")
    page.locator("#sync.offline", has_text="1 act wait").wait_for()
    page.wait_for_timeout(10_000)
    assert server.ask("/api/changes?since=0")["act"] == 0
    page.context.set_offline(False)
    page.get_by_role("link", name="owl", exact=True).wait_for()
    assert server.ask("/api/changes?since=0")["targets"] == ["class owl"]


@pytest.mark.slow
def test_the_page_reconnects_by_itself_after_the_server_was_killed(out, visit):
    server = Server(f"--results={out}")
    page = visit(server, "Ada", noise=True)
    server.kill()
    page.locator("#sync.offline").wait_for()
    page.get_by_label("Name all of Group 0").fill("owl")
    page.keyboard.press("Enter")
    with Server(f"--results={out}", port=server.port) as again:
        page.get_by_role("link", name="owl", exact=True).wait_for(timeout=20_000)
        page.locator("#sync.saved").wait_for()
        assert again.ask("/api/changes?since=0")["targets"] == ["class owl"]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_every_view_fits_its_window_and_axe_finds_nothing_serious(server, visit, viewport, scheme):
    page = visit(server, "Ada", viewport=viewport, scheme=scheme)
    axe = folder_of_axe()
    for view in (*VIEWS, "kind/group 0"):
        go(page, view)
        page.wait_for_timeout(500)
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], view
        if axe is None:
            continue
        page.evaluate((axe / "axe.min.js").read_text(encoding="utf-8"))
        found = page.evaluate("async () => (await axe.run()).violations")
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, json.dumps([(v["id"], v["nodes"][0]["html"]) for v in serious])
    if axe is None:
        pytest.skip("axe-core is not installed: set S2OSC_AXE to its folder")


@pytest.mark.slow
def test_script_in_names_is_shown_and_never_run(server, visit):
    page = visit(server, "<b>Ada</b>")
    name = "<img src=x onerror='globalThis.hacked=1'>"
    page.get_by_label("Name all of Group 0").fill(name)
    page.keyboard.press("Enter")
    page.locator("bdi", has_text="<img src=x").first.wait_for()
    for view in VIEWS:
        go(page, view)
        page.wait_for_timeout(200)
    assert page.evaluate("globalThis.hacked") is None


@pytest.mark.slow
def test_a_window_over_the_map_selects_what_it_holds(server, visit):
    page = visit(server, "Ada")
    go(page, "map")
    page.wait_for_timeout(500)
    box = page.locator("canvas").bounding_box()
    corners = [
        (10, 10),
        (box["width"] - 10, 10),
        (box["width"] - 10, box["height"] - 10),
        (10, box["height"] - 10),
        (10, 12),
    ]
    x, y = corners[0]
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
    page.mouse.up()
    n = server.ask("/api/project")["n"]
    page.locator("#bar", has_text=f"{n} items selected").wait_for()


# --- streams ---------------------------------------------------------------------------------


PARTS = {
    "left": np.s_[:, :3],
    "top": np.s_[:3, :],
    "corner": np.s_[5:, 5:],
    "middle": np.s_[3:5, 3:5],
}


def draw_items(folder, counts, seed):
    """Images of 8 x 8, dark but for the part that their class, and file, is named after."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for name, n in counts.items():
        for number in range(n):
            pixels = random.integers(0, 50, (8, 8), dtype=np.uint8)
            pixels[PARTS[name]] += 200
            Image.fromarray(pixels).save(folder / f"{name}-{number:02d}.png")
    return folder


@pytest.fixture
def stream(tmp_path, quick):
    """A stream that knows two classes."""
    for seed, name in enumerate(("left", "top")):
        draw_items(tmp_path / "known" / name, {name: 40}, seed)
    options = [option for option in quick if not option.startswith("--groups")]
    paths = [f"--known={tmp_path / 'known'}", f"--state={tmp_path / 'stream'}"]
    assert main(["stream", "init", *paths, *options]) == 0
    return tmp_path


def feed(server, folder):
    """A window through the page; the numbers of its items by their class."""
    server.ask("/api/windows", {"by": "Ada", "path": str(folder), "budget": 20})
    assert server.wait_for_job()["state"] == "done"
    names = sorted(path.name for path in folder.iterdir())
    assert server.ask("/api/project")["n"] == len(names)
    rows = {}
    for row, name in enumerate(names):
        rows.setdefault(name.partition("-")[0], []).append(row)
    return rows


@pytest.mark.slow
def test_three_windows_of_a_stream_with_two_new_classes_a_mistake_and_its_undo(stream, visit):
    with Server(f"--state={stream / 'stream'}") as server:
        assert server.ask("/api/learning")["stream"]["windows"] == []
        feed(server, draw_items(stream / "monday", {"left": 20, "top": 20}, 2))
        both = {"left": 15, "top": 15, "corner": 15, "middle": 15}
        rows = feed(server, draw_items(stream / "tuesday", both, 3))
        everything = rows["corner"] + rows["middle"]
        server.ask("/api/acts", act(rows=everything, target="class corner"))
        page = visit(server, "Ada")
        page.get_by_role("link", name="corner", exact=True).wait_for()
        assert count(page, "corner") == len(everything)  # a mistake: these are two classes
        page.keyboard.press("z")
        page.get_by_role("link", name="corner", exact=True).wait_for(state="detached")
        for name in ("corner", "middle"):
            server.ask("/api/acts", act(rows=rows[name], target=f"class {name}"))
        go(page, "learn")
        page.get_by_role("button", name=f"Learn from {len(everything)} labels").click()
        page.locator(".job progress").wait_for()
        job = server.wait_for_job()
        assert job["state"] == "done", job
        page.locator("h3", has_text="Before and after").wait_for()
        page.get_by_role("table", name="What moved").wait_for()
        status = server.ask("/api/learning")
        moved = [new for _, new, n in status["last"]["moves"] for _ in range(n)]
        assert all(moved.count(name) > len(rows[name]) / 2 for name in ("corner", "middle"))
        assert {"corner", "middle"} <= status["stream"]["classes"].keys()
        assert status["n_labels"] == 0
        feed(server, draw_items(stream / "wednesday", both, 4))
        history = server.ask("/api/learning")["stream"]["windows"]
        assert [each["new_classes"] for each in history] == [[], ["corner", "middle"], []]
        first = min(status["rounds"], key=lambda each: each["id"])
        server.ask("/api/back", {"to": first["id"]})
        assert server.wait_for_job()["state"] == "done"
        assert list(server.ask("/api/learning")["stream"]["classes"]) == ["left", "top"]
        page.close()  # before the server ends, whom it would miss


@pytest.mark.slow
def test_files_are_dropped_as_a_window_and_a_large_one_is_refused(stream):
    with Server(f"--state={stream / 'stream'}") as server:
        upload = server.ask("/api/uploads", {"n": 3})["id"]
        for number, name in enumerate(["a.png", "b.png"]):
            put(
                server,
                f"/api/uploads/{upload}/{number}?name={name}",
                image(stream / name).read_bytes(),
            )
        with pytest.raises(urllib.error.HTTPError):
            put(server, f"/api/uploads/{upload}/2?name=..%2f..%2fx.png", b"no image")
        folder = next((stream / "stream" / ".s2osc-page" / "uploads").iterdir())
        assert sorted(path.name for path in folder.iterdir()) == ["a.png", "b.png"]


def put(server, path, content):
    request = urllib.request.Request(
        f"http://{server.host}{path}",
        data=content,
        method="PUT",
        headers={
            "cookie": f"s2osc-{server.port}={server.token}",
            "origin": f"http://{server.host}",
        },
    )
    with urllib.request.urlopen(request) as answer:
        return answer.read()
