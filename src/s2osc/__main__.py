"""``s2osc`` and ``python -m s2osc``: one command in a process of its own."""

import _signal  # type: ignore[import-not-found]  # `signal` itself would take long to import
import atexit
import gc
import os
import sys
import time

TYPE_CHECKING = False  # as `typing` has it, which would take long to import
if TYPE_CHECKING:
    from types import FrameType

EXIT_INTERRUPTED = 130
PATIENCE = 2.0
"""Seconds for which a second Ctrl-C lets the first one tidy up."""
MOMENT = 0.01
"""Seconds after which an import that was interrupted is looked at again."""
ROUNDS = "30000"
"""Of a thread that waits for work before it sleeps. With 10,000 to 100,000 two threads take a step
of a small network in 14 ms, beside two busy programs in 30 to 34. With none it is 22 and 57 ms,
with 300,000, which is usual, 14 and more than a second (two cores)."""
SELDOM = 10_000, 20, 20
"""When garbage is looked for, as ``gc.set_threshold`` takes it. Imports make half a million objects
that stay; by Python's own measure all of them were looked through five times in a run."""


def run() -> int:
    """Run the command that the process was started with; return its exit code."""
    gc.set_threshold(*SELDOM)
    _let_threads_wait_shortly()
    interruption = Interruption()
    # A shell lets commands in the background ignore the signal; that stays so.
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, interruption)
    try:
        _fill_closed_descriptors()
        from s2osc.cli.main import main  # noqa: PLC0415

        code = main()
        interruption.is_too_late = True  # all is done; leaving takes a moment
    except KeyboardInterrupt:  # while Python was importing
        code = EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:
        os._exit(code)  # libraries that were interrupted may not know how to leave in good order
    if _is_done():
        # Nothing is left but to take torch and others apart piece by piece, for half a second.
        os._exit(code)
    return code


def _let_threads_wait_shortly() -> None:
    """Threads without work go round for a moment, then sleep, unless the user says otherwise.

    By its own measure OpenMP lets them go round for milliseconds. Where other programs run, too,
    they take the time of the thread that they wait for. If they slept at once, waking them would
    take longer than a layer of a small network: two threads were no quicker than one.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", ROUNDS)


def _is_done() -> bool:
    """Whether all is written and no thread works on, so that the process may end at once.

    What was registered to be done at the end is done.
    """
    threading = sys.modules.get("threading")
    if threading and any(
        not thread.daemon and thread is not threading.main_thread()
        for thread in threading.enumerate()
    ):
        return False
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # closed, or nobody reads: Python says so
        return False
    return True


def _fill_closed_descriptors() -> None:
    """Where standard output is closed, no file that is opened later may take its number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


class Interruption:
    """The first Ctrl-C ends the command; a second one gives it time to tidy up.

    Nothing is raised within an import: libraries in C++ know no exception there, and abort. One
    that waits for the end of an import may outlast the command itself.
    """

    def __init__(self) -> None:
        self.first: float | None = None
        self.is_too_late = False

    def __call__(self, number: int, frame: "FrameType | None") -> None:
        if self.is_too_late:
            return
        now = time.monotonic()
        if self.first is None:
            self.first = now
        elif number == _signal.SIGINT:  # another one; alarms only say that an import may be over
            if now - self.first > PATIENCE:
                os._exit(EXIT_INTERRUPTED)
            return
        if _is_importing(frame) and hasattr(_signal, "setitimer"):
            _signal.signal(_signal.SIGALRM, self)
            _signal.setitimer(_signal.ITIMER_REAL, MOMENT)
            return
        raise KeyboardInterrupt


def _is_importing(frame: "FrameType | None") -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    sys.exit(run())
