"""What is sent: the mail with its links, the body of a webhook, the lines of a chat."""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec

from penstock.channels import Notice, join_notices
from penstock_systems.reminders.app import WEBHOOK, db, mail_channels, now_ms, settings
from penstock_systems.reminders.keys import address_hash, link_expiry, make_token
from penstock_systems.reminders.schedule import due_at

KIND = "reminder.due"
ITEMS = """
select title, body, kept_at
from digest_items
where digest_id = :id
order by kept_at, notification_id
limit 1000
"""
PAGE = """\
<!doctype html><html><body style="font-family:sans-serif;max-width:36em;margin:1em auto;color:#222">\
<h1 style="font-size:1.3em">{title}</h1><p style="white-space:pre-line">{body}</p>\
<p style="color:#666;font-size:.85em">{links}</p></body></html>"""


async def make_notice(row: Any, channel: str, master: bytes, address: str) -> Notice:
    """The notice of a fire for one channel. It is the same for every attempt, as providers that honour keys ask for."""
    title, body = row.title, row.body
    if row.is_digest:
        items = await db.rows(ITEMS, id=row.id)
        joined = join_notices([Notice(each.title, each.body) for each in items] or [Notice(title, body)])
        title, body = joined.title, joined.text
    id, _, fire = (row.replay_of or f"{row.id}.{row.fire_seq}").rpartition(".")
    at = due_at(row) * 1000
    if channel == WEBHOOK:
        names = msgspec.json.decode(row.channels, type=list[str])
        data = {"reminder": id, "fire": int(fire), "user": row.user_id, "channels": names}
        data |= {"due_at": due_at(row), "fired_at": now_ms()}
        return Notice(title, body, kind=KIND, data=data, at=at)
    if channel not in mail_channels:
        return Notice(title, body, to=row.chat_to or "", kind=KIND, at=at)
    links = make_links(row, master, address)
    headers = {"Reminder": f"{id} {fire}"}
    if "Unsubscribe" in links:
        headers["List-Unsubscribe"] = f"<{links['Unsubscribe']}>"
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    text = "\n\n".join(filter(None, [body or title, "\n".join(f"{name}: {url}" for name, url in links.items())]))
    shown = " &middot; ".join(f'<a href="{escape(url)}">{name}</a>' for name, url in links.items())
    html = PAGE.format(title=escape(title), body=escape(body), links=shown)
    return Notice(title, text, to=address, html=html, kind=KIND, at=at, headers=headers)


def make_links(row: Any, master: bytes, address: str) -> dict[str, str]:
    """The links of a mail, or none if the settings name no public address."""
    if not settings.public_url:
        return {}
    base = settings.public_url.rstrip("/")
    links = {}
    if not row.is_digest:
        subject = (row.id, str(row.fire_seq), link_expiry(due_at(row)))
        if row.nag_every_ms:
            links["Done"] = f"{base}/a/{make_token(master, 'ack', *subject)}"
        links["Snooze for an hour"] = f"{base}/s/{make_token(master, 'snooze', *subject)}?for=1h"
    links["Unsubscribe"] = f"{base}/u/{make_token(master, 'unsubscribe', address_hash(address))}"
    return links
