"""What tests of the page share."""

import uuid
from typing import Any

TOKEN = "a-token-that-nobody-would-guess-0123456789"
PORT = 8421
HOST = f"127.0.0.1:{PORT}"


def act(**changes: Any) -> dict[str, Any]:
    """An act as a browser sends it."""
    body = {
        "key": uuid.uuid4().hex,
        "by": "Ada",
        "kind": "label",
        "target": "class owl",
        "rows": [0],
    }
    return body | changes
