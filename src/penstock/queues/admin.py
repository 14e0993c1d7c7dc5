"""Administrative operations on queues by name, for HTTP and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.contracts.audit import Audit
from penstock.contracts.ledger import ClaimRequest, NotCommitted
from penstock.contracts.operations import Backlog, Lease, Operations, Tuning
from penstock.model.envelope import CONTENT_TYPES, Encoded, Typed, content_type
from penstock.model.errors import BadLease, BadMessage, BadParameter, LeaseLost, NoSuchQueue, StoreUnavailable
from penstock.model.ids import as_text
from penstock.model.limits import near
from penstock.model.message import Delivery, NewMessage
from penstock.model.outcome import DONE, RetryRequested, settle
from penstock.model.queue import QueueSettings
from penstock.queues.external import AckResult, Outgoing, PeekedMessage, PulledMessage, PushRequest, PushResult
from penstock.queues.queue import Queue
from penstock.runtime.audit import audit, record
from penstock.runtime.engine import Engine
from penstock.runtime.unit import AwaitedUnit, open_unit

if TYPE_CHECKING:
    from penstock.app import App

PURGED_AT_ONCE = 1_000
PULLED_MAX = 1_000


class QueueAdmin:
    def __init__(self, home: App, engine: Engine, queues: dict[str, Queue[Any]]) -> None:
        self._home = home
        self.engine = engine
        self._declared = queues
        self._known: dict[str, Queue[Any]] = {}

    # -- in -----------------------------------------------------------------------------------------------

    async def push(
        self, queue: str, requests: Sequence[PushRequest], *, delay_seconds: float | None = None, source: str = "http"
    ) -> PushResult:
        """Sends all of them in one commit, or none."""
        target = await self._queue(queue)
        messages = [self._outgoing(target, request, index) for index, request in enumerate(requests)]
        async with open_unit(self.engine, None) as unit:
            ids = target.send_batch(messages, delay=delay_seconds or 0.0)
            unit.effects = [
                each._replace(source=source) if isinstance(each, NewMessage) else each for each in unit.effects
            ]
            if source == "cli":
                record(unit, audit(self.engine, "queues send", "queue", queue, ids=ids))
        self.engine.faults.at("send.after_commit")
        return PushResult(ids, len(unit.answer.duplicates))

    def _outgoing(self, queue: Queue[Any], request: PushRequest, index: int) -> Outgoing[Any]:
        """The payload of a request: an envelope's, or its body itself where the queue leaves no doubt about its type."""
        if request.content_type not in CONTENT_TYPES:
            raise BadMessage(
                f"messages[{index}].content_type is {request.content_type!r}; it can be {', '.join(sorted(CONTENT_TYPES))}.",
                field="content_type",
            )
        payload, id, correlation = request.body, request.id, None
        if request.content_type == "v8":
            payload = Typed(request.body)
        elif request.content_type in ("text", "bytes") and not isinstance(payload, str | bytes):
            raise self._refused(queue, index, f"needs {request.content_type} where that is declared")
        elif request.content_type == "json":
            payload, id, correlation = self._payload(queue, request, index)
        elif queue.accepts is not None and request.content_type not in queue.accepts:
            raise self._refused(queue, index, f"takes no {request.content_type}")
        return Outgoing(
            payload=payload,
            delay=request.delay_seconds,
            priority=request.priority,
            id=id,
            unique=request.unique,
            correlation=correlation,
        )

    def _payload(self, queue: Queue[Any], request: PushRequest, index: int) -> tuple[object, str | None, str | None]:
        body, id, named, correlation = request.body, request.id, None, None
        if isinstance(body, dict) and "type" in body and "payload" in body:
            named, id, correlation = body["type"], id or body.get("event_id"), body.get("correlation_id")
            if not isinstance(named, str) or not all(isinstance(each, str | None) for each in (id, correlation)):
                raise self._refused(queue, index, "needs `type`, `event_id` and `correlation_id` to be text")
            if named in CONTENT_TYPES - {"json"}:
                raise self._refused(queue, index, f"takes no envelope around {named}: give it as content_type")
            body = body["payload"]
        if queue.accepts is None:
            return Encoded(named or "json", msgspec.json.encode(body)), id, correlation
        if named is None and len(queue.accepts) == 1:
            (named,) = queue.accepts
        if named not in queue.accepts:
            problem = "needs an envelope with `type` and `payload`" if named is None else f"does not accept {named!r}"
            raise self._refused(queue, index, problem)
        try:
            return msgspec.convert(body, queue.accepts[named], strict=True), id, correlation
        except msgspec.ValidationError as error:
            raise BadMessage(f"messages[{index}].body is no {named}: {error}. Nothing was sent.", type=named) from error

    def _refused(self, queue: Queue[Any], index: int, why: str) -> BadMessage:
        return BadMessage(
            f"messages[{index}]: queue {queue.name!r} {why}; it accepts {', '.join(queue.accepts or ['anything'])}. Nothing "
            "was sent.",
            field="body",
        )

    # -- out ------------------------------------------------------------------------------------------------

    async def pull(
        self, queue: str, *, limit: int, lease_seconds: float, request_id: str | None = None
    ) -> list[PulledMessage]:
        """Lease at most `limit` messages to a client outside. The same `request_id` again gives the same leases."""
        await self._queue(queue)
        engine = self.engine
        lease_micros = int(lease_seconds * 1_000_000)
        lapsing = engine.may_sweep_outside()
        most = min(limit, PULLED_MAX)
        asked_for = ClaimRequest(queue, most, lease_micros, pull=True, lapsing=lapsing, request=request_id)
        try:
            claimed = await engine.scheduler.pull(asked_for)
        except NotCommitted as error:
            raise StoreUnavailable(f"The database failed, and nothing was leased: {error}") from error
        engine.faults.at("pull.after_commit")
        return [_pulled(delivery) for delivery in claimed]

    async def settle(
        self, queue: str, *, acks: Sequence[str], retries: Sequence[tuple[str, float | None]]
    ) -> AckResult:
        """Acknowledge some leases and release others. `warnings` names the leases that have lapsed."""
        target = await self._queue(queue)
        wanted: dict[str, object] = dict.fromkeys(acks)
        wanted |= {lease: RetryRequested(delay) for lease, delay in retries if lease not in wanted}
        by_lease = {text: _lease(text) for text in wanted}
        found = await self.engine.in_writer(self._operations.leased, list(by_lease.values()))
        held = {Lease(delivery.seq, delivery.token): delivery for delivery in found if delivery.queue == queue}
        units: dict[str, AwaitedUnit] = {}
        for text, outcome in wanted.items():
            delivery = held.get(by_lease[text])
            if delivery is not None:
                units[text] = self._put(target, delivery, outcome)
        warnings = {text: _LAPSED for text in wanted if text not in units}
        acked = retried = 0
        for text, unit in units.items():
            try:
                await unit.settled()
            except LeaseLost:
                warnings[text] = _LAPSED
            else:
                acked, retried = acked + (wanted[text] is None), retried + (wanted[text] is not None)
        return AckResult(acked, retried, warnings)

    def _put(self, queue: Queue[Any], delivery: Delivery, outcome: object) -> AwaitedUnit:
        unit = AwaitedUnit(self.engine, delivery, f"{queue.name}:pull", "")
        unit.closed = True
        retry = queue.settings.retry
        settlement = DONE if outcome is None else settle(outcome, attempt=delivery.attempt, retry=retry)
        unit.settle(settlement)
        self.engine.scheduler.put(unit)
        return unit

    async def peek(self, queue: str, *, limit: int) -> list[PeekedMessage]:
        """The next messages that wait. Nothing is claimed."""
        await self._queue(queue)
        found = await self.engine.in_writer(self._operations.peek, queue, limit=min(limit, PULLED_MAX))
        return [PeekedMessage(as_text(each.id), each.attempts, *_content(each), due) for due, each in found]

    # -- what an operator does ------------------------------------------------------------------------------

    async def purge(self, queue: str) -> int:
        """Removes everything that waits; what is under way is left to end. Says how many."""
        await self._queue(queue)
        removed, noted = 0, audit(self.engine, "queues purge", "queue", queue, purged="all that waited")
        while portion := await self._purge(noted, queue, PURGED_AT_ONCE):
            removed += portion
        return removed

    async def purge_one(self, queue: str, id: bytes) -> bool:
        """Removes one message. False if it does not wait there: it is done, under way, or was never sent."""
        await self._queue(queue)
        noted = audit(self.engine, "queues purge", "queue", queue, purged=as_text(id))
        return bool(await self._purge(noted, queue, 1, id))

    async def _purge(self, noted: Audit | None, queue: str, limit: int, id: bytes | None = None) -> int:
        purge = partial(self._operations.purge, queue, limit=limit, now=self.engine.clock.now(), id=id)
        purged: int = await self.engine.in_writer(self.engine.writer.audited, noted, purge)
        return purged

    async def pause(self, queue: str) -> None:
        await self._set_paused(queue, "pause", paused=True)

    async def resume(self, queue: str) -> None:
        await self._set_paused(queue, "resume", paused=False)

    async def _set_paused(self, queue: str, verb: str, *, paused: bool) -> None:
        await self._queue(queue)
        noted = audit(self.engine, f"queues {verb}", "queue", queue)
        await self.engine.operate(partial(self._operations.pause, queue, paused=paused), noted, {queue})

    async def tune(self, queue: str, *, parallel: int | None, rate: float | None) -> None:
        """Sets how many handlers run at once and how many may start in a second, in all workers, at once. None leaves it to
        the app; a rate of 0 is no limit."""
        if parallel is not None and not 1 <= parallel <= self._home.limits.concurrency_max:
            raise BadMessage(f"parallel is {parallel}; it can be 1 to {self._home.limits.concurrency_max:,}.")
        if rate is not None and not 0 <= rate < 1e9:
            raise BadMessage(f"rate is {rate}; it can be 0 (no limit) or more.")
        await self._queue(queue)
        noted = audit(self.engine, "queues tune", "queue", queue)
        await self.engine.operate(partial(self._operations.tune, queue, Tuning(parallel, rate)), noted, {queue})

    async def backlog(self, queue: str) -> Backlog:
        await self._queue(queue)
        return await self.engine.in_writer(self._operations.backlog, queue)

    @property
    def _operations(self) -> Operations:
        return self.engine.writer.operations

    # -- queues by name ---------------------------------------------------------------------------------------

    async def _queue(self, name: str) -> Queue[Any]:
        if name in self._declared:
            return self._declared[name]
        if name not in self._known:
            known = await self.engine.in_writer(self._operations.queues)
            if name not in known:
                there = sorted({*self._declared, *known})
                raise NoSuchQueue(no_such_queue(name, there), queue=name)
            self._known[name] = Queue(self._home, QueueSettings(name, retry=self._home.limits.retry))
        return self._known[name]


def no_such_queue(name: str, there: Sequence[str]) -> str:
    problem = f"There is no queue {name[:100]!r}. {near(name, there)}"
    origin = name.removesuffix("-dlq")
    if origin != name and origin in there:
        problem += f" The dead letters of {origin} are in no queue: `penstock dead list --queue {origin}` shows them."
    return problem


_LAPSED = "this lease has expired or was settled before"


def _lease(text: str) -> Lease:
    seq, _, token = text.partition(".")
    if not (text.isascii() and seq.isdecimal() and token.isdecimal() and max(len(seq), len(token)) < 19):
        raise BadLease(
            f"{text[:100]!r} is not the id of a lease: it looks like 12.345 and comes with a pulled message."
        )
    return Lease(int(seq), int(token))


def _pulled(delivery: Delivery) -> PulledMessage:
    lease_id = f"{delivery.seq}.{delivery.token}"
    return PulledMessage(as_text(delivery.id), lease_id, delivery.attempt, *_content(delivery))


def _content(delivery: Delivery) -> tuple[bytes, str, str, int]:
    return delivery.body, content_type(delivery.type), delivery.type, delivery.sent_at


def parallel_of(text: str | None) -> int | None:
    """Return the number of handlers that an operator wants; None: as the app declares."""
    if text in (None, "auto"):
        return None
    if not (text or "").isdecimal() or len(text or "") > 6:
        raise BadParameter(f"{text!r} is not a number of handlers. Write a number, or auto.", field="parallel")
    return int(text or 0)


def rate_of(text: str | None) -> float | None:
    """Return the starts a second that an operator wants; 0: no limit, None: as the app declares."""
    if text in (None, "auto", "none"):
        return 0.0 if text == "none" else None
    try:
        return float(text or "")
    except ValueError:
        raise BadParameter(f"{text!r} is not a rate. Write a number, none or auto.", field="rate") from None
