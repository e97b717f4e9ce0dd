"""What people do, over HTTP, against the results on the disk."""

import json
import struct
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from files import easy_images, known_labels, pool_labels, write_images
from page_helpers import HOST, PORT, TOKEN, act
from s2osc.app.result_files import load_as_decided, load_result
from s2osc.app.results_folder import version_of
from s2osc.cli.main import main
from s2osc.page.exports import describe_forms, write_export
from s2osc.page.server import guarded_app
from s2osc.page.work import PoolWork, opened_work


def do(browser, **body):
    answer = browser.post("/api/acts", json=act(**body))
    assert answer.status_code == 200, answer.text
    return answer.json()


def unpack(content: bytes) -> dict[str, np.ndarray]:
    length = int.from_bytes(content[:4], "little")
    place, columns = 4 + length, {}
    for name, kind, n in json.loads(content[4:place]):
        columns[name] = np.frombuffer(content, kind, n, place)
        place += -(-columns[name].nbytes // 8) * 8
    return columns


def test_the_page_has_every_item_as_it_was_answered(browser, work):
    result = work.project.opened.result
    described = browser.get("/api/project").json()
    assert described["n"] == len(result.names)
    assert described["classes"] == ["left", "top"]
    columns = unpack(browser.get("/api/columns").content)
    by_name = dict(zip(work.project.opened.names, columns["decided"], strict=True))
    assert [by_name[name] for name in result.names] == result.answer.labels.tolist()
    points = unpack(browser.get("/api/map").content)["points"]
    assert np.isfinite(points).all()


def test_items_come_in_the_orders_that_galleries_show(browser, work):
    columns = unpack(browser.get("/api/columns").content)
    answer, pool = work.project.opened.result.answer, work.project.opened
    scores = answer.unknown_score.astype(np.float32)[pool.answered]
    assert (np.diff(scores[columns["by_score"]]) <= 0).all()
    assert (np.diff(columns["confidence"][columns["by_confidence"]]) <= 0).all()


def test_many_small_pictures_come_in_one_answer(browser, work):
    pool = work.project.opened
    content = browser.get(f"/pictures/{pool.key}?rows=3,0,{pool.n},x,-1").content
    rows = []
    while content:
        row, size = struct.unpack_from("<II", content)
        assert content[8 : 8 + size] == pool.picture(row, "small")[0]
        rows, content = [*rows, row], content[8 + size :]
    assert rows == [3, 0]
    assert browser.get("/pictures/other?rows=0").status_code == 404


def test_a_picture_that_cannot_be_shown_has_size_zero(browser, work, monkeypatch):
    pool = work.project.opened
    monkeypatch.setitem(vars(pool), "places", np.full(pool.n, -1))
    monkeypatch.setitem(vars(pool), "answered", np.full(pool.n, -1))
    assert browser.get(f"/pictures/{pool.key}?rows=2").content == struct.pack("<II", 2, 0)


def test_the_nearest_known_items_are_those_of_the_operating_point(browser, work):
    pool = work.project.opened
    do(browser, kind="decide", target="0.5", rows=[])
    labels, _ = work.project.answered()
    assert (labels >= 0).sum() < (pool.decided >= 0).sum()
    near = browser.get("/api/items/0").json()["neighbours"]
    assert near
    assert (labels[near] >= 0).all()


OPEN = """
import sys
from pathlib import Path
from s2osc.page.work import opened_work
with opened_work(Path(sys.argv[1]), None) as work:
    work.project.describe()
    work.project.opened.columns
print([name for name in ("pandas", "torch", "sklearn", "scipy.stats") if name in sys.modules])
"""


def test_a_page_opens_without_libraries_that_it_does_not_need(out):
    command = [sys.executable, "-c", OPEN, str(out)]
    assert subprocess.check_output(command, text=True).strip() == "[]"


def test_a_named_group_is_a_class_and_undo_takes_it_back_also_after_a_restart(browser, work):
    done = do(browser, rows=[1, 2, 3], target="class Owl")
    assert (done["rows"], done["targets"]) == ([1, 2, 3], ["class Owl"])
    assert work.project.class_names() == ["left", "top", "Owl"]
    out = work.project.out
    work.project.close()
    again = PoolWork(type(work.project)(work.project.folder, out))
    client = TestClient(guarded_app(again, token=TOKEN, port=PORT), base_url=f"http://{HOST}")
    client.get(f"/?token={TOKEN}")
    client.headers["origin"] = f"http://{HOST}"
    assert client.get("/api/changes").json()["rows"] == [1, 2, 3]
    do(client, kind="undo", rows=[])
    assert client.get("/api/changes").json()["targets"] == ["none"]
    do(client, kind="redo", rows=[])
    assert client.get("/api/changes").json()["targets"] == ["class Owl"]
    again.project.close()


def test_an_act_that_is_sent_twice_counts_once(browser):
    body = act()
    first, second = (browser.post("/api/acts", json=body).json() for _ in range(2))
    assert first["done"]["id"] == second["done"]["id"] == 1


def test_an_act_that_waited_for_another_pool_is_refused(browser):
    answer = browser.post("/api/acts", json=act(pool="another"))
    assert (answer.status_code, browser.get("/api/changes").json()["act"]) == (400, 0)


def test_a_name_is_spelt_as_the_class_that_is_there(browser):
    assert do(browser, target="class LEFT")["targets"] == ["class left"]
    assert do(browser, target="class Not of interest")["targets"] == ["ignore"]


def test_another_browser_sees_what_one_did(browser, work):
    do(browser, rows=[4], by="Ada", target="class left")
    seen = browser.get("/api/changes?since=0").json()
    do(browser, rows=[4], by="Bob", target="class top")
    changes = browser.get(f"/api/changes?since={seen['act']}").json()
    assert (changes["rows"], changes["disputed"], changes["people"]) == ([4], [4], ["Ada", "Bob"])
    people = browser.get("/api/people").json()
    assert (people["n_items"], people["n_disputed"]) == (1, 1)
    assert people["kappa"] == [["left", 0.0], ["top", 0.0]]


def test_an_item_says_why_it_is_called_so_and_what_it_is_like(browser, work):
    pool = work.project.opened
    row = int(np.flatnonzero(pool.decided == -1)[0])
    item = browser.get(f"/api/items/{row}").json()
    assert item["p_known"] <= pool.result.audit.operating_point
    assert item["nearest"] in ("left", "top")
    assert item["neighbours"]
    assert all(pool.decided[near] >= 0 for near in item["neighbours"])
    assert browser.get("/api/items/999999").status_code == 400


def test_the_answer_of_the_tables_is_the_one_that_is_decided_anew(out):
    version = version_of(out)
    quick, whole = load_as_decided(version), load_result(version)
    assert quick.names == whole.names
    for name in ("labels", "groups", "nearest"):
        np.testing.assert_array_equal(getattr(quick.answer, name), getattr(whole.answer, name))
    for name in ("confidence", "p_known", "unknown_score"):
        np.testing.assert_allclose(getattr(quick.answer, name), getattr(whole.answer, name), 1e-6)
    assert quick.audit == whole.audit


def test_search_finds_names(browser, work):
    name = work.project.opened.names[7]
    assert 7 in browser.get(f"/api/search?words={name}").json()
    assert browser.get("/api/search?words=nothing-is-called-so").json() == []


def test_pictures_are_the_items_in_their_own_order(browser, work, classified):
    images = np.load(classified / "pool.npz")["x"]
    pool = work.project.opened
    row = pool.row_of["12"]
    picture = Image.open(BytesIO(browser.get(f"/pictures/{pool.key}/{row}/small").content))
    np.testing.assert_array_equal(np.asarray(picture), images[12])


def test_the_operating_point_moves_into_the_results(browser, work):
    points = browser.get("/api/project").json()["points"]
    rate = next(r for r, n in zip(points["rates"], points["unknown"], strict=True) if r > 0.2)
    do(browser, kind="decide", target=str(rate), rows=[])
    labels, _ = work.project.answered()
    n_unknown = points["unknown"][points["rates"].index(rate)]
    assert int((labels == -1).sum()) == n_unknown
    result = work.project.write_results()
    assert int(result.answer.is_unknown.sum()) == n_unknown
    saved = load_result(version_of(work.project.out))
    assert int(saved.answer.is_unknown.sum()) == n_unknown


def test_labels_of_random_items_shrink_the_interval(browser, work):
    rows = browser.get("/api/check?n=20").json()["rows"]
    assert len(rows) == 20
    pool, widths = work.project.opened, []
    truth = dict(zip(pool.result.names, pool.result.truth, strict=True))
    for row in rows:
        label = truth[pool.names[row]]
        target = f"class {label}" if label in pool.result.classes else "unknown"
        do(browser, kind="check", rows=[row], target=target)
        figures = {f["name"]: f for f in browser.get("/api/check?n=20").json()["figures"]}
        widths.append(figures["right answers"]["high"] - figures["right answers"]["low"])
    assert widths[-1] < widths[4] < widths[0]
    result = work.project.write_results()
    assert result.audit.checked.n_items == 20


def test_corrections_are_what_people_said_and_when(browser, work):
    do(browser, rows=[0, 1], target="class owl")
    do(browser, rows=[2], target="ignore")
    place = browser.post("/api/exports", json={"form": "corrections"}).json()["place"]
    lines = Path(place).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "item,label,by,at"
    assert [line.split(",")[1:3] for line in lines[1:]] == [["owl", "Ada"]] * 2


def test_an_export_has_the_labels_of_people_before_those_of_the_model(browser, work):
    name = work.project.opened.names[0]
    do(browser, rows=[0], target="class owl")
    place = browser.post("/api/exports", json={"form": "csv"}).json()["place"]
    lines = Path(place).read_text(encoding="utf-8").splitlines()
    row = next(line for line in lines if line.split(",")[0].strip('"') == name)
    assert "owl" in row
    assert "Ada" in row
    assert browser.post("/api/exports", json={"form": "../x"}).status_code == 400


@pytest.fixture(scope="module")
def photos(tmp_path_factory, quick):
    """Results of a pool whose items are files."""
    folder = tmp_path_factory.mktemp("photos")
    known, pool = known_labels(60), pool_labels(20)
    labelled = [f"{label}/{row}.png" for row, label in enumerate(known)]
    write_images(folder / "known", labelled, easy_images(known, seed=0))
    unlabelled = [f"{row}.png" for row in range(len(pool))]
    write_images(folder / "pool", unlabelled, easy_images(pool, seed=1))
    paths = [f"--{name}={folder / name}" for name in ("known", "pool", "out")]
    assert main(["classify", *paths, *quick]) == 0
    return folder


def test_class_folders_hold_copies_or_links(photos, browser):
    offered = [form["id"] for form in browser.get("/api/exports").json()]
    assert "links" not in offered  # the items are one file
    assert browser.post("/api/exports", json={"form": "links"}).status_code == 400
    with opened_work(photos / "out", None) as work:
        assert "links" in [form["id"] for form in describe_forms(work.project)]
        for form, is_link in (("folders", False), ("links", True)):
            found = list(write_export(work.project, form).rglob("*.png"))
            assert len(found) == work.project.opened.n
            assert {path.is_symlink() for path in found} == {is_link}


def test_results_without_seeds_are_refused_in_one_line(classified, tmp_path, quick, capsys):
    paths = [f"--{name}={classified / name}.npz" for name in ("known", "pool")]
    main(["classify", *paths, f"--out={tmp_path / 'plain'}", "--preset=plain", *quick])
    assert main(["page", f"--results={tmp_path / 'plain'}", "--no-browser"]) == 2
    assert "without seeds" in capsys.readouterr().err
    assert main(["page", f"--results={tmp_path}", "--no-browser"]) == 2
    assert "holds no results" in capsys.readouterr().err
    assert main(["page", f"--state={tmp_path}", "--no-browser"]) == 2
    assert "holds no stream" in capsys.readouterr().err


def test_items_that_are_gone_are_said_to_be(out, classified):
    with opened_work(out, None) as work:
        pool = work.project.opened
        assert pool.why_missing == ""
    summary = json.loads((out / "summary.json").read_text())
    summary["origin"]["pool"] = "/nowhere/pool.npz"
    path = version_of(out) / "summary.json"
    path.unlink()
    path.write_text(json.dumps(summary))
    with opened_work(out, None) as work:
        assert "there is no file or folder /nowhere/pool.npz" in work.project.opened.why_missing
        shown = [row for row in range(work.project.opened.n) if work.project.opened.brief(row)]
        assert shown


@pytest.mark.parametrize("kind", ["merge", "split"])
def test_groups_change_and_change_back(browser, work, kind):
    before = browser.get("/api/changes").json()["structure"]
    if kind == "merge":
        answer = browser.post("/api/acts", json=act(kind="merge", target="0,0", rows=[]))
        assert answer.status_code == 200  # nothing to merge is no harm
        return
    answer = browser.post("/api/acts", json=act(kind="split", target="0", rows=[]))
    if answer.status_code == 400:
        assert "no parts that can be told apart" in answer.json()["error"]
        return
    assert answer.json()["structure"]["n_groups"] == before["n_groups"] + 1
    undone = do(browser, kind="undo", rows=[])
    assert undone["structure"] == before
