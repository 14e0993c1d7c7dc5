"""Mail by SMTP, which knows no keys: without an answer after the text was sent, the outcome is unknown."""

from __future__ import annotations

from dataclasses import replace
from email.utils import parseaddr
from typing import Literal

from penstock.channels.channel import Channel, Flight, Notice, Outcome
from penstock.channels.mail import check_address, check_sender, compose
from penstock.contracts.clock import Clock
from penstock.model.errors import BadConfig
from penstock.model.times import from_micros

PORTS = {"starttls": 587, "tls": 465, "none": 25}


class Smtp(Channel):
    """`Smtp("smtp.example.org", sender="Reminders <r@example.org>", user="r", clock=web.clock)`; its password is in
    SMTP_PASSWORD. Needs the extra `systems`."""

    name = "email"

    def __init__(
        self,
        host: str,
        *,
        sender: str,
        clock: Clock,
        to: str = "",
        port: int = 0,
        user: str = "",
        tls: Literal["starttls", "tls", "none"] = "starttls",
        secret_env: str = "SMTP_PASSWORD",
    ) -> None:
        try:
            import aiosmtplib
        except ImportError as error:
            raise BadConfig("Mail by SMTP needs aiosmtplib: pip install 'penstock[systems]'.") from error
        self._library = aiosmtplib
        self._host, self._port, self._tls = host, port or PORTS[tls], tls
        self._sender, self._to, self._clock, self._user = check_sender(sender), to, clock, user
        self.secret_env = secret_env if user else ""

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        library, sender, at = self._library, self._sender, from_micros(self._clock.now())
        mail = compose(replace(notice, to=check_address(notice.to or self._to)), key, sender, at)
        client = library.SMTP(
            hostname=self._host,
            port=self._port,
            use_tls=self._tls == "tls",
            start_tls=self._tls == "starttls",
            username=self._user or None,
            password=self.secret or None,
            timeout=self.seconds,
        )
        try:
            await client.connect()
            await client.mail(parseaddr(sender)[1])
            await client.rcpt(str(mail["To"]))
            flight.leave()
            flight.answer = Outcome("sent", provider_id=(await client.data(mail.as_bytes())).message[:200])
            await client.quit()
        except library.SMTPResponseException as error:
            return flight.answer or self._refused(error.code, error.message)
        except (library.SMTPException, OSError) as error:
            return flight.lost(self.shown(f"{self._host}: {type(error).__name__}: {error}"))
        finally:
            client.close()
        return flight.answer

    def _refused(self, code: int, message: str) -> Outcome:
        """An answer, so nothing is unknown: 4xx asks for another attempt, 5xx for none."""
        return Outcome("failed", self.shown(f"{self._host} answered {code}. {message}"), is_permanent=code >= 500)
