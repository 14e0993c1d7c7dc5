"""The workflow `batch-research`: what is known of one market, weighed, argued about, and written down.

Each step is done once, whatever dies meanwhile; a step that asks a model is one question. Where the budget of a day or a
month is spent the run sleeps until the next one begins; where its own is spent it ends, and its task says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import penstock as ps
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.opportunity import asking, storing
from penstock_systems.appstore.opportunity.advice import playbook, tips
from penstock_systems.appstore.opportunity.asking import Written
from penstock_systems.appstore.opportunity.debate import Message, debate, reason
from penstock_systems.appstore.opportunity.facts import MarketFacts
from penstock_systems.appstore.opportunity.gathering import gathered
from penstock_systems.appstore.opportunity.methods import MethodScore, method_scores
from penstock_systems.appstore.opportunity.opinions import Opinion, opinions
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
    said = await run.step("evaluate", evaluate, facts)
    argued = await _paid(run, "debate", argue, task_id, facts, said)
    methods = await run.step("score methods", score_methods, facts)
    told = await _paid(run, "tips", advise, task_id, facts)
    plan = await _paid(run, "playbook", plan_ahead, task_id, facts, argued, methods, told)
    await run.step("store", storing.store, Research(task_id, facts, apps, said, argued, methods, told, plan))
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


async def evaluate(facts: MarketFacts) -> list[Opinion]:
    return opinions(facts)


async def argue(run: str, facts: MarketFacts, said: list[Opinion]) -> Argued:
    """What was decided follows from the figures; who puts it into words may be a model."""
    held = debate(facts, said)
    offline = {"reason": reason(facts, held.verdict, held.score)}
    offline |= {f"{number} {each.agent}": each.text for number, each in enumerate(held.messages, 1)}
    wanted = {key: f"the {key.partition(' ')[2]} speaks" for key in offline if key != "reason"}
    wanted["reason"] = f"one sentence that begins with {held.verdict.capitalize()!r} and gives the figures that decided"
    task = (
        f"An advocate and a sceptic argue whether to build an app for this market; a referee then decides: {held.verdict}, "
        f"with {held.score:.0f} of 100. Write what each says, in the order of the keys."
    )
    words = await asking.written(task, wanted, facts, offline, run=run)
    messages = [Message(key.partition(" ")[2], words.texts[key]) for key in offline if key != "reason"]
    return Argued(held.verdict, held.score, words.texts["reason"], messages, words.made_by)


async def score_methods(facts: MarketFacts) -> list[MethodScore]:
    return method_scores(facts)


async def advise(run: str, facts: MarketFacts) -> Written:
    offline = {f"tip {number}": tip for number, tip in enumerate(tips(facts), 1)}
    wanted = dict.fromkeys(offline, "one or two sentences")
    return await asking.written("Give tips to a developer who builds for this market.", wanted, facts, offline, run=run)


async def plan_ahead(
    run: str, facts: MarketFacts, argued: Argued, methods: list[MethodScore], told: Written
) -> Written:
    names = {row.id: row.name for row in await db.rows(METHODS)}
    offline = {"plan": playbook(facts, argued.verdict, methods, names, list(told.texts.values()))}
    best = ", ".join(names.get(each.method_id, each.method_id) for each in methods[:3])
    task = (
        f"Write a plan for the first quarter. The decision is: {argued.verdict}. What suits this market best: {best}."
    )
    return await asking.written(task, {"plan": "at most 200 words"}, facts, offline, run=run)
