"""Work that takes long: in a process of its own, with its progress, and a way to stop it.

Results and streams change in one step or not at all, so the process may be ended at any moment.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Literal

from s2osc.codec import JsonObject
from s2osc.errors import DataError, S2OSCError
from s2osc.files import reason
from s2osc.progress import reported

State = Literal["running", "done", "failed", "cancelled"]
EVERY = 0.2
"""Seconds between two reports of one step."""
NEARLY_DONE = 0.97
"""Of the bar, while the time that the work took last has passed and it is not done."""
PATIENCE = 5.0


@dataclass
class Job:
    """One piece of work, as the page shows it."""

    what: str
    expected: float | None  # seconds that the like took before
    started: float = field(default_factory=time.monotonic)
    state: State = "running"
    step: str = "starting"
    share: float | None = None  # of the step
    error: str = ""

    def describe(self) -> JsonObject:
        elapsed = time.monotonic() - self.started
        fraction, left = self.share, None
        if self.expected:
            fraction = min(NEARLY_DONE, elapsed / self.expected)
            left = max(0.0, self.expected - elapsed) or None
        step = self.step if self.share is None else f"{self.step}, {self.share:.0%}"
        return {
            "what": self.what,
            "state": self.state,
            "step": step,
            "fraction": fraction,
            "left": left,
            "elapsed": elapsed,
            "error": self.error,
        }


class Jobs:
    """At most one job at a time."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._process: BaseProcess | None = None
        self._watcher: threading.Thread | None = None
        self.current: Job | None = None

    @property
    def is_busy(self) -> bool:
        return self.current is not None and self.current.state == "running"

    def start(
        self,
        what: str,
        work: Callable[..., Any],
        *arguments: Any,
        expected: float | None = None,
        then: Callable[[Any], None],
    ) -> Job:
        """Run ``work`` in a process; ``then`` gets what it returns, in a thread of this one."""
        with self._mutex:
            if self.is_busy:
                raise DataError("the model is at work already; wait for it, or cancel it")
            here, there = multiprocessing.get_context("spawn").Pipe(duplex=False)
            process = multiprocessing.get_context("spawn").Process(
                target=run_work, args=(there, work, arguments), daemon=True
            )
            process.start()
            there.close()
            self._process = process
            self.current = job = Job(what, expected)
            watched = (job, process, here, then)
            self._watcher = threading.Thread(target=self._watch, args=watched, daemon=True)
            self._watcher.start()
        return job

    def cancel(self) -> None:
        """End the work; everything is then as it was before."""
        with self._mutex:
            job, process, watcher = self.current, self._process, self._watcher
            if job is None or process is None or watcher is None or job.state != "running":
                raise DataError("nothing is at work")
            job.state = "cancelled"
        process.terminate()
        # One thread alone waits for the process: of two, the later one is not told that it ended.
        watcher.join(PATIENCE)
        if watcher.is_alive():
            process.kill()
            watcher.join(PATIENCE)

    def close(self) -> None:
        if self.is_busy:
            self.cancel()

    def _watch(
        self, job: Job, process: BaseProcess, pipe: Connection, then: Callable[[Any], None]
    ) -> None:
        outcome: tuple[str, Any] = ("failed", "the work ended without a word")
        try:
            while True:
                kind, value = pipe.recv()
                if kind != "step":
                    outcome = kind, value
                    break
                job.step, job.share = value
        except (EOFError, OSError):
            pass
        process.join()
        if job.state == "cancelled":
            return
        kind, value = outcome
        if kind == "done":
            try:
                then(value)
            except Exception as error:
                kind, value = "failed", reason(error)
        job.error = value if kind == "failed" else ""
        job.state = "done" if kind == "done" else "failed"


def run_work(pipe: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """In the process: work, and send every step, then what came of it."""
    last = 0.0

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > EVERY or done == 0:
            last = now
            pipe.send(("step", (what, done / total if total else None)))

    try:
        with reported(report):
            pipe.send(("done", work(*arguments)))
    except S2OSCError as error:
        pipe.send(("failed", str(error)))
    except BrokenPipeError:  # the page is gone
        return
    except Exception as error:
        pipe.send(("failed", f"it failed ({type(error).__name__}: {reason(error)})"))
