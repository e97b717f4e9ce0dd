"""Nobody else gets in: each way that was thought of is tried."""

import asyncio
import os
import re
import stat

import httpx2
import pytest
from starlette.testclient import TestClient

from page_helpers import HOST, PORT, TOKEN, act
from s2osc.cli.main import main
from s2osc.files import part_of
from s2osc.page.security import read_token
from s2osc.page.server import guarded_app

PATHS = (
    "/",
    "/static/app.js",
    "/api/project",
    "/api/columns",
    "/api/changes",
    "/pictures/x/0/small",
)


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_served_without_the_token(stranger, path):
    assert stranger.get(path).status_code == 403
    assert stranger.get(f"{path}?token=guess").status_code == 403
    assert stranger.get(path, headers={"cookie": "s2osc-8421=guess"}).status_code == 403


def test_the_token_leaves_the_address_and_becomes_a_strict_cookie(stranger):
    answer = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8421", "127.0.0.1", "127.0.0.1:80", ""]
)
def test_a_name_that_leads_here_by_dns_is_refused(browser, host):
    assert browser.get("/api/project", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_all_addresses_of_a_machine_are_its_own_and_no_name_is(work, host):
    app = guarded_app(work, token=TOKEN, port=PORT, hosts=(host,))
    for name, status in {
        "192.0.2.7": 200,
        "[2001:db8::7]": 200,
        "localhost": 200,
        "evil.example": 421,
        "192.0.2.7.evil.example": 421,
        "192.0.2.7@evil.example": 421,
    }.items():
        client = TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False)
        headers = {"host": f"{name}:{PORT}", "cookie": f"s2osc-{PORT}={TOKEN}"}
        assert client.get("/api/project", headers=headers).status_code == status, name
        headers |= {"origin": f"http://{name}:{PORT}"}
        answer = client.post("/api/acts", json=act(), headers=headers)
        assert answer.status_code == status, name
        headers |= {"origin": f"http://192.0.2.9:{PORT}"}
        answer = client.post("/api/acts", json=act(), headers=headers)
        assert answer.status_code == (403 if status == 200 else status), name
        assert client.get("/", headers=headers | {"host": f"{name}:80"}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"},
        {"origin": f"http://{HOST}", "sec-fetch-site": "same-site"},
    ],
)
def test_a_post_from_another_site_is_refused(browser, headers):
    assert browser.post("/api/acts", json=act(), headers=headers).status_code == 403
    assert browser.get("/api/changes").json()["act"] == 0


def test_a_post_without_an_origin_is_refused(browser):
    del browser.headers["origin"]
    assert browser.post("/api/acts", json=act()).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e%2f%2e%2e%2facts.py",
        "/static//etc/passwd",
        "/static/.",
        "/pictures/x/..%2f..%2fetc%2fpasswd/small",
        "/pictures/x/-1/small",
        "/pictures/x/0/huge",
    ],
)
def test_no_path_leads_to_a_file(browser, path):
    assert browser.get(path).status_code in (404, 422)


def test_pictures_are_by_number_of_the_own_list(browser):
    pool = browser.get("/api/project").json()["pool"]
    assert browser.get(f"/pictures/{pool}/0/small").headers["content-type"] == "image/png"
    for row in (10**6, 10**30, "0x0", "1e3"):
        assert browser.get(f"/pictures/{pool}/{row}/small").status_code in (404, 422)


def test_script_in_a_name_stays_text(browser):
    name = '<img src=x onerror="alert(1)"></script>'
    answer = browser.post("/api/acts", json=act(target=f"class {name}"))
    assert answer.json()["targets"] == [f"class {name}"]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_policy_allows_own_script_alone_and_no_frame(browser):
    policy = browser.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    page = browser.get("/").text
    assert "<script>" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_a_body_that_is_too_large_is_refused_before_it_is_read(browser):
    headers = {"content-length": str(2**40), "content-type": "application/json"}
    assert browser.post("/api/acts", content=b"{}", headers=headers).status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "steal"},
        {"rows": [-1]},
        {"rows": [10**9]},
        {"rows": ["x"]},
        {"key": "x"},
        {"by": ""},
        {"target": "leaf 99999"},
        {"target": "../../etc"},
        {"kind": "decide", "target": "nan"},
        {"kind": "decide", "target": "2"},
        {"kind": "merge", "target": "0,9999999999999"},
    ],
)
def test_an_act_that_makes_no_sense_is_refused_and_not_kept(browser, body):
    assert browser.post("/api/acts", json=act(**body)).status_code in (400, 422)
    assert browser.get("/api/changes").json()["act"] == 0


def test_a_thousand_requests_at_once_are_answered(browser):
    async def ask() -> list[int]:
        transport = httpx2.ASGITransport(browser.app)
        facts = {"base_url": browser.base_url, "cookies": browser.cookies}
        async with httpx2.AsyncClient(transport=transport, **facts) as client:
            asked = [client.get("/static/style.css") for _ in range(1000)]
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    assert asyncio.run(ask()) == [200] * 1000


def test_the_token_is_kept_for_its_owner_alone(tmp_path):
    token = read_token(tmp_path / "token")
    assert len(token) >= 32
    assert read_token(tmp_path / "token") == token
    assert stat.S_IMODE(os.stat(tmp_path / "token").st_mode) == 0o600
    assert read_token(tmp_path / "other") != token


def test_nobody_else_can_read_the_token_at_any_moment(tmp_path, monkeypatch):
    modes = []

    def replace(part, path):
        modes.append(stat.S_IMODE(os.stat(part).st_mode))
        os.rename(part, path)

    part_of(tmp_path / "token").touch(0o644)  # left by a process that was killed
    monkeypatch.setattr(os, "replace", replace)
    read_token(tmp_path / "token")
    assert modes == [0o600]


def test_a_token_that_others_could_read_is_replaced(tmp_path):
    token = read_token(tmp_path / "token")
    os.chmod(tmp_path / "token", 0o644)
    assert read_token(tmp_path / "token") != token
    assert stat.S_IMODE(os.stat(tmp_path / "token").st_mode) == 0o600


def test_an_address_that_others_reach_needs_a_word(out, capsys):
    assert main(["page", f"--results={out}", "--host=0.0.0.0", "--no-browser"]) == 2
    assert "give --i-know if that is meant" in capsys.readouterr().err


def test_a_second_page_on_the_same_results_is_refused(work, capsys):
    assert main(["page", f"--results={work.project.out}", "--no-browser"]) == 2
    assert "another page is open on" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"x" * 31, b"\xff" * 40, b"a b" * 20, b"x" * 10_000])
def test_a_damaged_token_is_replaced(tmp_path, content):
    place = tmp_path / "token"
    place.touch(0o600)
    place.write_bytes(content)
    assert re.fullmatch("[A-Za-z0-9_-]{32,}", read_token(place))
    assert read_token(place) == read_token(place)
