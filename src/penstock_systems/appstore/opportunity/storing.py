"""What a run of `batch-research` found, into the tables in one commit, and the end of its task with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from penstock_systems.appstore.app import db
from penstock_systems.appstore.opportunity.agents import Claim
from penstock_systems.appstore.opportunity.case import Case, Verdict
from penstock_systems.appstore.opportunity.facts import MarketFacts
from penstock_systems.appstore.opportunity.harness import harnesses
from penstock_systems.appstore.opportunity.methods import MethodScore
from penstock_systems.appstore.opportunity.references import Reference

Result = Literal["done", "failed", "budget_exceeded"]

END = "update research_tasks set status = :status, updated_at = :now where id = :id"


class Argued(msgspec.Struct, frozen=True):
    """What was decided, what was said about it, and the case of the figures."""

    verdict: Verdict
    score: float
    reason: str
    claims: list[Claim]
    struck: int  # claims that the evidence did not bear
    made_by: str
    case: Case


class Research(msgspec.Struct, frozen=True):
    """All that a run found. `id` is its task's, and the evaluation's."""

    id: str
    facts: MarketFacts
    apps: list[Reference]
    argued: Argued
    methods: list[MethodScore]
    tips: list[str]
    playbook: str


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
        "facts": db.json({**msgspec.to_builtins(facts), **msgspec.to_builtins(research.argued.case)}),
        "made_by": research.argued.made_by,
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
            {
                "id": f"{id} tip {number}",
                "cluster_id": facts.cluster_id,
                "evaluation_id": id,
                "text": text,
                "created_at": now,
            }
            for number, text in enumerate(research.tips, 1)
        ],
    )
    plan = {"id": f"{id} playbook", "evaluation_id": id, "body": research.playbook, "created_at": now}
    db.insert_many("marketing_playbooks", [plan])
    await end(id, "done")


def _debate(research: Research, now: str) -> None:
    report = f"{research.id} debate"
    argued = research.argued
    said = [*argued.claims, Claim("judge", argued.reason, ())]
    row = {
        "id": report,
        "evaluation_id": research.id,
        "transcript": "\n\n".join(f"{each.agent.capitalize()}: {_cited(each, said)}" for each in said),
        "summary": argued.reason,
        "created_at": now,
    }
    db.insert_many("debate_reports", [row])
    db.insert_many(
        "debate_messages",
        [
            {"report_id": report, "seq": number, "agent": each.agent, "text": _cited(each, said)}
            for number, each in enumerate(said, 1)
        ],
    )


def _cited(claim: Claim, said: Sequence[Claim]) -> str:
    against = "" if claim.disputes is None else f"Against “{said[claim.disputes - 1].text}”: "
    return f"{against}{claim.text} [{', '.join(claim.rows)}]" if claim.rows else claim.text


async def end(id: str, status: Result) -> None:
    """Joins the step's unit: the task is over, and its place is free for the next one."""
    db.write(END, id=id, status=status, now=await db.now())
    harnesses["main"].tell.finished(id, status)
