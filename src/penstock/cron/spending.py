"""What tasks have used this month, against their ceilings. Over it a task is skipped, once told, until the next month."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.model.ceiling import Ceiling
from penstock.model.prices import Usage, metered
from penstock.model.times import month_of
from penstock.runtime.events import CeilingReached

if TYPE_CHECKING:
    from penstock.cron.task import CronTask
    from penstock.runtime.engine import Engine

USED = """
select kind, sum(executions) as executions, sum(rows_read) as rows_read, sum(rows_written) as rows_written,
  sum(micros) as micros
from (
  select case when statement like 'penstock:%' then statement else '' end as kind, executions, rows_read,
    rows_written, micros
  from penstock_usage
  where month = :month
) as used
group by kind
"""
USED_BY_TASK = """
select case when statement like 'penstock:%' then statement else '' end as kind, sum(executions) as executions,
  sum(rows_read) as rows_read, sum(rows_written) as rows_written, sum(micros) as micros
from penstock_usage
where month = :month
and task = :task
group by 1
"""
KINDS_MAX = 100
SKIPPED = """
select finished_at
from penstock_ticks
where schedule = :task
and status = 'ceiling'
order by due desc
limit 1
"""


class Spending:
    def __init__(self, system: Sequence[Ceiling]) -> None:
        self._system = system

    async def reached(self, engine: Engine, task: CronTask) -> str | None:
        """Why the task may not run, if it may not."""
        if task.ceiling is not None and (words := task.ceiling.reached(await self._used(engine, task.metered_as))):
            return words
        everything = await self._used(engine, None) if self._system else Usage()
        reached = (ceiling.reached(everything) for ceiling in self._system)
        return next((f"{words}, the whole app" for words in reached if words), None)

    async def _used(self, engine: Engine, task: str | None) -> Usage:
        """What is saved, and what is still in memory."""
        await engine.meter.flush()
        bound: dict[str, Any] = {"month": month_of(engine.clock.now())}
        sql, bound = (USED, bound) if task is None else (USED_BY_TASK, bound | {"task": task})
        return metered((await engine.read("", sql, bound, rows_max=KINDS_MAX)).values)

    async def tell_once(self, engine: Engine, event: CeilingReached) -> None:
        """Once a task and month, in whatever process: the run log knows whether it was skipped before."""
        now = engine.clock.now()
        found = await engine.read("", SKIPPED, {"task": event.task}, rows_max=1)
        if not any(month_of(at) == month_of(now) for (at,) in found.values):
            engine.events.emit(event)
