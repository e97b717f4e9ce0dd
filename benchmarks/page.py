"""How quick is the page, and how large its server?

    python benchmarks/page.py [--items 10000 100000] [--folder DIR] [--to FILE.json]
    python benchmarks/page.py --show FILE.json      a record as the table of docs/page.md

Results of made-up scores and small pictures are written, `s2osc page` is started on them as a user
does, and a browser (Chromium, through Playwright) opens it. Printed are, for each number of items:

    start       seconds until the address is printed            at most 3
    core        seconds of a core that this took, which other work hardly changes
    pictures    seconds until the first twelve pictures stand   at most 1
    slider      ms for all counts and galleries to follow       at most 200
    frame       ms of the middle one of all frames while the gallery of a group is scrolled
    scrolling   ms of the longest of them
    move        ms until 1,000 items are moved, on the disk and on the screen
    thumbnails  pictures per second, over 6 connections
    memory      MB of the server, at most                       at most 600

The exit code is 1 where a limit is passed. Timings are for free cores; the record holds the load
of the machine, too.
"""

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from shutil import which

import numpy as np
from playwright.sync_api import sync_playwright
from processes import cpu_seconds, peak_megabytes

from s2osc.app.origin import Origin
from s2osc.app.result import Result
from s2osc.app.result_files import write_measured, write_summary, write_tables
from s2osc.app.results_folder import DRAWING
from s2osc.app.run_record import RunRecord
from s2osc.arrays import leading_components
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.audit.record import GroupsAudit
from s2osc.pipeline.audit.threshold import DecisionSettings, Evidence
from s2osc.pipeline.group_tree import GroupTree
from s2osc.report.drawing import Drawing, PoolMap, fit_to_page, save_drawing
from s2osc.settings import flatten
from s2osc.types import UNKNOWN, Answer
from s2osc.version import versions

N_CLASSES, N_LEAVES, N_SEEDS = 20, 6, 2_000
SIDE = 28
LIMITS = {"start": 3.0, "pictures": 1.0, "slider": 200.0, "memory": 600.0}
N_MOVED, N_THUMBNAILS, N_CONNECTIONS = 1_000, 2_000, 6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--to", type=Path)
    parser.add_argument("--show", type=Path, help="a record, to print as a table instead")
    options = parser.parse_args()
    if options.show:
        print_table(json.loads(options.show.read_text())["figures"])
        return 0
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for n in options.items:
            folder = (options.folder or Path(temporary)) / str(n)
            if not (folder / "out" / "summary.json").exists():
                write_results(folder, n)
            figures = measure(folder / "out") | {"load": os.getloadavg()[0]}
            words = ", ".join(f"{name} {value:,.4g}" for name, value in figures.items())
            print(f"{n:,} items: {words}", flush=True)
            found[str(n)] = {name: round(value, 3) for name, value in figures.items()}
    if options.to:
        record = {"figures": found, "versions": versions()}
        options.to.write_text(json.dumps(record, indent=2) + "\n")
    return int(any(each[name] > limit for each in found.values() for name, limit in LIMITS.items()))


ROWS = {
    "start": ("start", "s", 1),
    "core": ("start, seconds of a core", "", 1),
    "pictures": ("first pictures, after that", "s", 2),
    "slider": ("slider, the slowest of ten steps", "ms", 0),
    "frame": ("scrolling, the middle one of 120 frames", "ms", 0),
    "scrolling": ("scrolling, the longest of them", "ms", 0),
    "move": ("to move 1,000 items", "ms", 0),
    "thumbnails": ("thumbnails a second", "", 0),
    "memory": ("memory of the server, at most", "MB", 0),
}
"""How figures are told: in words, their unit, their decimals."""


def print_table(figures: dict[str, dict[str, float]]) -> None:
    """A record as a table of Markdown."""
    print("| | " + " | ".join(f"{int(n):,} items" for n in figures) + " |")
    print("| --- |" + " ---: |" * len(figures))
    for name, (words, unit, decimals) in ROWS.items():
        told = (f"{each[name]:,.{decimals}f} {unit}".strip() for each in figures.values())
        print(f"| {words} | " + " | ".join(told) + " |")


# --- made-up results -------------------------------------------------------------------------


def write_results(folder: Path, n: int) -> None:
    """Results as a run leaves them: a third of the items unknown, in six groups."""
    random = np.random.default_rng(0)
    is_unknown, kind = random.random(n) < 1 / 3, random.integers(0, N_CLASSES, n)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = random.integers(0, 90, (n, SIDE, SIDE), dtype=np.uint8)
    pictures[np.arange(n), kind] = 255
    np.savez(folder / "pool.npz", x=pictures)
    evidence = make_evidence(random, is_unknown, kind)
    result = make_result(evidence, kind % N_LEAVES, Origin.now(pool=folder / "pool.npz"))
    out = folder / "out"
    out.mkdir()
    write_summary(out, result.summary.to_json())
    write_tables(out, result)
    write_measured(out, result)
    centres = random.normal(size=(2 * N_CLASSES, 16))
    embeddings = centres[kind + N_CLASSES * is_unknown] + random.normal(0, 0.3, (n, 16))
    save_drawing(out / DRAWING, draw(embeddings))


def make_evidence(
    random: np.random.Generator, is_unknown: np.ndarray, kind: np.ndarray
) -> Evidence:
    n, seeds = len(kind), random.integers(0, N_CLASSES, N_SEEDS)
    return Evidence(
        score=random.normal(4.0 * is_unknown - 2, 1),
        nearest=kind,
        nearest_confidence=random.uniform(0.5, 1, n),
        seed_score=random.normal(-2, 1, N_SEEDS),
        seed_label=np.concatenate([np.arange(N_CLASSES), seeds[N_CLASSES:]]),
        seed_nearest=np.concatenate([np.arange(N_CLASSES), seeds[N_CLASSES:]]),
        seed_weight=np.ones(N_SEEDS),
        p_value=1e-6,
    )


def make_result(evidence: Evidence, leaves: np.ndarray, origin: Origin) -> Result:
    settings, n = DecisionSettings(rule="seeds"), len(leaves)
    decision = decide(evidence, settings, seed=0)
    first = ((split + 1, ~split) for split in range(N_LEAVES - 2))
    sides = (*first, (~(N_LEAVES - 2), ~(N_LEAVES - 1)))
    tree = GroupTree(sides, (0.95,) * (N_LEAVES - 1), (n // N_LEAVES,) * N_LEAVES)
    groups = GroupsAudit(tree, tuple(range(N_LEAVES)), (1.0,) * N_LEAVES, 0)
    classes = tuple(f"class {c}" for c in range(N_CLASSES))
    is_called = decision.labels == UNKNOWN
    run = RunRecord(
        title=f"{n:,} made-up items",
        n_known=N_SEEDS,
        n_skipped=0,
        notes=(),
        k=0,
        steps={},
        preset="fast",
        settings={f"decision.{name}": value for name, value in flatten(settings).items()},
        shape=f"{n:,} images",
        backbone=None,
        seed=0,
        device="cpu",
        versions={},
        seconds={},
        origin=origin,
    )
    return Result(
        run=run,
        names=[str(row) for row in range(n)],  # as arrays name them
        truth=None,
        classes=classes,
        answer=Answer(
            labels=decision.labels,
            unknown_score=decision.unknown_score,
            confidence=decision.confidence,
            groups=np.where(is_called, leaves, -1),
            distinctness=np.zeros(n),
            filtered=np.zeros(n, bool),
            nearest=evidence.nearest,
            p_known=decision.p_known,
        ),
        nearest_confidence=evidence.nearest_confidence,
        evidence=evidence,
        leaves=leaves,
        audit=replace(decision.audit.named(classes), groups=groups),
        odds=None,
    )


def draw(embeddings: np.ndarray) -> Drawing:
    """A map of leading components: what t-SNE would draw does not matter here."""
    items = np.arange(0, len(embeddings), max(1, len(embeddings) // 3_000))
    components = leading_components(embeddings[items], 16)
    of_pool = leading_components(embeddings[items], 16, of=embeddings)
    scaled = (of_pool / np.abs(of_pool).max()).astype(np.float16)
    return Drawing(
        PoolMap(
            items, fit_to_page(components), components.astype(np.float32), "components", scaled
        ),
        sprites=None,
        pictures={},
        is_crisp=True,
    )


# --- what is measured ------------------------------------------------------------------------


def measure(out: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "s2osc", "page", f"--results={out}", "--no-browser"]
    started = time.perf_counter()
    # Compiled modules are kept, as where a package is installed.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        found = re.search(r"http://([^/]+)/\?token=(\S+)", server.stdout.readline())
        assert found, "the page did not start"
        figures = {"start": time.perf_counter() - started, "core": cpu_seconds(server.pid)}
        figures |= in_browser(found[0])
        figures["thumbnails"] = thumbnails_per_second(found[1], found[2], out)
        figures["memory"] = peak_megabytes(server.pid)
    finally:
        server.terminate()
        server.wait()
    return figures


SLIDE = """async () => {
  const slider = document.getElementById("rate"), times = [];
  for (let place = 40; place < 140; place += 10) {
    const started = performance.now();
    slider.value = place;
    slider.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    times.push(performance.now() - started);
  }
  return Math.max(...times);
}"""
SCROLL = """async () => {
  const frames = [];
  let last = performance.now();
  for (let step = 0; step < 120; step++) {
    scrollBy(0, 400);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  return frames;
}"""
MOVE = """async (n) => {
  const app = globalThis.s2osc, rows = app.model.groups[0].rows.slice(0, n);
  const started = performance.now();
  await app.label(rows, "class moved");
  await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""
STAND = """() => {
  const pictures = [...document.querySelectorAll(".card img")].slice(0, 12);
  return pictures.length === 12 && pictures.every((each) => each.complete && each.naturalWidth);
}"""


def in_browser(link: str) -> dict[str, float]:
    with sync_playwright() as playwright:
        place = which("chromium") or which("google-chrome")
        browser = playwright.chromium.launch(executable_path=place, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1360, "height": 900})
        page.goto(link.partition("?")[0])  # refused: a person's browser has been at work before
        started = time.perf_counter()
        page.goto(link)
        while not page.evaluate(STAND):  # the policy of the page allows no evaluation within it
            page.wait_for_timeout(10)
        figures = {"pictures": time.perf_counter() - started, "slider": page.evaluate(SLIDE)}
        page.evaluate("location.hash = `kind/${globalThis.s2osc.model.groups[0].id}`")
        page.wait_for_selector(".tile img")
        frames = page.evaluate(SCROLL)
        figures |= {"frame": statistics.median(frames), "scrolling": max(frames)}
        figures["move"] = page.evaluate(MOVE, N_MOVED)
        browser.close()
    return figures


def thumbnails_per_second(host: str, token: str, out: Path) -> float:
    """Requests one after another over several connections, as a browser sends them."""
    port = host.rsplit(":", 1)[1]
    headers = {"cookie": f"s2osc-{port}={token}"}

    def ask(connection: http.client.HTTPConnection, path: str) -> bytes:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, (path, answer.status)
        return content

    first = http.client.HTTPConnection(host)
    pool = re.search(rb'"pool":"(\w+)"', ask(first, "/api/project"))
    assert pool

    def ask_many(part: int) -> None:
        connection = http.client.HTTPConnection(host)
        for row in range(part, N_THUMBNAILS, N_CONNECTIONS):
            ask(connection, f"/pictures/{pool[1].decode()}/{row}/small")

    started = time.perf_counter()
    with ThreadPoolExecutor(N_CONNECTIONS) as threads:
        list(threads.map(ask_many, range(N_CONNECTIONS)))
    return N_THUMBNAILS / (time.perf_counter() - started)


if __name__ == "__main__":
    sys.exit(main())
