"""The workflow `batch-research`: what is known of one market, weighed, argued about, and written down.

Each step is done once, whatever dies meanwhile; a step that asks a model is one question. Where the budget of a day or a
month is spent the run sleeps until the next one begins; where its own is spent it ends, and its task says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar, TypeVarTuple

import penstock as ps
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.opportunity import agents, storing
from penstock_systems.appstore.opportunity.advice import playbook, tips
from penstock_systems.appstore.opportunity.agents import Claim, Heard
from penstock_systems.appstore.opportunity.case import case_of
from penstock_systems.appstore.opportunity.facts import MarketFacts
from penstock_systems.appstore.opportunity.gathering import gathered
from penstock_systems.appstore.opportunity.methods import MethodScore, method_scores
from penstock_systems.appstore.opportunity.references import Reference, references
from penstock_systems.appstore.opportunity.storing import Argued, Research, Result

NAME = "batch-research"
PARALLEL = 3
WAITS_MAX = 40  # for a budget to begin anew: more than a month of days

METHODS = "select id, name from marketing_methods order by id limit 100"

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@app.workflow(name=NAME, parallel=PARALLEL)
async def batch_research(run: ps.Run, task_id: str, cluster_id: int) -> Result:
    """How it ended: done, failed or budget_exceeded."""
    try:
        return await _research(run, task_id, cluster_id)
    except ps.BudgetSpent:
        ending: Result = "budget_exceeded"
    except ps.StepFailed:
        ending = "failed"
    await run.step("end", storing.end, task_id, ending)
    return ending


async def _research(run: ps.Run, task_id: str, cluster_id: int) -> Result:
    facts = await run.step("load", load, cluster_id)
    if facts is None:
        await run.step("end", storing.end, task_id, "failed")
        return "failed"
    apps = await run.step("gather reference apps", gather, facts)
    heard: list[Heard | None] = []
    for agent in agents.AGENTS:
        heard.append(await _paid(run, f"hear {agent}", listen, agent, task_id, facts, claimed(heard)))
    argued = await _paid(run, "judge", rule, task_id, facts, heard)
    methods = await run.step("score methods", score_methods, facts)
    told = await run.step("tips", advise, facts)
    plan = await run.step("playbook", plan_ahead, facts, argued, methods, told)
    await run.step("store", storing.store, Research(task_id, facts, apps, argued, methods, told, plan))
    return "done"


async def _paid(run: ps.Run, name: str, function: Callable[[*Ts], Awaitable[T]], *arguments: *Ts) -> T:
    """A step that may have to wait for money."""
    for waits in range(WAITS_MAX):
        try:
            return await run.step(name if not waits else f"{name}, paid the {waits + 1}. time", function, *arguments)
        except ps.BudgetSpent as spent:
            if spent.until is None or waits + 1 == WAITS_MAX:
                raise
            await run.sleep_until(spent.until)
    raise AssertionError("the last wait raises")


# -- the steps ------------------------------------------------------------------------------------------------


async def load(cluster_id: int) -> MarketFacts | None:
    return await gathered(cluster_id, await db.now())


async def gather(facts: MarketFacts) -> list[Reference]:
    return references(facts)


async def listen(agent: str, run: str, facts: MarketFacts, said: list[Claim]) -> Heard | None:
    """One question to a model. None where there is none, or it does not answer."""
    return await agents.hear(agent, facts, said, run=run)


def claimed(heard: Iterable[Heard | None]) -> list[Claim]:
    """All that was said and borne by the evidence, in order."""
    return [claim for each in heard if each is not None for claim in each.claims]


async def rule(run: str, facts: MarketFacts, heard: list[Heard | None]) -> Argued:
    """The judge decides from the claims that the evidence bears; where none is left, from the figures."""
    case = case_of(facts)
    spoken = [each for each in heard if each is not None]
    claims = claimed(heard) or agents.offline_claims(case)
    ruling = await agents.judge(facts, case, claims, run=run)
    made_by = dict.fromkeys([*(each.made_by for each in spoken if each.claims), ruling.made_by])
    return Argued(
        verdict=ruling.verdict,
        score=facts.score,
        reason=ruling.reason,
        claims=claims,
        struck=sum(each.struck for each in spoken),
        made_by=" and ".join(made_by),
        case=case,
    )


async def score_methods(facts: MarketFacts) -> list[MethodScore]:
    return method_scores(facts)


async def advise(facts: MarketFacts) -> list[str]:
    return tips(facts)


async def plan_ahead(facts: MarketFacts, argued: Argued, methods: list[MethodScore], told: list[str]) -> str:
    names = {row.id: row.name for row in await db.rows(METHODS)}
    return playbook(facts, argued.verdict, methods, names, told)
