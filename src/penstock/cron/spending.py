"""What tasks have used this month, against their ceilings. Over it a task is skipped, once told, until the next month."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.model.ceiling import Ceiling
from penstock.model.prices import RATES
from penstock.model.times import month_of
from penstock.runtime.events import CeilingReached

if TYPE_CHECKING:
    from penstock.cron.task import CronTask
    from penstock.runtime.engine import Engine

USED = """
select coalesce(sum(rows_read), 0) as rows_read, coalesce(sum(rows_written), 0) as rows_written
from penstock_usage
where month = :month
and (:task is null or task = :task)
and statement not like 'penstock:%'
"""


SKIPPED = """
select finished_at
from penstock_ticks
where schedule = :task
and status = 'ceiling'
order by due desc
limit 1
"""


class Spending:
    def __init__(self, system: Ceiling | None) -> None:
        self.system = system

    async def reached(self, engine: Engine, task: CronTask) -> str | None:
        """Why the task may not run, if it may not."""
        for ceiling, whose in ((task.ceiling, f"{task.queue}:{task.name}"), (self.system, None)):
            if ceiling is not None:
                words = ceiling.reached(await self.used(engine, ceiling, whose))
                if words is not None:
                    return words if whose else f"{words}, the whole app"
        return None

    async def used(self, engine: Engine, ceiling: Ceiling, task: str | None) -> float:
        """What is saved, and what is still in memory."""
        await engine.meter.flush()
        bound: dict[str, Any] = {"month": month_of(engine.clock.now()), "task": task}
        found = await engine.read("", USED, bound, rows_max=1)
        read, written = found.values[0]
        if ceiling.unit == "usd":
            return float(read * RATES.rows_read_usd + written * RATES.rows_written_usd) / 1_000_000
        return float(read if ceiling.unit == "rows_read" else written)

    async def tell_once(self, engine: Engine, event: CeilingReached) -> None:
        """Once a task and month, in whatever process: the run log knows whether it was skipped before."""
        now = engine.clock.now()
        found = await engine.read("", SKIPPED, {"task": event.task}, rows_max=1)
        if not any(month_of(at) == month_of(now) for (at,) in found.values):
            engine.events.emit(event)
