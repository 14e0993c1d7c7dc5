"""The coordinator keeps what machines report, alerts of all services among them, for a person to read."""

from __future__ import annotations

from typing import Annotated

import msgspec

import penstock as ps
from penstock_systems.brand.app import app, brain, eyes, hands, mouth, wishes
from penstock_systems.brand.messages import ReportFiled

KEPT_DAYS = 90
REPORTS = brain.db.hot("select machine, agent, text, created_at from sm_reports order by created_at desc limit :most")


class Coordinator(ps.Object, singleton=True):
    reports: int = 0

    async def send(self, id: str, machine: str, agent: str, text: str) -> None:
        """Keep a report. The same id is kept once."""
        self.reports += 1
        row = {"id": id, "machine": machine, "agent": agent, "text": text, "created_at": await brain.db.now()}
        brain.db.upsert("sm_reports", row, key="id")


coordinators = brain.object(Coordinator, tag="v2")


async def report_alert(alert: ps.Alert) -> None:
    """Send an alert of any service to the coordinator."""
    wishes.send(ReportFiled(machine="penstock", agent="alerts", text=f"{alert.subject}\n{alert.text}"))


for _service in (brain, eyes, mouth, hands) if app.is_apart else (app,):
    _service.on_alert(report_alert)


@wishes.handler(ReportFiled)
async def keep_report(report: ReportFiled, message: ps.Message[ReportFiled]) -> None:
    await coordinators["main"].send(message.id, report.machine, report.agent, report.text)


@brain.cron("40 5 * * *", name="reports.retention", reason="a person reads a report within weeks", when=None)
async def prune_reports() -> None:
    await brain.db.prune("sm_reports", column="created_at", older_than=f"{KEPT_DAYS}d")


@brain.post("/v1/coordinator/send", auth=ps.ServiceKey(), status=202)
async def send(report: ReportFiled) -> str:
    return wishes.send(report)


@brain.get("/v1/coordinator/reports")
async def reports(most: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50) -> list[dict[str, object]]:
    return [row.asdict() for row in await brain.db.rows(REPORTS, most=most)]
