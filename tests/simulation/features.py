"""What a seed adds to its plain world: batches, copies, pulls, rates, bounds, operators. Nothing happens here."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.simulation.plan import FAULTS_END, ActPlan, Plan, QueuePlan, SendPlan, plan

PLAIN = 0.3  # of all worlds stay as they are, so that nothing new hides what is old
PLAIN_IN_PEACE = 0.8  # of those where every wake-up counts
TEDIOUS = 0.15  # of those with faults have handlers that take so long that a suspect waits for its turn, leased anew
TEDIOUS_WALL, TEDIOUS_SLOWNESS = 24.0, 25.0
PULL_LEASES = (2.0, 5.0)
ACTS = {"pause": 4, "tune": 4, "replay": 6, "discard": 3, "edit": 2, "purge": 1}
RACES = {"replay", "discard", "edit"}


def planned(seed: int) -> Plan:
    """The whole plan of a seed. What is added is drawn from a source of its own: the rest stays as it was."""
    rich = _enriched(seed)
    if rich.peaceful or rich.jumps or rich.stalls or Random(f"{seed}/tedious").random() >= TEDIOUS:
        return rich
    longer = TEDIOUS_WALL - max(queue.wall for queue in rich.queues)
    return replace(
        rich,
        slowness=TEDIOUS_SLOWNESS,
        queues=tuple(replace(queue, wall=TEDIOUS_WALL) for queue in rich.queues),
        faults=tuple(
            replace(fault, seconds=fault.seconds + longer) if fault.seconds > 30 else fault for fault in rich.faults
        ),
    )


def _enriched(seed: int) -> Plan:
    plain = plan(seed)
    chance = Random(f"{seed}/features")
    if chance.random() < (PLAIN_IN_PEACE if plain.peaceful else PLAIN):
        return plain
    queues = tuple(_queue(chance, plain, number) for number in range(len(plain.queues)))
    behaviours = plain.behaviours | ({"said": 4} if chance.random() < 0.5 and not plain.peaceful else {})
    richer = replace(
        plain,
        queues=queues,
        behaviours=behaviours,
        sends=plain.sends + _keyed(chance, plain) + _bursts(chance, plain, queues),
    )
    if plain.peaceful:
        return richer
    batched = any(queue.batch > 1 for queue in queues)
    return replace(richer, acts=_acts(chance, richer), stalls=batched and not plain.jumps and chance.random() < 0.5)


def _queue(chance: Random, plain: Plan, number: int) -> QueuePlan:
    """Where clocks jump there is neither rate nor retention: both go by the clock on the wall."""
    queue = plain.queues[number]
    kind = chance.choice(("plain", "plain", "batch", "batch", "pair", "pulled"))
    if kind == "batch":
        wait = 0.0 if plain.peaceful else chance.choice((0.0, 0.3, 2.0))
        queue = replace(queue, batch=chance.randint(2, 4), wait=wait)
    elif kind == "pair":
        queue = replace(queue, handlers=2)
    elif kind == "pulled" and number > 0 and not plain.peaceful:
        queue = replace(queue, pulled=True, pull_lease=chance.choice(PULL_LEASES))
    wanted = [chance.random() < 0.2 for _ in range(3)]
    rate, most = chance.choice((1.0, 2.0, 5.0, 20.0)), chance.randint(8, 10)  # no unit alone sends more than 8
    retention = chance.uniform(2.0, 8.0)
    if plain.peaceful:
        return queue
    return replace(
        queue,
        rate=rate if wanted[0] and not plain.jumps else None,
        messages_max=most if wanted[1] else None,
        retention=retention if wanted[2] and not plain.jumps else None,
    )


def _keyed(chance: Random, plain: Plan) -> tuple[SendPlan, ...]:
    """The same keyed messages from several producers, and from one again after a while."""
    if chance.random() < 0.5 or plain.peaceful:
        return ()
    sends = []
    for number in range(chance.randint(1, 3)):
        queue, at = chance.randrange(len(plain.queues)), chance.uniform(0.0, FAULTS_END / 2)
        for _ in range(chance.randint(2, 4)):
            worker = chance.randrange(plain.workers)
            slow = chance.choice((0.0, 0.0, chance.uniform(0.1, 2.0)))
            spoilt = chance.random() < 0.15
            sends.append(SendPlan(at, worker, ((queue, 0.0),), spoilt, False, slow, f"u{number}"))
            at += chance.choice((0.0, 0.01, chance.uniform(0.1, 4.0)))
    return tuple(sends)


def _bursts(chance: Random, plain: Plan, queues: tuple[QueuePlan, ...]) -> tuple[SendPlan, ...]:
    """More than a queue with a bound can hold."""
    bounded = [number for number, queue in enumerate(queues) if queue.messages_max is not None]
    return tuple(
        SendPlan(chance.uniform(0.0, 2.0), chance.randrange(plain.workers), ((number, 0.0),) * 5, False, False)
        for number in bounded
        for _ in range(2)
    )


def _acts(chance: Random, rich: Plan) -> tuple[ActPlan, ...]:
    kinds = {kind: weight for kind, weight in ACTS.items() if chance.random() < 0.6}
    acts = []
    for kind in chance.choices(list(kinds), list(kinds.values()), k=chance.randint(0, 8)) if kinds else ():
        act = _act(chance, kind, rich)
        acts.append(act)
        if kind in RACES and chance.random() < 0.5:
            other = chance.choice(("replay", "discard"))
            late = chance.choice((0.0, 0.01, chance.uniform(0.0, 0.5)))
            acts.append(replace(act, at=act.at + late, kind=other, worker=chance.randrange(rich.workers)))
    for number, queue in enumerate(rich.queues):
        if queue.pulled:
            acts += [_pull(chance, number, rich) for _ in range(chance.randint(4, 10))]
    return tuple(sorted(acts, key=lambda act: act.at))


def _act(chance: Random, kind: str, rich: Plan) -> ActPlan:
    number = chance.randrange(len(rich.queues))
    # Letters are there to be dealt with only once something has died.
    at = chance.uniform(3.0, FAULTS_END) if kind in RACES else chance.uniform(0.0, FAULTS_END)
    return ActPlan(
        at,
        kind,
        chance.randrange(rich.workers),
        number,
        seconds=chance.uniform(0.1, 4.0),
        parallel=chance.choice((None, 1, 2, 4)),
        rate=None if rich.jumps else chance.choice((None, 0.0, 1.0, 2.0, 5.0)),
        limit=chance.choice((1, 3, 10)),
    )


def _pull(chance: Random, number: int, rich: Plan) -> ActPlan:
    at, worker = chance.uniform(0.0, FAULTS_END), chance.randrange(rich.workers)
    return ActPlan(at, "pull", worker, number, limit=chance.choice((1, 2, 5)))
