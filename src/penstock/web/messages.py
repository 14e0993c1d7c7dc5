"""Queues over HTTP: push, pull, acknowledge, peek and purge, in the shapes of Cloudflare's API."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal

import msgspec
from starlette.requests import Request

from penstock.app import App
from penstock.model import tagged
from penstock.model.errors import TooLarge
from penstock.model.ids import from_text
from penstock.model.strict_json import BadJson, parse
from penstock.queues.admin import QueueAdmin
from penstock.queues.external import PeekedMessage, PulledMessage, PushRequest, PushResult
from penstock.web.intake import BadField, between, idempotency_key, read_json, request_bytes_max, whole
from penstock.web.reply import Result

PULL_BATCH, PULL_BATCH_MAX = 5, 100
PULL_LEASE_SECONDS = 30.0
REFS_MAX = 100  # as many as one peek gives; each is a commit
LEASES_MAX = 1_000  # of one acknowledgement; each is part of one commit
REQUEST_ID_LENGTH_MAX = 255
SMALL_BYTES_MAX = 1_000_000  # of a request that carries no bodies

ContentType = Literal["json", "text", "bytes", "v8"]
_TEXTUAL = "text"  # the only kind of body that is pulled as it is; all others travel in Base64
NOT_WAITING = "no such message is waiting: it is done, in progress, or was never sent"
STRINGIFIED = "The body was JSON inside a string and was decoded once. Send the value itself, or say content_type text."


class Pushing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    body: Any
    content_type: ContentType = "json"
    delay_seconds: float | None = None
    priority: int = 1
    id: str | None = None


class Bulk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    messages: list[Pushing]
    delay_seconds: float | None = None


class Pulling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    batch_size: float = PULL_BATCH
    visibility_timeout_ms: float | None = None
    visibility_timeout: float | None = None
    request_id: str | None = None


class Peeking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    batch_size: float = PULL_BATCH


class Ack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lease_id: str


class RetryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lease_id: str
    delay_seconds: float | None = None


class Acknowledging(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    acks: list[Ack] = []
    retries: list[RetryRequest] = []


class Ref(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ref: str


class Purging(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    refs: list[Ref] | None = None
    delete_messages_permanently: Literal[True] | None = None


class Messages:
    """The routes under `/queues/{queue}/messages`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def push(self, request: Request) -> Result:
        asked = await read_json(request, Pushing, request_bytes_max(self._app.limits.body_bytes_max))
        return await self._push(request, [asked], None, batch=False)

    async def push_batch(self, request: Request) -> Result:
        limits = self._app.limits
        asked = await read_json(request, Bulk, request_bytes_max(limits.send_bytes_max))
        if not asked.messages:
            raise BadField("messages: it is empty. Send at least one message.", field="messages")
        if len(asked.messages) > limits.send_messages_max:
            raise TooLarge(
                f"The batch has {len(asked.messages):,} messages; the maximum is {limits.send_messages_max:,}.",
                found=len(asked.messages),
                allowed=limits.send_messages_max,
            )
        self._check_delay(asked.delay_seconds, "delay_seconds")
        return await self._push(request, asked.messages, asked.delay_seconds, batch=True)

    async def _push(
        self, request: Request, asked: list[Pushing], delay_seconds: float | None, *, batch: bool
    ) -> Result:
        key = idempotency_key(request)
        remarks: list[str] = []
        parcels = [
            self._parcel(
                each, f"messages[{number}]." if batch else "", None if key is None else f"{key}\n{number}", remarks
            )
            for number, each in enumerate(asked)
        ]
        queue, desk = request.path_params["queue"], await self._app.desk()
        pushed = await desk.push(queue, parcels, delay_seconds=delay_seconds)
        return Result({**_push_answer(pushed), "metadata": {"metrics": await _metrics(desk, queue)}}, remarks)

    def _parcel(self, asked: Pushing, place: str, unique: str | None, remarks: list[str]) -> PushRequest:
        self._check_delay(asked.delay_seconds, f"{place}delay_seconds")
        whole(asked.priority, f"{place}priority", least=0, most=2)
        return PushRequest(
            body=_body(asked, f"{place}body", remarks),
            content_type=asked.content_type,
            delay_seconds=asked.delay_seconds,
            priority=asked.priority,
            id=asked.id,
            unique=None if asked.id is not None else unique,
        )

    def _check_delay(self, delay_seconds: float | None, field: str) -> None:
        if delay_seconds is not None:
            between(delay_seconds, field, most=self._app.limits.delay_seconds_max)

    async def pull(self, request: Request) -> Result:
        asked = await read_json(request, Pulling, SMALL_BYTES_MAX, may_be_empty=True)
        limit = whole(asked.batch_size, "batch_size", least=1, most=PULL_BATCH_MAX)
        queue, desk = request.path_params["queue"], await self._app.desk()
        pulled = await desk.pull(
            queue, limit=limit, lease_seconds=self._lease_seconds(asked), request_id=_request_id(request, asked)
        )
        messages = [_outward(each, lease_id=each.lease_id) for each in pulled]
        metrics = await _metrics(desk, queue)
        count = metrics["backlog_count"]
        return Result({"message_backlog_count": count, "messages": messages, "metadata": {"metrics": metrics}})

    def _lease_seconds(self, asked: Pulling) -> float:
        longest = self._app.limits.pull_lease_seconds_max
        for field in ("visibility_timeout_ms", "visibility_timeout"):
            milliseconds = getattr(asked, field)
            if milliseconds is not None:
                return between(milliseconds, field, least=1, most=longest * 1_000) / 1_000
        return min(PULL_LEASE_SECONDS, longest)

    async def ack(self, request: Request) -> Result:
        asked = await read_json(request, Acknowledging, SMALL_BYTES_MAX)
        if (count := len(asked.acks) + len(asked.retries)) > LEASES_MAX:
            raise BadField(f"acks: {count:,} leases are too many at once; at most {LEASES_MAX:,}.", field="acks")
        for number, retry in enumerate(asked.retries):
            self._check_delay(retry.delay_seconds, f"retries[{number}].delay_seconds")
        desk = await self._app.desk()
        acked = await desk.settle(
            request.path_params["queue"],
            acks=[ack.lease_id for ack in asked.acks],
            retries=[(retry.lease_id, retry.delay_seconds) for retry in asked.retries],
        )
        return Result({"ackCount": acked.acked, "retryCount": acked.retried, "warnings": acked.warnings})

    async def peek(self, request: Request) -> Result:
        asked = await read_json(request, Peeking, SMALL_BYTES_MAX, may_be_empty=True)
        limit = whole(asked.batch_size, "batch_size", least=1, most=PULL_BATCH_MAX)
        desk = await self._app.desk()
        peeked = await desk.peek(request.path_params["queue"], limit=limit)
        return Result({"messages": [_outward(each, ref=each.id) for each in peeked]})

    async def purge(self, request: Request) -> Result:
        asked = await read_json(request, Purging, SMALL_BYTES_MAX, may_be_empty=True)
        queue, desk = request.path_params["queue"], await self._app.desk()
        if asked.refs is None:
            return Result({"purged": await desk.purge(queue), "errors": [], "warnings": {}})
        if not 0 < len(asked.refs) <= REFS_MAX:
            raise BadField(
                f"refs: {len(asked.refs):,} are given; send 1 to {REFS_MAX}. Omit `refs` to purge the whole queue.",
                field="refs",
            )
        ids = {each.ref: _ref(each.ref, number) for number, each in enumerate(asked.refs)}
        gone = {ref: await desk.purge_one(queue, id) for ref, id in ids.items()}
        warnings = {ref: NOT_WAITING for ref, purged in gone.items() if not purged}
        return Result({"purged": sum(gone.values()), "errors": [], "warnings": warnings})


def _body(asked: Pushing, field: str, remarks: list[str]) -> object:
    """Return the body as the queue admin takes it: a JSON value, text, or bytes that came in Base64."""
    body = asked.body
    match asked.content_type:
        case "json":
            return _once_decoded(body, remarks) if isinstance(body, str) else body
        case "text":
            if not isinstance(body, str):
                raise BadField(f"{field}: a body of content_type text is a string.", field=field)
            return body
        case "bytes" | "v8":
            if not isinstance(body, str):
                raise BadField(f"{field}: a body of content_type {asked.content_type} is Base64.", field=field)
            try:
                raw = base64.b64decode(body, validate=True)
            except (binascii.Error, ValueError) as error:
                raise BadField(f"{field}: this is not Base64 ({error}).", field=field) from error
            return tagged.decode(raw) if asked.content_type == "v8" else raw


def _once_decoded(body: str, remarks: list[str]) -> object:
    """Many clients stringify an object before they put it into JSON; a string that is just a string stays one."""
    if body.lstrip()[:1] not in ("{", "["):
        return body
    try:
        value = parse(body.encode())
    except BadJson:
        return body
    if STRINGIFIED not in remarks:
        remarks.append(STRINGIFIED)
    return value


def _push_answer(pushed: PushResult) -> dict[str, Any]:
    return {
        "id": pushed.ids[0],
        "ids": pushed.ids,
        "duplicate": pushed.duplicates == len(pushed.ids),
        "duplicates": pushed.duplicates,
    }


async def _metrics(desk: QueueAdmin, queue: str) -> dict[str, int]:
    backlog = await desk.backlog(queue)
    return {
        "backlog_count": backlog.count,
        "backlog_bytes": backlog.bytes,
        "oldest_message_timestamp_ms": 0 if backlog.oldest_at is None else backlog.oldest_at // 1_000,
    }


def _request_id(request: Request, asked: Pulling) -> str | None:
    if asked.request_id is None:
        return idempotency_key(request)
    if not 0 < len(asked.request_id) <= REQUEST_ID_LENGTH_MAX:
        raise BadField(f"request_id: it has 1 to {REQUEST_ID_LENGTH_MAX} characters.", field="request_id")
    return asked.request_id


def _ref(ref: str, number: int) -> bytes:
    try:
        return from_text(ref)
    except ValueError:
        field = f"refs[{number}].ref"
        raise BadField(f"{field}: {ref[:100]!r} is not a ref. Peek returns refs.", field=field) from None


def _outward(message: PulledMessage | PeekedMessage, **handle: str) -> dict[str, Any]:
    body, content_type = message.body, message.content_type
    return {
        "id": message.id,
        **handle,
        "attempts": message.attempts,
        "body": body.decode("utf-8", "replace") if content_type == _TEXTUAL else base64.b64encode(body).decode(),
        "metadata": {"CF-Content-Type": content_type, "type": message.type},
        "timestamp_ms": message.sent_at // 1_000,
    }
