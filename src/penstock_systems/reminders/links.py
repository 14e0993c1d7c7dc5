"""What the links in a mail lead to, the calendar feed, and the reports of Resend. A token stands for the bearer token.

Opening a link changes nothing: programs that check mails open all of them. Only the button of the page does, or the
one-click request of RFC 8058.
"""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec

import penstock as ps
from penstock.channels import read_mail_event, read_secret, verify
from penstock_systems.reminders import operations
from penstock_systems.reminders.app import app, environment_secret, web
from penstock_systems.reminders.calendar_feed import make_calendar
from penstock_systems.reminders.keys import RESEND_SECRET, address_hash, check_expiry, master_key, read_token
from penstock_systems.reminders.suppressions import note_arrival, suppress

PAGE = """\
<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>{title}</title></head>
<body style="font-family:sans-serif;max-width:30em;margin:3em auto;padding:0 1em;color:#222">
<h1 style="font-size:1.4em">{title}</h1>{content}</body></html>"""
FORM = '<p>{text}</p><form method="post"><button style="font-size:1.1em;padding:.5em 1.2em">{button}</button></form>'


@app.get("/u/{token}", auth=None)
async def show_unsubscribe(token: str) -> ps.Reply:
    read_token(await master_key(), "unsubscribe", token)
    return form("Unsubscribe", "Send no more reminders to this address?", "Unsubscribe")


@app.post("/u/{token}", auth=None)
async def unsubscribe(token: str, body: bytes) -> ps.Reply:
    (hash,) = read_token(await master_key(), "unsubscribe", token)
    suppress([hash], "unsubscribed")
    return page("You are unsubscribed", "<p>This address gets no more reminders.</p>")


@app.get("/a/{token}", auth=None)
async def show_acknowledge(token: str) -> ps.Reply:
    await _subject("ack", token)
    return form("Done?", "Stop repeating this reminder.", "Done")


@app.post("/a/{token}", auth=None)
async def acknowledge(token: str, body: bytes) -> ps.Reply:
    await operations.acknowledge(await _subject("ack", token))
    return page("Done", "<p>This reminder is not repeated.</p>")


@app.get("/s/{token}", auth=None)
async def show_snooze(token: str, request: ps.Request) -> ps.Reply:
    await _subject("snooze", token)
    return form("Snooze", f"Send this reminder again in {_span(request)}.", "Snooze")


@app.post("/s/{token}", auth=None)
async def snooze(token: str, body: bytes, request: ps.Request) -> ps.Reply:
    span = _span(request)
    await operations.snooze(await _subject("snooze", token), span)
    return page("Snoozed", f"<p>This reminder is sent again in {escape(span)}.</p>")


@app.get("/calendar/{token}.ics", auth=None)
async def calendar(token: str) -> ps.Reply:
    person, epoch = read_token(await master_key(), "calendar", token)
    return ps.Reply(await make_calendar(person, epoch), content_type="text/calendar; charset=utf-8")


@app.post("/inbound/resend", auth=None)
async def resend_report(body: bytes, request: ps.Request) -> dict[str, Any]:
    """Bounces and complaints become suppressions; a report of a mail of unknown outcome settles it."""
    secret = environment_secret(RESEND_SECRET)
    if not secret:
        raise ps.HttpError(
            404, f"Set {RESEND_SECRET} to the secret that Resend shows for its webhook.", name="not_found"
        )
    id = verify([read_secret(secret, shown=RESEND_SECRET)], request.headers, body, now=web.clock.now(), prefix="svix")
    try:
        event = read_mail_event(msgspec.json.decode(body))
    except msgspec.DecodeError as error:
        raise ps.HttpError(400, f"The body is not JSON: {error}.", name="bad_json") from error
    async with app.unit(key=f"resend {id}") as unit:
        if not unit.repeated:
            suppress([address_hash(each) for each in event.addresses], event.reason)
            if event.key and event.has_arrived:
                note_arrival(event.key, event.provider_id)
    return {"type": event.kind, "suppressed": len(event.addresses)}


async def _subject(purpose: Any, token: str) -> str:
    id, _, expires = read_token(await master_key(), purpose, token)
    check_expiry(expires)
    return id


def _span(request: ps.Request) -> str:
    return (request.query.get("for") or ["1h"])[0][:20]


def form(title: str, text: str, button: str) -> ps.Reply:
    return page(title, FORM.format(text=escape(text), button=escape(button)))


def page(title: str, content: str) -> ps.Reply:
    html = PAGE.format(title=escape(title), content=content)
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return ps.Reply(html, content_type="text/html; charset=utf-8", headers=headers)
