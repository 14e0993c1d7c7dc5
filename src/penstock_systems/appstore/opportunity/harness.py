"""The harness: decides which markets are looked into, and never lets more than three be looked into at once.

What waits is a row of `research_tasks`; what it decided and how it ended is in `harness_cycles` and `harness_processor_log`.
A cycle lasts from the first task that is started until none runs and none waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import penstock as ps
from penstock_systems.appstore.app import DesignDone, app, db, events
from penstock_systems.appstore.moments import after, day_of
from penstock_systems.appstore.opportunity.choosing import PERIOD_DAYS, Candidate, is_news, task_id, worthwhile

PARALLEL = 3
WORKFLOW = "batch-research"
LOOK_SECONDS = 900.0  # how often it looks whether what it started still runs
MARKETS_MAX = 1_000  # that are looked through, the best ones
WAITING_MAX = 100

CANDIDATES = db.hot(
    """
select id, lineage_id, opportunity_score
from market_clusters
where ended_at is null
and franchise is null
and opportunity_score >= 0
order by opportunity_score desc, id
limit :most
"""
)
# A market that could not be looked into is tried again on another day.
LATELY = db.hot(
    """
select score, due_at
from research_tasks
where subject = :subject
and kind = 'opportunity'
and due_at > :since
and (status <> 'failed' or id = :id)
order by due_at desc
limit 1
"""
)
WAITING = db.hot(
    """
select id, cluster_id, score, due_at
from research_tasks
where status = 'waiting'
and kind = 'opportunity'
order by score desc, due_at, id
limit :most
"""
)
ADD = """
insert into research_tasks (id, kind, subject, cluster_id, status, score, due_at, updated_at)
values (:id, 'opportunity', :subject, :cluster_id, 'waiting', :score, :now, :now)
on conflict (id) do nothing
"""
STATUS = "update research_tasks set status = :status, updated_at = :now where id = :id"
BEGIN_CYCLE = """
insert into harness_cycles (id, status, wanted, started, started_at)
values (:id, 'running', 0, 0, :now)
on conflict (id) do nothing
"""
COUNT = "update harness_cycles set wanted = wanted + :wanted, started = started + :started where id = :id"
END_CYCLE = "update harness_cycles set status = 'done', finished_at = :now where id = :id"
NOTE = """
insert into harness_processor_log (id, cycle_id, processor, subject, result, created_at)
values (:id, :cycle_id, :processor, :subject, :result, :now)
on conflict (id) do nothing
"""


class Task(NamedTuple):
    """What waits, in the order in which it is started."""

    rank: float
    due_at: str
    id: str
    cluster_id: int


class OpportunityHarness(ps.Object, singleton=True):
    """`running` are the tasks under way. There is one harness, so nothing is decided twice at the same time."""

    running: list[str] = []  # noqa: RUF012 (an object's state: each has its own)
    cycle: str = ""
    cycles: int = 0

    async def consider(self, cluster_ids: list[int]) -> int:
        """Puts those of these markets on the list that are worth it, and starts as many as may run. Says how many are new."""
        now = await db.now()
        fresh = await _fresh(cluster_ids, now)
        for candidate, task in fresh:
            subject, score = str(candidate.lineage_id), candidate.score
            db.write(ADD, id=task.id, subject=subject, cluster_id=task.cluster_id, score=score, now=now)
        tasks = [task for _, task in fresh]
        self._go_on([*await _waiting(), *tasks], wanted=len(tasks), now=now)
        return len(tasks)

    async def finished(self, id: str, result: str) -> None:
        """A run has ended; what it found is saved already."""
        now = await db.now()
        if id in self.running:
            self.running.remove(id)
            self._note(id, result, now)
        self._go_on(await _waiting(), now=now)

    async def alarm(self) -> None:
        """Goes on. Somebody may have ended a run by hand, or its code may have failed in a way that it could not tell."""
        now = await db.now()
        for id in list(self.running):
            state = (await app.workflows[WORKFLOW][id].status()).state
            if state in ("errored", "terminated"):
                self.running.remove(id)
                self._note(id, state, now)
                db.write(STATUS, id=id, status="failed", now=now)
        self._go_on(await _waiting(), now=now)

    def _go_on(self, waiting: Iterable[Task], *, now: str, wanted: int = 0) -> None:
        """Starts what waits, the best first, as far as there is room."""
        ranked = sorted(waiting)
        starting = ranked[: PARALLEL - len(self.running)]
        if ranked and not self.cycle:
            self.cycles += 1
            self.cycle = f"cycle-{self.cycles:06}"
            db.write(BEGIN_CYCLE, id=self.cycle, now=now)
        if wanted or starting:
            db.write(COUNT, id=self.cycle, wanted=wanted, started=len(starting))
        for task in starting:
            app.workflows[WORKFLOW][task.id].start(task.id, task.cluster_id)
            db.write(STATUS, id=task.id, status="running", now=now)
            self.running.append(task.id)
            self._note(task.id, "started", now)
        if self.running:
            self.set_alarm(after=LOOK_SECONDS)
        elif self.cycle:
            db.write(END_CYCLE, id=self.cycle, now=now)
            self.cycle = ""
            self.clear_alarm()

    def _note(self, id: str, result: str, now: str) -> None:
        db.write(NOTE, id=f"{id} {result}", cycle_id=self.cycle, processor=WORKFLOW, subject=id, result=result, now=now)


harnesses = app.object(OpportunityHarness, tag="v2")


@events.handler(DesignDone)
async def design_done(event: DesignDone) -> None:
    harnesses["main"].tell.consider(event.cluster_ids)


async def _fresh(cluster_ids: Sequence[int], now: str) -> list[tuple[Candidate, Task]]:
    """Those worth looking into that nobody has looked into lately."""
    asked = set(cluster_ids)
    rows = await db.rows(CANDIDATES, most=MARKETS_MAX)
    chosen = worthwhile(Candidate(*row) for row in rows if row.id in asked)
    since = after(now, days=-PERIOD_DAYS)
    fresh = []
    for each in chosen:
        id = task_id(each, day_of(now))
        last = await db.first(LATELY, subject=str(each.lineage_id), id=id, since=since)
        if last is None or is_news(each.score, last.score or 0.0, same_day=last.due_at[:10] == day_of(now)):
            fresh.append((each, Task(-each.score, now, id, each.cluster_id)))
    return fresh


async def _waiting() -> list[Task]:
    rows = await db.rows(WAITING, most=WAITING_MAX)
    return [Task(-(row.score or 0.0), row.due_at, row.id, row.cluster_id) for row in rows]
