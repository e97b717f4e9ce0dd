"""The address that a command serves under: what is refused, in one line, before anything starts."""

import pytest

from s2osc.cli.main import main

SERVING = pytest.mark.parametrize(
    "words", [["page", "--results=nowhere"], ["serve", "--model=nowhere"]]
)


@SERVING
@pytest.mark.parametrize("port", ["-1", "65536", "99999"])
def test_a_port_that_there_is_not_is_refused(words, port, capsys):
    assert main([*words, f"--port={port}"]) == 2
    complaint = capsys.readouterr().err
    assert "give a number from 1 to 65535" in complaint
    assert complaint.count("\n") == 1


@SERVING
def test_an_address_that_others_can_reach_must_be_meant(words, capsys):
    assert main([*words, "--host=0.0.0.0"]) == 2
    assert "which other machines can reach" in capsys.readouterr().err
    assert main([*words, "--host=0.0.0.0", "--i-know"]) == 2  # there is nothing to serve
    assert "nowhere" in capsys.readouterr().err
