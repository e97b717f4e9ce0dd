import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from s2osc.errors import DataError
from s2osc.pipeline.audit.record import UnknownTest
from s2osc.pipeline.group_tree import NumberEvidence
from s2osc.pipeline.grouping.typical import GroupProfile
from s2osc.report.page import write_report

HOSTILE = "<script>alert(1)</script>"


class Page(HTMLParser):
    """The parts of a page a browser would act on, and the text a person would read."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.references, self.scripts, self.words = [], [], [], []
        self.open_tags = []
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open_tags.append(tag)
        values = dict(attributes)
        self.references += [v for k, v in attributes if k in ("src", "href", "action", "srcset")]
        if tag == "script":
            self.scripts.append((values.get("type"), ""))

    def handle_endtag(self, tag):
        while self.open_tags and self.open_tags.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self.open_tags[-1] if self.open_tags else ""
        if inside == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)
        elif inside != "style":
            self.words.append(data)

    @property
    def data(self):
        return json.loads(next(text for kind, text in self.scripts if kind == "application/json"))


@pytest.fixture
def written(tmp_path):
    def write(inputs, seed=0):
        path = tmp_path / "report.html"
        write_report(path, inputs, seed=seed)
        return path.read_text(encoding="utf-8")

    return write


def test_the_page_refers_to_nothing_outside_itself(pool, written):
    html = written(pool())
    page = Page(html)
    assert all(reference.startswith(("data:", "#")) for reference in page.references)
    addresses = re.findall(
        r"(?:https?:)?//[\w.]+\.\w+[^\s'\"]*", re.sub(r"data:image/webp[^\"]*", "", html)
    )
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in html
    assert "url(" not in html


def test_the_same_inputs_and_seed_give_the_same_bytes(pool, tmp_path):
    for name in ("a", "b"):
        write_report(tmp_path / name, pool(), seed=3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_seed_draws_another_sample_for_the_map(pool, written, monkeypatch):
    monkeypatch.setattr("s2osc.report.drawing.MAP_ITEMS", 15)
    assert Page(written(pool(), seed=0)).data["name"] != Page(written(pool(), seed=1)).data["name"]


def test_names_from_strangers_are_shown_and_never_run(pool, written):
    inputs = pool(classes=(HOSTILE, "a" * 60, "手写数字"), title=f"{HOSTILE}&\"'")
    inputs = replace(
        inputs,
        names=[f"{HOSTILE}\u2028]]>{{{{ 7 * 7 }}}}{place}" for place in range(60)],
        truth=[HOSTILE] * 60,
        summary={HOSTILE: HOSTILE, "warnings": [HOSTILE], "settings": {HOSTILE: {HOSTILE: 1}}},
    )
    html = written(inputs)
    page = Page(html)
    assert HOSTILE not in html
    assert [kind for kind, _ in page.scripts] == ["application/json", None]
    assert "alert" not in page.scripts[1][1]
    assert page.data["kinds"][0]["name"] == HOSTILE
    assert page.data["name"] == [inputs.names[place] for place in range(60)]
    for shown in (HOSTILE, "a" * 60, "手写数字"):
        assert shown in page.text


def test_a_name_that_is_no_text_does_not_stop_the_page(pool, written):
    names = ["broken-\udcff.png"] * 60
    assert "broken-" in written(pool(names=names))


def test_the_browser_is_told_to_run_only_the_script_that_was_written(pool, written):
    page = Page(written(pool()))
    policy = next(values["content"] for _, values in page.tags if "http-equiv" in values)
    digest = hashlib.sha256(page.scripts[1][1].encode()).digest()
    assert "default-src 'none'" in policy
    assert policy.endswith(f"script-src 'sha256-{base64.b64encode(digest).decode()}'")


@pytest.mark.parametrize(("n_classes", "n_groups"), [(3, 2), (30, 20), (1, 1)])
def test_every_class_and_group_is_counted_and_on_the_map(pool, written, n_classes, n_groups):
    inputs = pool(n=200, n_classes=n_classes, n_groups=n_groups)
    page = Page(written(inputs))
    rows = [values for tag, values in page.tags if "data-select" in values]
    expected = [*inputs.classes, *(f"Group {group}" for group in range(n_groups))]
    assert [row["title"] for row in rows] == expected
    assert [kind["count"] for kind in page.data["kinds"]] == [
        int((inputs.kind_of_item == kind).sum()) for kind in range(n_classes + n_groups)
    ]
    on_the_map = page.data["kind"][: len(page.data["x"])]
    assert set(on_the_map) == set(range(n_classes + n_groups))


def test_a_class_no_item_was_given_is_listed_with_none(pool, written):
    inputs = pool(n_classes=2, classes=("class 0", "class 1", "never seen"), n_groups=0)
    page = Page(written(inputs))
    assert [kind["count"] for kind in page.data["kinds"]] == [30, 30, 0]
    assert "never seen 0 0%" in page.text


@pytest.mark.parametrize(
    ("n", "n_classes", "n_groups", "headline"),
    [
        (60, 3, 2, "24 of 60 items are called unknown, in 2 groups"),
        (5000, 4, 1, "1,000 of 5,000 items are called unknown, in 1 group"),
        (5, 4, 1, "1 of 5 items is called unknown, in 1 group"),
        (60, 3, 0, "0 of 60 items are called unknown: each is given a known class"),
        (1, 1, 0, "1 item, and it is given a known class"),
    ],
)
def test_the_headline_says_the_answer_in_words(
    pool, written, monkeypatch, n, n_classes, n_groups, headline
):
    monkeypatch.setattr("s2osc.report.drawing.MAP_ITEMS", 100)
    inputs = pool(n=n, n_classes=n_classes, n_groups=n_groups)
    assert headline in Page(written(inputs)).text


def test_a_pool_without_unknowns_says_so_in_every_section(pool, written):
    text = Page(written(pool(n_groups=0))).text
    assert "No item is unknown." in text
    assert "No item was called unknown or set apart." in text
    assert "No item was set apart as a distinct unknown" in text
    assert "What is new?" not in text


@pytest.mark.parametrize("n", [1, 2, 3, 9, 19, 20, 21])
def test_tiny_pools_are_drawn(pool, written, n):
    page = Page(written(pool(n=n)))
    assert len(page.data["x"]) == n
    assert ("t-SNE of the embeddings" in page.text) == (n >= 20)


def test_vectors_are_listed_by_name_without_pictures(pool, written):
    page = Page(written(pool(images=None)))
    assert not [values for tag, values in page.tags if tag == "img"]
    assert page.data["sprite"] is None
    assert "item-0004.png" in page.text


def test_every_picture_has_a_text_in_its_place(pool, written):
    pictures = [values for tag, values in Page(written(pool())).tags if tag == "img"]
    tiles = [values for values in pictures if values.get("id") != "sprite"]
    assert tiles
    assert all(re.fullmatch(r"item-\d{4}.png, answered .+", tile["alt"]) for tile in tiles)


def test_a_sample_of_a_large_pool_is_called_a_sample(pool, written, monkeypatch):
    monkeypatch.setattr("s2osc.report.drawing.MAP_ITEMS", 40)
    assert "40 of 60 items shown" in Page(written(pool())).text
    assert "All 40 items shown" in Page(written(pool(n=40))).text


def test_galleries_show_the_typical_the_least_sure_and_the_most_distinct(pool, written):
    inputs = pool(images=None)
    page = Page(written(inputs))
    tiles = [values["title"] for tag, values in page.tags if values.get("class") == "tile"]
    answer = inputs.answer
    unknown = np.flatnonzero(answer.is_unknown)
    members = np.flatnonzero(answer.groups == 0)
    vectors = inputs.embeddings[members]
    nearest = members[np.argmin(np.linalg.norm(vectors - vectors.mean(axis=0), axis=1))]
    assert tiles[0] == inputs.names[nearest]
    assert tiles[len(unknown)] == inputs.names[np.argmin(answer.confidence)]
    farthest = unknown[np.argmax(answer.distinctness[unknown])]
    assert tiles[len(unknown) + 24] == inputs.names[farthest]


def test_each_item_keeps_its_own_numbers_on_the_page(pool, written):
    inputs = pool()
    data = Page(written(inputs)).data
    for place, name in enumerate(data["name"]):
        item = inputs.names.index(name)
        assert data["kind"][place] == inputs.kind_of_item[item]
        assert data["w"][place] == pytest.approx(inputs.answer.distinctness[item], rel=1e-3)
        assert data["score"][place] == pytest.approx(inputs.answer.unknown_score[item], rel=1e-3)
        assert data["confidence"][place] == pytest.approx(inputs.answer.confidence[item], rel=1e-3)


def test_truth_shows_what_each_answer_holds(pool, written):
    inputs = pool()
    truth = [inputs.kinds[kind].name for kind in inputs.kind_of_item]
    truth[4] = truth[9] = truth[14] = "a new thing"
    page = Page(written(replace(inputs, truth=truth, summary={"metrics": {"f_out": 0.75}})))
    assert "Group 1 75.0% a new thing 25.0%" in page.text
    assert "F_out 0.750" in page.text
    assert page.data["truth"][4] == "a new thing"


def test_a_run_without_seeds_has_a_page_without_an_audit(pool, written):
    page = Page(written(pool()))
    assert not {"#audit", "audit"} & {values.get(k) for _, values in page.tags for k in values}
    for word in ("Held-back", "Purity", "False alarm", "certainty", "(perhaps 3"):
        assert word not in page.text
    assert page.data["points"] == []


def test_the_answer_comes_first_then_what_is_new_then_how_far_to_trust_it(pool, seeded, written):
    html = written(replace(seeded(pool()), folder="my results"))
    text = Page(html).text
    assert re.search(r"<h1[^>]*><em>24</em> of 60 items are called unknown", html)
    assert html.count("<h1") == 1
    order = ["24 of 60 items are called", "About 4 in 100 known items are called unknown (2 to 6)"]
    order += ["Something in this pool is unknown", "How to read this page", "s2osc page"]
    order += ["--results 'my results'", "Group 0 12 items", "Map of the pool", "Least sure"]
    order += ["How often is it wrong?", "False alarms 4.0% (2.0% to 6.0%)"]
    order += ["Accuracy on known classes 90.0% (85.0% to 95.0%)", "Unknown share 40.0%"]
    order += ["Recall of unknown items 80.0%", "Do unknown items stand apart?"]
    order += ["What would another threshold give?", "How far do items stand from the known"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_no_symbol_of_the_paper_stands_without_its_meaning(pool, seeded, written):
    text = Page(written(seeded(pool()))).text
    for symbol in ("w", "D_out"):
        assert len(re.findall(rf"(?<![\w.])\b{symbol}\b", text)) == text.count(
            f"{symbol} in the paper"
        )
    assert not re.search(r"\bK = ", text)


def test_where_nothing_is_unknown_the_page_says_so_and_leaves_out_what_was_not_measured(
    pool, seeded, written
):
    inputs = seeded(
        pool(n_groups=0),
        nothing_unknown=True,
        test=UnknownTest(p_value=0.4, level=0.01),
        threshold=None,
        unknown_recall=None,
        purity=None,
        curve=(),
        groups=None,
    )
    page = Page(written(inputs))
    assert "No sign of anything unknown in this pool" in page.text
    assert "nothing in this pool is unknown" in page.text
    assert ("p", {"class": "verdict is-strong"}) in page.tags
    for missing in ("Recall of unknown items 8", "What would another", "unknown above"):
        assert missing not in page.text
    assert "How pure were" not in page.text


def test_figures_that_could_not_be_estimated_are_said_to_be_absent(pool, seeded, written):
    text = Page(written(seeded(pool(), false_alarm=None, known_accuracy=None))).text
    assert text.count("not estimated") >= 2
    assert "Too few items of this pool are known" in text
    assert "nan" not in text.lower().split()


def test_groups_come_with_how_many_there_might_be_and_how_sure_each_is(pool, seeded, written):
    text = Page(written(seeded(pool()))).text
    assert "are called unknown, in 2 groups (perhaps 3)" in text
    assert "Unknown: 2 groups (perhaps 3)" in text
    assert "Group 0 12 items, certainty 0.93" in text
    assert "Group 1 12 items, certainty 0.74" in text


def test_the_details_hold_the_single_figures_of_the_audit_and_no_curve(pool, seeded, written):
    inputs = seeded(pool(n=200, n_classes=30))
    text = Page(written(inputs)).text
    assert "false_alarm.estimate 0.04" in text
    assert "purity.k 300" in text
    rows = int(re.search(r"Audit (\d+) rows", text)[1])
    assert rows < 40
    assert "n_unknown" not in text
    assert "per_class" not in text


def test_a_hostile_audit_is_shown_and_never_run(pool, seeded, written):
    inputs = seeded(pool(classes=(HOSTILE, "b", "c")), is_shifted=True)
    html = written(replace(inputs, folder=f"{HOSTILE}'"))
    assert HOSTILE not in html
    page = Page(html)
    assert [kind for kind, _ in page.scripts] == ["application/json", None]
    assert HOSTILE in page.data["points"][0]["command"]


def test_the_command_names_the_folder_as_it_was_typed(pool, seeded, written):
    points = Page(written(seeded(pool()))).data["points"]
    assert [point["command"] for point in points if point["command"]] == [
        f"s2osc decide --out results --false-alarm {rate} --aim recall"
        for rate in ("0.01", "0.02", "0.1")
    ]


def test_unsure_items_are_a_kind_of_their_own(pool, unsure, written):
    page = Page(written(unsure(pool(), n_unsure=6)))
    assert page.data["kinds"][-1]["name"] == "Unsure"
    assert page.data["kinds"][-1]["side"] == "unsure"
    assert page.data["kinds"][-1]["count"] == 6
    assert sum(kind["count"] for kind in page.data["kinds"]) == 60
    for shown in ("; 6 are unsure", "Unsure 6 10.0%", "Known 32 53.3% in 3 classes"):
        assert shown in page.text


def test_a_pool_with_unsure_and_no_unknown_items_does_not_claim_that_all_are_known(
    pool, unsure, written
):
    text = Page(written(unsure(pool(n_groups=0), n_unsure=1))).text
    assert "0 of 60 items are called unknown; 1 is unsure" in text
    assert "each is given a known class" not in text


def test_unsure_items_match_no_true_class(pool, unsure, written):
    inputs = replace(unsure(pool()), truth=["class 0"] * 60)
    html = written(inputs)
    row = html[html.index('title="Unsure">Unsure</bdi></p>') :]
    assert "is-match" not in row[: row.index("</div>")]


def test_the_summary_is_shown_whole(pool, written):
    summary = {
        "device": "cpu",
        "settings": {"teacher": {"epochs": 20, "augment": True}},
        "versions": {"numpy": "2.0.1"},
        "seconds": {"teacher": 12.25, "student": 30},
        "warnings": ["few labels"],
        "metrics": {"accuracy": 0.9, "per_class": {"cat": 0.8}},
    }
    text = Page(written(pool(summary=summary))).text
    details = ["Device cpu", "teacher.epochs 20", "teacher.augment yes", "numpy 2.0.1"]
    details += ["Teacher 12.25", "42.2 s in all", "per_class.cat 0.8"]
    for shown in [*details, "Warning few labels", "Accuracy 0.900"]:
        assert shown in text


def test_numbers_that_are_not_finite_leave_the_page_readable(pool, written):
    inputs = pool()
    w = inputs.answer.distinctness.copy()
    w[:2] = np.inf, np.nan
    page = Page(written(replace(inputs, answer=replace(inputs.answer, distinctness=w))))
    assert page.data["w"][:2] == [None, None]
    assert "2 items without a finite distinctness are left out." in page.text


def test_a_pool_of_16000_images_fits_in_four_megabytes(pool, tmp_path):
    random = np.random.default_rng(0)
    # Noise at one pixel in five packs about as badly as photographs of clothes.
    images = random.integers(0, 255, (16_000, 28, 28), dtype=np.uint8)
    images *= random.random(images.shape) < 0.2
    path = tmp_path / "report.html"
    write_report(path, pool(n=16_000, images=images), seed=0)
    assert path.stat().st_size < 4_000_000


@pytest.mark.parametrize("shape", [(60, 300, 20, 3), (60, 64, 64), (60, 1, 500), (60, 8, 8, 3)])
def test_images_of_any_shape_are_carried(pool, written, shape):
    images = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    sprite = Page(written(pool(images=images))).data["sprite"]
    assert 0 < sprite["width"] <= 48
    assert 0 < sprite["height"] <= 48


def test_what_does_not_match_the_answers_is_refused(pool):
    with pytest.raises(DataError, match="60 answers came with 3 names"):
        pool(names=["a", "b", "c"])
    with pytest.raises(DataError, match="no items"):
        pool(n=0)


def test_other_numbers_of_groups_show_texts_and_what_is_typical_of_them(tmp_path, pool, seeded):
    inputs = seeded(pool())
    inputs = replace(
        inputs,
        images=None,
        texts=[f"about {name}" for name in inputs.names],
        leaves=np.arange(len(inputs.names)) % 3,
        profile=lambda answer: tuple(
            GroupProfile(group, 1, "class 0", 1.0, (f"word {group}",), ())
            for group in range(int(answer.groups.max()) + 1)
        ),
    )
    write_report(tmp_path / "report.html", inputs, seed=0)
    text = Page((tmp_path / "report.html").read_text(encoding="utf-8")).text
    alternatives = text.split("Other numbers of groups")[1].split("What else does the pool hold?")[
        0
    ]
    assert alternatives.count("about item-") >= 3
    assert "word 2" in alternatives  # of the third of three groups


def test_what_speaks_for_each_number_of_groups_is_said(tmp_path, pool, seeded):
    inputs = seeded(pool())
    groups = inputs.audit.groups
    evidence = tuple(NumberEvidence(n, False, n / 4, 1 / (n + 1)) for n in range(3))
    inputs = replace(
        inputs,
        audit=replace(inputs.audit, groups=replace(groups, evidence=evidence)),
        leaves=np.arange(len(inputs.names)) % 3,
    )
    write_report(tmp_path / "report.html", inputs, seed=0)
    text = Page((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "2 groups are likely (74%), perhaps 3 (19%). What speaks for 2: 1 of 1 border is" in text
    assert "no border in it is deeper than those within known classes" in text
    assert "2 of 2 borders are deeper" in text
