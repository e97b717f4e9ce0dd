"""The command that opens a page to work in."""

import argparse
import sys
import webbrowser
from pathlib import Path
from typing import Any

from s2osc.cli.address import LOCAL_HOSTS, add_address, check_address
from s2osc.cli.options import add_command
from s2osc.cli.printing import printer
from s2osc.errors import SettingsError

FIRST_PORT = 8421
RISK = "whoever has the link sees and changes everything"


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
    add_address(parser, first_port=FIRST_PORT, risk=RISK)
    parser.add_argument("--no-browser", action="store_true", help="print the link, open nothing")


def page(options: argparse.Namespace) -> None:
    check_address(options, risk=RISK)
    try:
        from s2osc.page.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise
        raise SettingsError(
            f"the page needs {error.name}, which is not installed; run `pip install 's2osc[page]'`"
        ) from error
    from s2osc.page.project import TOKEN
    from s2osc.page.security import EVERY, LOCAL, read_token
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
            if name in EVERY:
                say(f"On other machines, put the address of this one in the place of {LOCAL[0]}.")
            link = f"http://{LOCAL[0] if name in EVERY else name}:{port}/?token={token}"
            say(f"The page is open at {link}", soft_wrap=True)
            say("It works offline. Ctrl-C ends it; nothing is lost by that.")
            sys.stdout.flush()
            if not options.no_browser:
                webbrowser.open(link)
            hosts = LOCAL if options.host in LOCAL_HOSTS else (*LOCAL, name)
            serve(work, bound, token=token, hosts=hosts)
