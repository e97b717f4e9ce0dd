"""The command that opens a page to work in."""

import argparse
import sys
import webbrowser
from pathlib import Path
from typing import Any

from s2osc.cli.options import add_command, printer
from s2osc.errors import SettingsError

FIRST_PORT = 8421
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


def add_page(commands: Any) -> None:
    parser = add_command(
        commands,
        "page",
        page,
        help="open results, or a stream, in a browser: look, name, correct, learn, export",
        description="Serve a page on this machine to look at what is new, name it, correct what is "
        "wrong, let the model learn, and go on. Everything people do there is kept beside the "
        "results, and can be undone. Needs `pip install 's2osc[page]'`.",
    )
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--results", type=Path, metavar="DIR", help="a folder that classify wrote")
    either.add_argument("--state", type=Path, metavar="DIR", help="a stream")
    parser.add_argument(
        "--port", type=int, help=f"of the page (default: {FIRST_PORT}, or the next that is free)"
    )
    parser.add_argument(
        "--host",
        default=LOCAL_HOSTS[0],
        help="the address to serve under (default: 127.0.0.1, which this machine alone can reach)",
    )
    parser.add_argument(
        "--i-know",
        action="store_true",
        help="serve under an address that others can reach, without encryption: whoever reads the "
        "traffic, or is given the link, sees and changes everything",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the link, open nothing")


def page(options: argparse.Namespace) -> None:
    check_host(options.host, i_know=options.i_know)
    if options.port is not None and not 0 <= options.port < 65_536:
        raise SettingsError(f"--port is {options.port}; give a number from 1 to 65535")
    try:
        from s2osc.page.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise
        raise SettingsError(
            f"the page needs {error.name}, which is not installed; run `pip install 's2osc[page]'`"
        ) from error
    from s2osc.page.project import TOKEN
    from s2osc.page.security import LOCAL, read_token
    from s2osc.page.work import opened_work
    from s2osc.sockets import bound_socket

    with opened_work(options.results, options.state) as work:
        token = read_token(work.project.folder / TOKEN)
        with bound_socket(options.host, options.port, FIRST_PORT) as bound:
            port, say = bound.getsockname()[1], printer()
            name = f"[{options.host}]" if ":" in options.host else options.host
            if options.host not in LOCAL_HOSTS:
                say(
                    f"Note: everybody who reaches {name}:{port} and has this link can see and "
                    "change everything here, and the traffic is not encrypted.",
                    style="yellow",
                )
            link = f"http://{name}:{port}/?token={token}"
            say(f"The page is open at {link}", soft_wrap=True)
            say("It works offline. Ctrl-C ends it; nothing is lost by that.")
            sys.stdout.flush()
            if not options.no_browser:
                webbrowser.open(link)
            hosts = LOCAL if options.host in LOCAL_HOSTS else (*LOCAL, name)
            serve(work, bound, token=token, hosts=hosts)


def check_host(host: str, *, i_know: bool) -> None:
    """Refuse an address that others can reach, unless that is meant."""
    if host not in LOCAL_HOSTS and not i_know:
        raise SettingsError(
            f"--host is {host}, which other machines can reach: whoever has the link sees and "
            "changes everything, and the traffic is not encrypted; give --i-know if that is meant"
        )
