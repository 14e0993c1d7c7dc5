"""Producers: each sends its order in one unit of work, and hears that it is saved, or that it is not, or nothing at all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import penstock as ps
from penstock.model.errors import StoreUnavailable
from penstock.model.ids import from_text
from tests.simulation.model import Crew, Order
from tests.simulation.plan import SendPlan
from tests.simulation.script import EFFECT, refused
from tests.simulation.workers import Job

if TYPE_CHECKING:
    from tests.simulation.world import Post, World

AGAIN_SECONDS = 0.5  # until a client that has heard no answer asks somebody else


class Producers:
    def __init__(self, world: World) -> None:
        self._world = world
        self._orders = 0

    def produce(self, send: SendPlan) -> None:
        post = self._world.posts[send.worker]
        if post.crew.serving and not post.crew.process.dead:
            post.orders.append(post.crew.process.start(self._order_in(post, post.crew, send)))

    async def _order_in(self, post: Post, crew: Crew, send: SendPlan) -> None:
        world, law, app = self._world, self._world.law, post.app
        assert app is not None
        self._orders += 1
        number = world.plan.sends.index(send) if not send.unique else 0
        keys = [send.unique] if send.unique else [f"p{number}.{index}" for index in range(len(send.jobs))]
        order = Order(f"order {self._orders}".encode(), [], keys, keyed=bool(send.unique))
        law.orders[order.name] = order
        post.producing += 1
        crew.process.when_killed.append(lambda: self._gave_up(post, order, send))
        try:
            async with app.unit() as unit:
                for key, (queue, delay) in zip(order.keys, send.jobs, strict=True):
                    sent = app.by_number[queue].send(Job(key=key), delay=delay, unique=send.unique or None)
                    order.ids.append(from_text(sent))
                    law.wanted.setdefault(order.ids[-1], []).append(order)
                if send.slow:
                    await asyncio.sleep(send.slow)
                if send.doubled:
                    unit.add(unit.sends()[0])
                app.db.write(EFFECT, id=order.name, handler="", token=0, kind="producer")
                if send.spoilt:
                    app.db.write("insert into no_such_table (id) values (1)")
        except ps.PenstockError as error:
            closed = crew.stopping and isinstance(error, StoreUnavailable)
            bounded = any(world.plan.queues[queue].messages_max is not None for queue, _ in send.jobs)
            full = isinstance(error, ps.QueueFull) and bounded
            if not closed and not full and not (send.spoilt and refused(error)):
                world.break_(f"order {order.keys} failed: {type(error).__name__}: {error}")
            order.fate = "refused"
        else:
            order.fate = "confirmed"
            order.duplicate = order.ids[0] in unit.answer.duplicates
            if any(id not in law.by_id for id in order.ids):
                world.break_(f"order {order.keys} was confirmed and is not there")
        world.note(f"{crew.name} heard that {order.keys} is {order.fate}")
        post.producing -= 1

    def _gave_up(self, post: Post, order: Order, send: SendPlan) -> None:
        if order.fate != "unknown":
            return
        order.fate = "killed"
        post.producing -= 1
        if send.unique:
            other = replace(send, worker=(send.worker + 1) % len(self._world.posts), slow=0.0)
            self._world.at(self._world.now() + AGAIN_SECONDS, self.produce, other)
