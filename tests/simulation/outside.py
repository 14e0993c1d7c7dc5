"""Those outside: operators who pause, tune, empty queues and deal with dead letters, and clients who pull messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.model.errors import NoSuchLetter, StoreUnavailable
from penstock.queues.external import PulledMessage
from penstock.queues.letters import DeadLetterFilter
from tests.simulation.model import Crew, Pull
from tests.simulation.plan import ActPlan
from tests.simulation.workers import Job, SimulatedApp

if TYPE_CHECKING:
    from tests.simulation.world import Post, World

TENDED_SECONDS = 0.5  # how often somebody looks after what waits for a person, once all is calm


class Outside:
    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance("outside")
        self._requests = 0
        self._acting: list[asyncio.Task[None]] = []
        self._tended: dict[str, Crew] = {}  # by whom
        self.told = 0  # dead letters that operators were told are dealt with
        self.unheard = 0  # answers that nobody heard

    def act(self, act: ActPlan) -> None:
        post = self._world.posts[act.worker]
        if post.crew.serving and not post.crew.process.dead:
            self._acting.append(post.crew.process.start(self._do(post, post.crew, act)))

    async def _do(self, post: Post, crew: Crew, act: ActPlan) -> None:
        app, world = post.app, self._world
        assert app is not None
        queue = world.plan.queues[act.queue].name
        world.note(f"{crew.name} is to {act.kind} {queue}")
        try:
            if act.kind == "pull":
                await self._pull(app, queue, act)
            elif act.kind in ("replay", "discard", "edit"):
                await self._deal(app, queue, act)
            else:
                await self._operate(app, crew, queue, act)
        except (StoreUnavailable, AssertionError) as error:
            # A worker that stops does not wait for those outside.
            if not crew.stopping:
                world.break_(f"{act.kind} of {queue} failed: {type(error).__name__}: {error}")

    # -- operators ----------------------------------------------------------------------------------------

    async def _operate(self, app: SimulatedApp, crew: Crew, queue: str, act: ActPlan) -> None:
        desk = await app.desk()
        match act.kind:
            case "pause":
                await desk.pause(queue)
                await asyncio.sleep(act.seconds)
                await desk.resume(queue)
            case "resume":
                await desk.resume(queue)
            case "tune":
                await desk.tune(queue, parallel=act.parallel, rate=act.rate)
            case "purge" if self._world.law.queue(queue).retention is None:
                crew.purging[queue] += 1
                await desk.purge(queue)
                crew.purging[queue] -= 1

    async def _deal(self, app: SimulatedApp, queue: str, act: ActPlan) -> None:
        which, told = DeadLetterFilter(queue=queue), 0
        self.unheard += 1
        match act.kind:
            case "replay":
                told = await app.dead.replay(which, limit=act.limit, rate=self._chance.choice((None, 2.0)))
            case "discard":
                told = await app.dead.discard(which, "as planned", limit=act.limit)
            case "edit":
                for letter in await app.dead.list(which, limit=act.limit):
                    job = app.dead.payload(letter)
                    try:
                        await app.dead.edit(letter.id, Job(key=job.key, depth=job.depth, edited=job.edited + 1))
                    except NoSuchLetter:
                        continue  # somebody else was quicker
        self.told += told
        self.unheard -= 1

    # -- clients ------------------------------------------------------------------------------------------

    async def _pull(self, app: SimulatedApp, queue: str, act: ActPlan) -> None:
        world, law = self._world, self._world.law
        desk = await app.desk()
        self._requests += 1
        request = f"request {self._requests}" if self._chance.random() < 0.5 else None
        lease = law.queue(queue).pull_lease
        pulled = await desk.pull(queue, limit=act.limit, lease_seconds=lease, request_id=request)
        if request is not None and pulled and self._chance.random() < 0.5:
            again = await desk.pull(queue, limit=act.limit, lease_seconds=lease, request_id=request)
            held = all(self._pull_of(each).lapses_at > world.now() for each in pulled) and not world.plan.jumps
            if held and {each.lease_id for each in again} != {each.lease_id for each in pulled}:
                world.break_(f"{request} was repeated and got other leases")
        if len(pulled) > act.limit:
            world.break_(f"{len(pulled)} of {queue} were pulled, and {act.limit} wanted")
        if pulled and self._chance.random() < 0.7:  # or the client has died
            await asyncio.sleep(self._chance.choice((0.0, 0.5, lease - 0.1, lease + 1.0)))
            await self._settle(app, queue, pulled)

    async def _settle(self, app: SimulatedApp, queue: str, pulled: Sequence[PulledMessage]) -> None:
        desk = await app.desk()
        acks, retries = list[str](), list[tuple[str, float | None]]()
        asked: dict[str, Pull] = {}
        for each in pulled:
            pull = asked[each.lease_id] = self._pull_of(each)
            drawn = "ack" if self._world.calm else self._chance.choice(("ack", "ack", "retry", ""))
            pull.asked, pull.seconds = drawn, self._chance.choice((None, 0.0, 1.0))
            if drawn == "ack":
                acks.append(each.lease_id)
            elif drawn:
                retries.append((each.lease_id, pull.seconds))
        answer = await desk.settle(queue, acks=acks, retries=retries)
        for lease, pull in asked.items():
            settled = pull.ended == "ack" if pull.asked == "ack" else pull.ended in ("retry", "dead")
            if pull.asked and lease not in answer.warnings and not settled:
                self._world.break_(f"somebody outside was told of {pull.row.key} that it is settled: {pull.ended}")

    def _pull_of(self, pulled: PulledMessage) -> Pull:
        seq, _, token = pulled.lease_id.partition(".")
        return self._world.law.pulls[(int(seq), int(token))]

    # -- in the end ---------------------------------------------------------------------------------------

    def tend(self) -> None:
        """Once all is calm: nothing stays paused, and what nobody here handles is pulled."""
        world = self._world
        for number, queue in enumerate(world.plan.queues):
            wanted = {"resume": world.law.counts.rules[queue.name].paused, "pull": queue.pulled}
            for kind, needed in wanted.items():
                post = next((post for post in world.posts if post.crew.serving and not post.crew.process.dead), None)
                tending = self._tended.get(f"{kind} {queue.name}")
                if needed and post is not None and (tending is None or tending.process.dead):
                    self._tended[f"{kind} {queue.name}"] = post.crew
                    self._acting.append(post.crew.process.start(self._tend(post, kind, number)))
        world.at(world.now() + TENDED_SECONDS, self.tend)

    async def _tend(self, post: Post, kind: str, number: int) -> None:
        queue = self._world.plan.queues[number].name
        try:
            if kind == "resume":
                await self._do(post, post.crew, ActPlan(0.0, kind, post.number, number))
            else:
                assert post.app is not None
                desk = await post.app.desk()
                lease = self._world.law.queue(queue).pull_lease
                pulled = await desk.pull(queue, limit=10, lease_seconds=lease)
                if pulled:
                    await self._settle(post.app, queue, pulled)
        except (StoreUnavailable, AssertionError) as error:
            if not post.crew.stopping:
                self._world.break_(f"{kind} of {queue} failed: {type(error).__name__}: {error}")
        finally:
            self._tended.pop(f"{kind} {queue}", None)
