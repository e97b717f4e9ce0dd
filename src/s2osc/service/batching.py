"""Requests that come within a few milliseconds are answered as one batch.

A network takes hardly longer for a hundred items than for one. What waits is bounded: a request
that finds too much before it is refused at once, so that nothing piles up.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from s2osc.service.answering import ItemAnswer

WAIT = 0.005
"""Seconds in which requests are merged."""
LARGEST_BATCH = 512
"""Items that are answered at once; a larger request goes alone."""
MOST_WAITING = 4_096
"""Items that wait or are answered; further requests are refused."""


class BusyError(Exception):
    """More is waiting than can be answered soon."""


class Waiting(NamedTuple):
    """A request, and where its answer goes."""

    items: np.ndarray
    done: "asyncio.Future[list[ItemAnswer]]"


class Batcher:
    """Merges requests, and answers one batch after another in a thread of its own."""

    def __init__(
        self,
        answer: Callable[[np.ndarray], list[ItemAnswer]],
        *,
        wait: float = WAIT,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.answer_items, self.wait, self.most_waiting = answer, wait, most_waiting
        self.n_waiting = 0
        self.queue: asyncio.Queue[Waiting] = asyncio.Queue()
        self.thread = ThreadPoolExecutor(1, "answers")
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self.thread.shutdown(wait=False, cancel_futures=True)

    async def answer(self, items: np.ndarray) -> list[ItemAnswer]:
        """The answers for items; ``BusyError`` where too much is waiting."""
        if self.n_waiting and self.n_waiting + len(items) > self.most_waiting:
            raise BusyError
        done: asyncio.Future[list[ItemAnswer]] = asyncio.get_running_loop().create_future()
        self.n_waiting += len(items)
        self.queue.put_nowait(Waiting(items, done))
        return await done

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        held: Waiting | None = None
        while True:
            batch = [held or await self.queue.get()]
            held, end = None, loop.time() + self.wait
            n = len(batch[0].items)
            while n < LARGEST_BATCH and (left := end - loop.time()) > 0:
                try:
                    further = await asyncio.wait_for(self.queue.get(), left)
                except TimeoutError:
                    break
                if n + len(further.items) > LARGEST_BATCH:
                    held = further
                    break
                batch.append(further)
                n += len(further.items)
            await self._answer(batch)

    async def _answer(self, batch: list[Waiting]) -> None:
        n = sum(len(each.items) for each in batch)
        # Who has left, since it took too long, is not worked for.
        there = [each for each in batch if not each.done.cancelled()]
        try:
            if there:
                items = np.concatenate([each.items for each in there])
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self.thread, self.answer_items, items)
                for each in there:
                    own, found = found[: len(each.items)], found[len(each.items) :]
                    if not each.done.cancelled():
                        each.done.set_result(own)
        except Exception as error:  # whoever asked gets it; others go on
            for each in there:
                if not each.done.done():
                    each.done.set_exception(error)
        finally:
            self.n_waiting -= n
