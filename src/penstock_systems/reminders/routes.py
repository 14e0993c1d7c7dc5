"""The HTTP API: `/v1/reminders`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

import penstock as ps
from penstock_systems.reminders import endpoints_admin, listing, operations, people, reminders, suppressions
from penstock_systems.reminders.app import app, settings
from penstock_systems.reminders.calendar_import import import_calendar
from penstock_systems.reminders.listing import PAGE, State

Most = Annotated[int, msgspec.Meta(ge=1, le=500)]


class Previewed(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"except_dates": "except"}):
    """A schedule to be shown."""

    rule: dict[str, str] | None = None
    at: str | None = None
    zone: str | None = None
    until: str | None = None
    count: int | None = None
    except_dates: tuple[str, ...] = ()


class Snoozed(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"for_": "for"}):
    for_: str


class Requeued(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    cause: str


class NewEndpoint(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    url: str
    user: str = "me"
    secret_ref: str | None = None


@app.post("/v1/reminders", status=201)
async def create(given: reminders.NewReminder, request: ps.Request) -> dict[str, Any]:
    if given.key is None:
        given.key = request.headers.get("idempotency-key")
    return await reminders.create(given)


@app.get("/v1/reminders")
async def list_(
    state: State = "pending", user: str | None = None, cursor: str = "", limit: Most = PAGE
) -> dict[str, Any]:
    if user is not None:
        return await listing.list_user(user, cursor=cursor, most=limit)
    return await listing.list_state(state, cursor=cursor, most=limit)


@app.get("/v1/reminders/counts")
async def counts() -> dict[str, int]:
    return await listing.count()


@app.get("/v1/reminders/causes")
async def causes() -> list[dict[str, Any]]:
    return await listing.list_causes()


@app.post("/v1/reminders/requeue")
async def requeue_cause(given: Requeued) -> dict[str, Any]:
    return await operations.requeue_cause(given.cause)


@app.post("/v1/reminders/preview")
async def preview(given: Previewed) -> list[dict[str, str]]:
    zone = given.zone or settings.zone
    return reminders.preview(given.rule, given.at, zone, given.until, given.count, given.except_dates)


@app.post("/v1/reminders/import.ics")
async def import_ics(body: bytes, user: str = "me") -> dict[str, Any]:
    return await import_calendar(body, user)


@app.get("/v1/reminders/{id}")
async def show(id: str) -> dict[str, Any]:
    return await reminders.show(id)


@app.patch("/v1/reminders/{id}")
async def change(id: str, given: reminders.Change) -> dict[str, Any]:
    return await reminders.change(id, given)


@app.delete("/v1/reminders/{id}")
async def cancel(id: str) -> dict[str, Any]:
    return await reminders.cancel(id)


@app.get("/v1/reminders/{id}/deliveries")
async def deliveries(id: str, limit: Most = 100) -> list[dict[str, Any]]:
    return await listing.list_deliveries(id, limit)


@app.get("/v1/reminders/{id}/why")
async def why(id: str) -> str:
    return await listing.why(id)


@app.post("/v1/reminders/{id}/requeue")
async def requeue(id: str) -> dict[str, Any]:
    return await operations.requeue(id)


@app.post("/v1/reminders/{id}/snooze")
async def snooze(id: str, given: Snoozed) -> dict[str, Any]:
    return await operations.snooze(id, given.for_)


@app.post("/v1/reminders/{id}/ack")
async def acknowledge(id: str) -> dict[str, Any]:
    return await operations.acknowledge(id)


@app.post("/v1/reminders/{id}/fire")
async def fire(id: str) -> dict[str, Any]:
    return await operations.fire(id)


@app.post("/v1/reminders/{id}/deliveries/{fire}/{channel}")
async def resolve(id: str, fire: int, channel: str, status: Literal["sent", "given_up"]) -> dict[str, Any]:
    return await operations.resolve(id, fire, channel, status)


# -- people and endpoints ---------------------------------------------------------------------------------------------


@app.put("/v1/reminders/people/{id}")
async def set_person(id: str, given: people.Person) -> dict[str, Any]:
    return await people.set_person(id, given)


@app.get("/v1/reminders/people/{id}")
async def show_person(id: str) -> dict[str, Any]:
    return await people.show_person(id)


@app.post("/v1/reminders/people/{id}/revoke-calendar")
async def revoke_calendar(id: str) -> dict[str, Any]:
    return await people.revoke_calendar(id)


@app.get("/v1/reminders/endpoints")
async def list_endpoints(after: str = "") -> list[dict[str, Any]]:
    return await endpoints_admin.list_endpoints(after)


@app.post("/v1/reminders/endpoints", status=201)
async def add_endpoint(given: NewEndpoint) -> dict[str, Any]:
    return await endpoints_admin.register(given.url, given.user, given.secret_ref)


@app.post("/v1/reminders/endpoints/{id}/test")
async def test_endpoint(id: str) -> dict[str, Any]:
    return await endpoints_admin.test(id)


@app.post("/v1/reminders/endpoints/{id}/enable")
async def enable_endpoint(id: str) -> dict[str, Any]:
    return await endpoints_admin.enable(id)


@app.post("/v1/reminders/endpoints/{id}/rotate")
async def rotate_endpoint(id: str) -> dict[str, Any]:
    return await endpoints_admin.rotate(id)


@app.post("/v1/reminders/endpoints/{id}/replay")
async def replay_endpoint(id: str, since: int = 0) -> dict[str, Any]:
    return await endpoints_admin.replay(id, since)


@app.get("/v1/reminders/suppressions/{address}")
async def show_suppression(address: str) -> dict[str, Any]:
    return await suppressions.show(address)


@app.delete("/v1/reminders/suppressions/{address}")
async def lift_suppression(address: str) -> dict[str, Any]:
    return await suppressions.lift(address)
