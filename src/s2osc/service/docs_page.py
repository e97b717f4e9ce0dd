"""What the service answers, as a page for people; it needs nothing from elsewhere."""

import json
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template, select_autoescape
from markupsafe import Markup

from s2osc.codec import JsonObject
from s2osc.service.answering import ModelService
from s2osc.version import __version__

MEANINGS = {
    "200": "the answer",
    "400": "the items cannot be used: not of the model's kind or shape",
    "413": "the body is too large",
    "422": "the body is not as described here",
    "503": "too much is waiting, or it took too long; the same request may be sent again later",
}
EXAMPLES = {
    "vectors": {"vectors": [[0.1, 0.2, 0.3]]},
    "images": {"images": ["base64 of a PNG or JPEG file"]},
    "texts": {"texts": ["how to sort a list"]},
}


def docs_page(service: ModelService, api: JsonObject, host: str) -> str:
    """The page; ``api`` is the description of the service as OpenAPI has it."""
    schemas = api["components"]["schemas"]

    def fields(title: str, schema: JsonObject) -> Markup:
        name = schema["$ref"].rpartition("/")[2]
        rows = Markup("").join(
            Markup("<tr><td><code>{}</code></td><td>{}</td></tr>").format(field, kind_of(value))
            for field, value in schemas[name]["properties"].items()
        )
        inner = [inner_name(value) for value in schemas[name]["properties"].values()]
        more = Markup("").join(fields(f"Each {n}", {"$ref": n}) for n in inner if n in schemas)
        head = Markup("<h3>{}</h3><p>{}</p>").format(title, schemas[name].get("description", ""))
        return head + Markup("<table>{}</table>").format(rows) + more

    shape = [] if service.kind == "texts" else list(service.item_shape)
    return _template().render(
        version=__version__,
        kind=service.kind,
        shape=shape,
        classes=list(service.classes),
        host=host,
        example=json.dumps(EXAMPLES[service.kind]),
        api=api,
        fields=fields,
        meanings=MEANINGS,
    )


def kind_of(value: JsonObject) -> str:
    """The type of a field in words.

    >>> kind_of({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    'list of string, or null'
    """
    if "anyOf" in value:
        return ", or ".join(kind_of(each) for each in value["anyOf"])
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if value.get("type") == "array":
        return f"list of {kind_of(value['items'])}"
    return str(value.get("type", "any"))


def inner_name(value: JsonObject) -> str:
    """The name of what a list holds, if it has one; else nothing."""
    return str(value.get("items", {}).get("$ref", "")).rpartition("/")[2]


@cache
def _template() -> Template:
    page = files("s2osc.service").joinpath("docs.html").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
    )
    return environment.from_string(page)
