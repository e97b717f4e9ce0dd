"""Where the time goes is written where somebody asks for it."""

import pstats

import pytest

from s2osc.app.profiling import profiled
from s2osc.errors import OutputError, SettingsError


def slow_part():
    return sum(range(1_000))


def test_a_prof_file_is_one_that_pstats_reads(tmp_path):
    with profiled(tmp_path / "new folder" / "run.prof"):
        slow_part()
    functions = pstats.Stats(str(tmp_path / "new folder" / "run.prof")).stats
    assert "slow_part" in {name for _, _, name in functions}


def test_a_text_names_the_functions_by_all_their_time_and_by_their_own(tmp_path):
    with profiled(tmp_path / "run.txt"):
        slow_part()
    text = (tmp_path / "run.txt").read_text()
    assert text.count("(slow_part)") == 2
    assert text.index("cumulative time") < text.index("internal time")


def test_a_run_that_fails_is_profiled_as_far_as_it_came(tmp_path):
    with pytest.raises(ZeroDivisionError), profiled(tmp_path / "run.prof"):
        _ = 1 / 0
    assert (tmp_path / "run.prof").is_file()


def test_nothing_is_written_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with profiled(None):
        slow_part()
    assert not list(tmp_path.iterdir())


def test_a_file_of_another_kind_or_in_no_folder_is_refused_before_the_run(tmp_path):
    (tmp_path / "file").touch()
    for path, error in (
        (tmp_path / "run.html", SettingsError),
        (tmp_path / "file" / "run.prof", OutputError),
    ):
        with pytest.raises(error), profiled(path):
            pytest.fail("the run began")
