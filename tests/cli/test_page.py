"""The command of the page: what it refuses, in one line."""

import sys

import pytest

from s2osc.cli.main import main


def test_without_its_packages_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.delitem(sys.modules, "s2osc.page.server", raising=False)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["page", f"--results={tmp_path}", "--no-browser"]) == 2
    assert "run `pip install 's2osc[page]'`" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_there_is_not_is_refused(capsys, tmp_path, port):
    assert main(["page", f"--results={tmp_path}", f"--port={port}", "--no-browser"]) == 2
    assert "give a number from 1 to 65535" in capsys.readouterr().err


def test_results_or_a_stream_must_be_given(capsys):
    assert main(["page"]) == 2
    assert "--results --state is required" in capsys.readouterr().err
