"""What a run of `batch-research` found, into the tables in one commit, and the end of its task with it."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock_systems.appstore.app import db
from penstock_systems.appstore.opportunity.asking import Written, given
from penstock_systems.appstore.opportunity.debate import Message, Verdict
from penstock_systems.appstore.opportunity.facts import MarketFacts
from penstock_systems.appstore.opportunity.harness import harnesses
from penstock_systems.appstore.opportunity.methods import MethodScore
from penstock_systems.appstore.opportunity.opinions import Opinion
from penstock_systems.appstore.opportunity.references import Reference

Result = Literal["done", "failed", "budget_exceeded"]

END = "update research_tasks set status = :status, updated_at = :now where id = :id"


class Argued(msgspec.Struct, frozen=True):
    """What was decided, and what was said about it."""

    verdict: Verdict
    score: float
    reason: str
    messages: list[Message]
    made_by: str


class Research(msgspec.Struct, frozen=True):
    """All that a run found. `id` is its task's, and the evaluation's."""

    id: str
    facts: MarketFacts
    apps: list[Reference]
    opinions: list[Opinion]
    argued: Argued
    methods: list[MethodScore]
    tips: Written
    playbook: Written

    @property
    def made_by(self) -> str:
        return " and ".join(dict.fromkeys((self.argued.made_by, self.tips.made_by, self.playbook.made_by)))


async def store(research: Research) -> None:
    """Joins the step's unit. Done twice it leaves the same rows."""
    now = await db.now()
    id, facts = research.id, research.facts
    evaluation = {
        "id": id,
        "cluster_id": facts.cluster_id,
        "lineage_id": facts.lineage_id,
        "name": facts.name,
        "verdict": research.argued.verdict,
        "score": research.argued.score,
        "reason": research.argued.reason,
        "facts": db.json(given(facts) | {"opinions": msgspec.to_builtins(research.opinions)}),
        "made_by": research.made_by,
        "run_id": id,
        "created_at": now,
    }
    db.upsert("opportunity_evaluations", evaluation, key="id", keep=["created_at"])
    db.insert_many(
        "opportunity_reference_apps",
        [{"evaluation_id": id, "track_id": each.app.track_id, "role": each.role} for each in research.apps],
    )
    db.insert_many(
        "opportunity_method_scores", [{"evaluation_id": id, **msgspec.to_builtins(each)} for each in research.methods]
    )
    _debate(research, now)
    db.insert_many(
        "market_tips",
        [
            {"id": f"{id} {name}", "cluster_id": facts.cluster_id, "evaluation_id": id, "text": text, "created_at": now}
            for name, text in research.tips.texts.items()
        ],
    )
    plan = {"id": f"{id} playbook", "evaluation_id": id, "body": research.playbook.texts["plan"], "created_at": now}
    db.insert_many("marketing_playbooks", [plan])
    await end(id, "done")


def _debate(research: Research, now: str) -> None:
    report = f"{research.id} debate"
    said = research.argued.messages
    row = {
        "id": report,
        "evaluation_id": research.id,
        "transcript": "\n\n".join(f"{each.agent.capitalize()}: {each.text}" for each in said),
        "summary": said[-1].text,
        "created_at": now,
    }
    db.insert_many("debate_reports", [row])
    db.insert_many(
        "debate_messages",
        [
            {"report_id": report, "seq": number, "agent": each.agent, "text": each.text}
            for number, each in enumerate(said, 1)
        ],
    )


async def end(id: str, status: Result) -> None:
    """Joins the step's unit: the task is over, and its place is free for the next one."""
    db.write(END, id=id, status=status, now=await db.now())
    harnesses["main"].tell.finished(id, status)
