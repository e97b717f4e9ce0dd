"""Out of the page: the same files as `s2osc export` writes, with the labels of people."""

from dataclasses import asdict, dataclass
from pathlib import Path

from s2osc.app.corrections import corrections_table
from s2osc.app.export.job import Files, export_results
from s2osc.codec import JsonObject
from s2osc.errors import DataError
from s2osc.files import write_whole, writing
from s2osc.page.project import Project
from s2osc.page.work import corrections_of

CORRECTIONS, LINKS = "corrections", "links"


@dataclass(frozen=True)
class Form:
    """One kind of file that can be written."""

    id: str  # as in `s2osc export --format`, except where they are links
    name: str
    words: str
    place: str  # below the folder of exports


FORMS = (
    Form(
        "folders",
        "Class folders",
        "A folder per class and group, with copies of the items.",
        "folders",
    ),
    Form(
        LINKS,
        "Class folders of links",
        "The same with links to where the items lie, which takes no room.",
        "links",
    ),
    Form("csv", "CSV table", "Every item: its label, who gave it, and when.", "labels.csv"),
    Form("parquet", "Parquet table", "The same for programs.", "labels.parquet"),
    Form("jsonl", "JSON lines", "The same, one object per item.", "labels.jsonl"),
    Form(
        "label-studio",
        "Label Studio",
        "Tasks with predictions, and a labelling configuration.",
        "label-studio",
    ),
    Form("coco", "COCO", "Image classification in COCO's JSON.", "labels.json"),
    Form(
        "known",
        "Labelled items",
        "The labelled items with those that people named, for the next run.",
        "known",
    ),
    Form(
        CORRECTIONS,
        "Corrections",
        "The labels of people, for `s2osc classify --corrections`.",
        "corrections.csv",
    ),
)


def describe_forms(project: Project) -> list[JsonObject]:
    """The forms that the items of a project can have."""
    origin = project.opened.result.run.origin if project.pool else None
    can = {
        LINKS: are_files(project),
        # A stream has its labelled items in itself.
        "known": origin is not None and (origin.known is not None or origin.is_demo),
    }
    return [asdict(form) for form in FORMS if can.get(form.id, True)]


def are_files(project: Project) -> bool:
    """Whether each item is a file of its own."""
    source = project.pool.source if project.pool else None
    return source is not None and isinstance(source.content, list)


def write_export(project: Project, name: str) -> Path:
    """Write one form, after the results were brought to what the page shows; where it is."""
    form = next((form for form in FORMS if form.id == name), None)
    if form is None:
        raise DataError(f"{name!r:.50} is no form of export")
    with project.mutex:
        out = project.out
        if out is None:
            raise DataError("there is no window yet")
        place = out.absolute().with_name(f"{out.absolute().name}-export")
        if form.id == CORRECTIONS:
            with writing(place, "make room, or allow writing there"):
                write_whole(place / form.place, corrections_table(corrections_of(project)))
            return place / form.place
        project.write_results()
        to = _target(project, place, form)
        corrections = corrections_of(project, ignored=form.id != "known")
        is_link = form.id == LINKS
        export_results(
            out,
            to,
            "folders" if is_link else form.id,
            corrections=corrections,
            files=Files(link=is_link),
            force=True,
        )
        return to


def _target(project: Project, place: Path, form: Form) -> Path:
    """Labelled items are a folder where they are files, else a table like the one they came in."""
    origin = project.opened.result.run.origin
    if form.id == "known" and not are_files(project) and origin:
        return place / (Path(origin.known).name if origin.known else f"{form.place}.npz")
    return place / form.place
