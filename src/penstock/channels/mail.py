"""A mail: addresses that hold nothing but an address, and headers that hold one line."""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import format_datetime, formataddr, parseaddr
from typing import TYPE_CHECKING

from penstock.channels.channel import Notice, one_line
from penstock.model.errors import BadConfig, BadParameter

if TYPE_CHECKING:
    from email.message import EmailMessage

ADDRESS_CHARACTERS_MAX = 254
_ADDRESS = re.compile(
    r"[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_][\w-]{1,62}"
)


def check_address(text: str) -> str:
    """Return an address of one mailbox, or raise BadParameter. Whether it exists is the provider's to say."""
    if len(text) > ADDRESS_CHARACTERS_MAX or not _ADDRESS.fullmatch(text):
        raise BadParameter(
            f"{one_line(text)[:100]!r} is no mail address. Write one, such as ann@example.org.", field="email"
        )
    return text


def check_sender(text: str) -> str:
    """Return a sender such as `Reminders <r@example.org>`, or raise BadConfig."""
    name, address = parseaddr(text)
    if one_line(text) != text or not _ADDRESS.fullmatch(address):
        raise BadConfig(
            f"{one_line(text)!r} cannot send mail. Write `Reminders <r@example.org>`.", value=one_line(text)
        )
    return formataddr((name, address))


def message_id(key: str, sender: str) -> str:
    """Return the Message-ID of every attempt: a mailbox can drop the second copy of one it has."""
    return f"<{re.sub(r'[^A-Za-z0-9._-]', '-', key)}@{parseaddr(sender)[1].rpartition('@')[2]}>"


def compose(notice: Notice, key: str, sender: str, at: datetime) -> EmailMessage:
    """Return the mail for SMTP."""
    from email.message import EmailMessage  # only where mail is sent: they take a while to load
    from email.policy import SMTP

    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"], mail["Subject"] = sender, notice.to, notice.subject
    mail["Date"], mail["Message-ID"] = format_datetime(at), message_id(key, sender)
    for name, value in notice.headers.items():
        mail[name] = one_line(value)
    mail.set_content(notice.text)
    if notice.html is not None:
        mail.add_alternative(notice.html, subtype="html")
    return mail
