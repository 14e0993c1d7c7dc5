"""A real SMTP server that counts, refuses some receivers, and hangs up after it has taken a mail."""

from __future__ import annotations

import asyncio
import email
from collections.abc import Callable
from dataclasses import dataclass
from email.policy import default
from random import Random
from typing import Any

from penstock_systems.standins.notifications.arrivals import Arrivals


@dataclass(frozen=True, slots=True)
class SmtpFaults:
    """Each in this share of the mails; receivers whose address begins with `refused` or `full` are refused."""

    lost: float = 0.0  # taken, and the connection closed before the answer
    failed: float = 0.0  # refused for now, after the text
    hung: float = 0.0  # taken, and never answered


class Mailboxes:
    """The handler of aiosmtpd."""

    def __init__(self, arrivals: Arrivals, now: Callable[[], float], seed: int, faults: SmtpFaults) -> None:
        self.arrivals, self.faults = arrivals, faults
        self._now = now
        self._random = Random(f"smtp {seed} {len(arrivals.all)}")

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        if address.startswith("refused"):
            return "550 5.1.1 No such mailbox"
        if address.startswith("full"):
            return "452 4.2.2 Mailbox full"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        drawn, faults = self._random.random(), self.faults
        if drawn < faults.failed:
            return "451 4.3.0 Try again later"
        mail = email.message_from_bytes(envelope.content, policy=default)
        facts = {"id": mail["Message-ID"], "subject": mail["Subject"], "about": mail["Reminder"]}
        for address in envelope.rcpt_tos:
            self.arrivals.add("smtp", at=self._now(), to=address, **facts)
        if drawn < faults.failed + faults.lost:
            server.transport.abort()
        elif drawn < faults.failed + faults.lost + faults.hung:
            await asyncio.sleep(3_600)
        return "250 2.0.0 Taken"


async def serve_smtp(
    arrivals: Arrivals, now: Callable[[], float], *, seed: int = 1, faults: SmtpFaults | None = None, port: int = 0
) -> asyncio.Server:
    """Listen on loopback; the port is that of the server's first socket. Needs aiosmtpd, of the development tools."""
    from aiosmtpd.smtp import SMTP

    boxes = Mailboxes(arrivals, now, seed, faults or SmtpFaults())
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: SMTP(boxes, enable_SMTPUTF8=True, hostname="localhost", loop=loop), "127.0.0.1", port
    )
