"""People: where their mail goes, their time zone, their quiet hours and their digest."""

from __future__ import annotations

import re
from datetime import time
from typing import Any

import msgspec

import penstock as ps
from penstock.channels import check_address, parse_quiet, parse_time
from penstock_systems.reminders.app import db, now_ms, settings
from penstock_systems.reminders.keys import make_token, master_key
from penstock_systems.reminders.schedule import check_zone

_ID = re.compile(r"[\w.@+-]{1,100}", re.ASCII)


class Person(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a client sets of a person. A field that is left out keeps its value; null removes it."""

    email: str | msgspec.UnsetType | None = msgspec.UNSET
    zone: str | msgspec.UnsetType = msgspec.UNSET
    quiet_from: str | msgspec.UnsetType | None = msgspec.UNSET
    quiet_to: str | msgspec.UnsetType | None = msgspec.UNSET
    digest_at: str | msgspec.UnsetType | None = msgspec.UNSET


COLUMNS = ("email", "zone", "quiet_from", "quiet_to", "digest_at")
FIND = "select id, email, zone, quiet_from, quiet_to, digest_at, token_epoch from people where id = :id"
SAVE = """
insert into people (id, email, zone, quiet_from, quiet_to, digest_at, created_at, updated_at)
values (:id, :email, :zone, :quiet_from, :quiet_to, :digest_at, :now, :now)
on conflict (id) do update set email = excluded.email, zone = excluded.zone, quiet_from = excluded.quiet_from,
  quiet_to = excluded.quiet_to, digest_at = excluded.digest_at, updated_at = excluded.updated_at
"""


REVOKE = "update people set token_epoch = token_epoch + 1, updated_at = :now where id = :id"


def check_user(id: str) -> str:
    """Return the id of a person, or raise BadParameter."""
    if not _ID.fullmatch(id):
        raise ps.errors.BadParameter(
            f"user cannot be {id[:100]!r}. Write up to 100 letters, digits and . _ @ + -, such as ann.", field="user"
        )
    return id


async def find_person(id: str) -> Any:
    return await db.first(FIND, id=id)


async def set_person(id: str, given: Person) -> dict[str, Any]:
    """Create or change a person in the current unit, and return the person."""
    check_user(id)
    found = await find_person(id)
    known = {"zone": settings.zone} if found is None else {name: found[name] for name in COLUMNS}
    person = dict.fromkeys(COLUMNS) | known | msgspec.structs.asdict(given)
    person = {name: known.get(name) if value is msgspec.UNSET else value for name, value in person.items()}
    if person["email"]:
        check_address(str(person["email"]))
    check_zone(str(person["zone"]))
    parse_quiet(_text(person["quiet_from"]), _text(person["quiet_to"]), str(person["zone"]))
    digest_time(_text(person["digest_at"]))
    db.write(SAVE, person | {"id": id, "now": now_ms()})
    return {"id": id, **person}


def digest_time(text: str | None) -> time | None:
    return parse_time(text, "digest_at") if text else None


def _text(value: object) -> str | None:
    return None if value is None else str(value)


async def show_person(id: str) -> dict[str, Any]:
    """A person, with the address of the calendar feed."""
    found = await _known(id)
    return {"id": id, **{name: found[name] for name in COLUMNS}, "calendar": await _calendar(id, found.token_epoch)}


async def revoke_calendar(id: str) -> dict[str, Any]:
    """Give a person's calendar feed a new address; the old one ends."""
    found = await _known(id)
    db.write(REVOKE, id=id, now=now_ms())
    return {"id": id, "calendar": await _calendar(id, found.token_epoch + 1)}


async def _known(id: str) -> Any:
    found = await find_person(id)
    if found is None:
        raise ps.HttpError(404, f"There is no person {id[:100]!r}. Create one with PUT.", name="not_found")
    return found


async def _calendar(id: str, epoch: int) -> str:
    return f"{settings.public_url}/calendar/{make_token(await master_key(), 'calendar', id, str(epoch))}.ics"
