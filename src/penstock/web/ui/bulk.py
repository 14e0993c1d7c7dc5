"""Bulk replays: one letter first, then 10, then 100, then the rest, each stage judged before the next begins.

A job lives in this process. Each letter is replayed in a commit of its own portion, so a server that stops in the middle
leaves the rest of the letters as they were, and the page can begin again with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.app import App
from penstock.model.envelope import replay_id
from penstock.model.errors import BadParameter, PenstockError
from penstock.model.ids import from_text
from penstock.model.sql_files import load
from penstock.pages import ActionResult
from penstock.queues.letters import DeadLetter
from penstock.runtime.audit import operated_by
from penstock.views.view import Row
from penstock.web.ui.actions import Action, Doing, letter_number

SQL = load("penstock.web.ui", "pages.sql")
STAGES = (1, 10, 100)
PORTION = 500  # letters of a stage after those
DEATHS_MAX = 0.1  # of a stage: with more the job stops
LOOK_SECONDS = 0.5
STAGE_SECONDS_MAX = 300.0  # that a stage may take before the job stops and says so
JOBS_MAX = 50  # that are remembered

_log = logging.getLogger("penstock.web.ui")


@dataclass(slots=True)
class Job:
    """`state` is running, done, stopped or aborted; `says` is why."""

    id: int
    actor: str
    chosen: int
    rate: float | None
    began_at: int
    replayed: int = 0
    skipped: int = 0
    died: int = 0
    state: str = "running"
    says: str = ""
    letter: int | None = None  # one that died again
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def row(self) -> Row:
        names = "id actor chosen rate began_at replayed skipped died state says letter"
        return {name: getattr(self, name) for name in names.split()}


class Jobs:
    def __init__(self, app: App) -> None:
        self._app = app
        self.known: dict[int, Job] = {}

    def rows(self) -> list[Row]:
        return [job.row() for job in reversed(self.known.values())]

    def abort(self, number: int) -> str:
        job = self.known.get(number)
        if job is None or job.state != "running":
            raise BadParameter("This replay has ended.")
        job.state, job.says = "aborted", "An operator stopped it."
        return f"Stopped the replay after {job.replayed:,} of {job.chosen:,} letters."

    def begin(
        self, numbers: Sequence[int], *, actor: str, origin: str, rate: float | None, staged: bool, now: int
    ) -> Job:
        """Begin to replay letters, in stages by default."""
        job = Job(max(self.known, default=0) + 1, actor, len(numbers), rate, now)
        self.known[job.id] = job
        if len(self.known) > JOBS_MAX:
            self.known.pop(next(iter(self.known)))
        job.task = asyncio.ensure_future(self._run(job, list(numbers), origin, staged))
        return job

    async def _run(self, job: Job, numbers: list[int], origin: str, staged: bool) -> None:
        try:
            with operated_by(job.actor, origin):
                for size in (*STAGES, PORTION) if staged else (PORTION,):
                    while numbers and job.state == "running":
                        portion, numbers = numbers[:size], numbers[size:]
                        await self._stage(job, portion, judged=staged)
                        if size != PORTION:
                            break
            if job.state == "running":
                job.state, job.says = "done", "Every letter was sent back to its queue."
        except PenstockError as error:
            job.state, job.says = "stopped", str(error)
        except Exception:
            job.state, job.says = "stopped", "Penstock itself failed; the log has the traceback."
            _log.exception("a bulk replay failed")

    async def _stage(self, job: Job, numbers: Sequence[int], *, judged: bool) -> None:
        letters = [await self._app.dead.get(number) for number in numbers]
        open_ = [letter for letter in letters if letter.resolution is None]
        done = await self._app.dead.replay([letter.id for letter in open_], rate=job.rate)
        job.replayed += done
        job.skipped += len(numbers) - done
        if judged and done:
            await self._judge(job, open_)

    async def _judge(self, job: Job, letters: Sequence[DeadLetter]) -> None:
        """Wait until the letters of a stage have ended; stop the job if too many died again."""
        sent = {_sent_as(letter): letter for letter in letters}
        engine = await self._app._opened()
        died, looks = 0, int((STAGE_SECONDS_MAX + len(letters) / (job.rate or 1_000_000)) / LOOK_SECONDS)
        for _ in range(looks):
            for id, letter in [*sent.items()]:
                bound: dict[str, Any] = {"id": id, "queue": letter.queue}
                (row,) = (await engine.read("", SQL["replay_fate"], bound, rows_max=1)).values
                waits, dead = row
                if dead is not None:
                    died, job.died, job.letter = died + 1, job.died + 1, int(dead)
                if dead is not None or not waits:
                    del sent[id]
            if died > max(0, int(len(letters) * DEATHS_MAX)):
                job.state, job.says = (
                    "stopped",
                    f"{died:,} of {len(letters):,} letters died again. The others were not replayed.",
                )
                return
            if not sent or job.state != "running":
                return
            await asyncio.sleep(LOOK_SECONDS)
        job.state = "stopped"
        job.says = f"{len(sent):,} letters of a stage have not ended in {STAGE_SECONDS_MAX:.0f} s. Is a worker running?"


def _sent_as(letter: DeadLetter) -> bytes:
    """Return the id under which a letter is replayed next."""
    origin = letter.replay_of or letter.event_id
    return replay_id(from_text(origin), letter.replay_count + 1, letter.id)


async def begin_replay(doing: Doing) -> ActionResult:
    """Begin what the form of the page asks for; return where it can be followed."""
    numbers = [letter_number(each) for each in doing.form.all("id")]
    if not numbers:
        raise BadParameter("No dead letter was selected.")
    rate = doing.form.text("rate")
    try:
        a_second = None if rate is None else float(rate)
    except ValueError:
        raise BadParameter(f"{rate!r} is not a rate. Write a number of letters a second.", field="rate") from None
    staged = doing.form.text("canary") is not None
    now = await doing.source.now()
    job = doing.jobs.begin(numbers, actor=doing.actor, origin=doing.origin, rate=a_second, staged=staged, now=now)
    return ActionResult(f"Began to replay {job.chosen:,} dead letters{', one first' if staged else ''}.", "/bulk")


async def stop_replay(doing: Doing) -> str:
    return doing.jobs.abort(doing.form.number("job"))


ACTIONS = (Action("/do/dead/bulk", begin_replay), Action("/do/dead/abort", stop_replay))
