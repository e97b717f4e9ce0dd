"""A page of text about a model: what it tells apart, how far to trust it, what it was made of."""

from collections.abc import Sequence

from s2osc.app.summary import Summary
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.wording import cautions, limit, sentence
from s2osc.text import listed, plural

INPUTS = {
    2: "vectors as they come, not scaled",
    3: "grey images, values from 0 to 255",
    4: "colour images, values from 0 to 255",
    5: "photos with values from 0 to 255, brought to this size; one view, the photo itself, is "
    "enough, and the views of `s2osc.nets.features.photo_views` give exactly the answer of `s2osc "
    "predict`",
}
"""By their axes."""
OUTPUTS = (
    ("label", "the number of a class, or -1: unknown"),
    ("unknown_score", "rises from 0 to 1 with the belief that the item is of no known class"),
    ("nearest", "the number of the best known class, also of unknown items"),
    ("confidence", "the probability that the label is right"),
    ("p_known", "the share of known items at least as strange; if items were held back"),
)
USAGE = """\
```python
import json
import onnxruntime

session = onnxruntime.InferenceSession("{file}")
classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
answers = session.run(["label", "confidence"], {{"items": items}})
```"""


def model_card(summary: Summary, *, file: str, shape: Sequence[int | str]) -> str:
    """The card in Markdown, of what the summary of the run says."""
    classes, origin = summary.classes, summary.run.origin
    date = origin.at if origin else "an unknown date"
    parts = [
        f"# {_text(summary.run.title)}",
        f"`{file}` gives each item one of {plural(len(classes), 'known class')}, or calls it "
        f"unknown. Made on {date} by s2osc {summary.run.versions.get('s2osc', '')}.",
        "## Classes",
        "\n".join(f"{number}. {_text(name)}" for number, name in enumerate(classes)),
        "## Use",
        f"Input `items`: `{_shape(shape)}`, {_input(summary, shape)}.",
        _table(("output", "meaning"), [(f"`{name}`", meaning) for name, meaning in OUTPUTS]),
        USAGE.format(file=file),
        "Groups of unknown items are not part of the file: `s2osc predict` gives them.",
        "## How far to trust it",
        *_trust(summary.audit),
        *(f"- {_text(text)}" for text in summary.run.notes),
        "## Data",
        _table(("", ""), _data(summary)),
        "## Settings",
        _table(("setting", "value"), _settings(summary)),
    ]
    return "\n\n".join(parts) + "\n"


def _shape(shape: Sequence[int | str]) -> str:
    kind = "uint8" if len(shape) in (3, 4) else "float32"
    return f"({', '.join(map(str, shape))}) {kind}"


def _input(summary: Summary, shape: Sequence[int | str]) -> str:
    if summary.run.embedding:
        return f"vectors of texts by {_text(summary.run.embedding)}"
    if summary.run.columns:
        return f"rows of a table as numbers ({_text(listed(summary.run.columns.used))})"
    return INPUTS[len(shape)]


def _trust(audit: Audit | None) -> list[str]:
    """The audit in words."""
    if audit is None:
        return ["Nothing was held back to measure it by (a preset of the paper), so nobody knows."]
    found = [_text(sentence(audit)), *([_text(limit(audit) or "")] if limit(audit) else [])]
    warned = [f"- {_text(caution.text)}" for caution in cautions(audit)]
    rests = (
        "These figures are of the pool that the model was made with, by labelled items held back "
        "from training. They hold for new items from the same source; `s2osc check` measures "
        "others."
    )
    return [*found, rests, *(["\n".join(warned)] if warned else [])]


def _data(summary: Summary) -> list[tuple[str, str]]:
    rows = [
        ("items", summary.run.shape),
        ("labelled items", f"{summary.run.n_known:,}"),
        ("pool", f"{summary.n_pool:,}"),
        (
            "called unknown in it",
            "not known" if summary.counts.unknown is None else f"{summary.counts.unknown:,}",
        ),
        ("backbone", summary.run.backbone or "none"),
    ]
    return [(name, _text(str(value))) for name, value in rows]


def _settings(summary: Summary) -> list[tuple[str, str]]:
    run = {"preset": summary.run.preset, "seed": summary.run.seed, "device": summary.run.device}
    all_of_them = run | summary.run.settings | summary.run.versions
    return [(_text(name), _text(str(value))) for name, value in all_of_them.items()]


def _table(heading: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    lines = [heading, ("---", "---"), *rows]
    return "\n".join(f"| {left} | {right} |" for left, right in lines)


def _text(text: str) -> str:
    """Names and texts of others as text: nothing in them is markup.

    >>> _text("a|b <c>*")
    'a\\\\|b &lt;c&gt;\\\\*'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]|#" else letter for letter in text)
