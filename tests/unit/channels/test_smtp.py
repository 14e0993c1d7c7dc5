"""Mail by SMTP, to a real server on loopback."""

from __future__ import annotations

import asyncio
import email
import smtplib
import socket
from collections.abc import Callable, Coroutine
from email.policy import default
from typing import Any

import pytest

import penstock as ps
from penstock.channels import Notice, Outcome, Smtp
from penstock.channels.mail import compose
from penstock.model.times import from_micros
from penstock_systems.standins.notifications import Arrivals
from penstock_systems.standins.notifications.smtp import SmtpFaults, serve_smtp
from tests.sockets import server
from tests.unit.channels.receivers import NOTICE, Watch


def to_server(faults: SmtpFaults, ask: Callable[[Smtp], Coroutine[Any, Any, Outcome]]) -> tuple[Outcome, Arrivals]:
    arrivals = Arrivals()

    async def main() -> Outcome:
        listening = await serve_smtp(arrivals, lambda: 0.0, faults=faults)
        async with listening:
            return await ask(smtp(listening.sockets[0].getsockname()[1]))

    return asyncio.run(main()), arrivals


def smtp(port: int, **options: Any) -> Smtp:
    made = Smtp("127.0.0.1", port=port, tls="none", sender="Reminders <r@example.org>", clock=Watch(), **options)
    made.seconds = 2.0
    return made


@pytest.mark.fault("F52")
@pytest.mark.spec("C-09")
def test_a_mail_arrives_with_one_subject_line_and_the_same_id_on_every_attempt() -> None:
    async def twice(channel: Smtp) -> Outcome:
        await channel.send(NOTICE, "7-1-email")
        return await channel.send(NOTICE, "7-1-email")

    outcome, arrivals = to_server(SmtpFaults(), twice)
    assert outcome.status == "sent"
    first, second = arrivals.all
    assert first["subject"] == "Pay the <b>rent</b> Bcc: all@example.com"
    assert first["id"] == second["id"] == "<7-1-email@example.org>"
    assert {first["to"], second["to"]} == {"ann@example.org"}


@pytest.mark.fault("F52")
@pytest.mark.parametrize(
    "faults, to, expected, arrived",
    [
        (SmtpFaults(lost=1.0), "ann@example.org", Outcome("unknown"), 1),
        (SmtpFaults(hung=1.0), "ann@example.org", Outcome("unknown"), 1),
        (SmtpFaults(failed=1.0), "ann@example.org", Outcome("failed"), 0),
        (SmtpFaults(), "refused@example.org", Outcome("failed", is_permanent=True), 0),
        (SmtpFaults(), "full@example.org", Outcome("failed"), 0),
        (SmtpFaults(), "ann@example.org\r\nRCPT TO:<bob@example.org>", Outcome("failed"), 0),
    ],
)
def test_no_answer_after_the_text_is_unknown_and_every_answer_is_known(
    faults: SmtpFaults, to: str, expected: Outcome, arrived: int
) -> None:
    outcome, arrivals = to_server(faults, lambda channel: channel.send(Notice("Title", "Text", to=to), "7-1-email"))
    assert (outcome.status, outcome.is_permanent) == (expected.status, expected.is_permanent)
    assert len(arrivals.all) == arrived


def test_a_server_that_is_not_there_or_hangs_up_before_the_text_has_not_got_it() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 hello\r\n")
        await reader.readline()
        writer.transport.abort()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async def main() -> list[Outcome]:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            closed = taken.getsockname()[1]
        async with server(hang_up) as one, server(silent) as two:
            channels = [smtp(port) for port in (closed, one, two)]
            channels[2].seconds = 0.3
            return [await channel.send(NOTICE, "7-1-email") for channel in channels]

    assert [each.status for each in asyncio.run(main())] == ["failed"] * 3


def test_an_answer_counts_even_if_the_goodbye_fails() -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 hello\r\n")
        in_text = False
        while line := await reader.readline():
            if in_text:
                in_text = line != b".\r\n"
                answer = b"" if in_text else b"250 taken\r\n"
            elif line.startswith(b"QUIT"):
                await asyncio.sleep(60)
            else:
                in_text = line.startswith(b"DATA")
                answer = b"354 go on\r\n" if in_text else b"250 fine\r\n"
            writer.write(answer)

    async def main() -> Outcome:
        async with server(rude) as port:
            channel = smtp(port)
            channel.seconds = 0.5
            return await channel.send(NOTICE, "7-1-email")

    assert asyncio.run(main()) == Outcome("sent", provider_id="taken")


def test_text_and_html_are_two_parts_and_headers_are_one_line_each() -> None:
    headers = {"List-Unsubscribe": "<https://example.org/u/1>\r\nBcc: all@example.com"}
    notice = Notice("Título", "Grüße\n.\nEnd", to="ann@example.org", html="<p>Grüße</p>", headers=headers)
    sent = compose(notice, "7", "r@example.org", from_micros(0)).as_bytes()
    mail = email.message_from_bytes(sent, policy=default)
    assert mail["Subject"] == "Título"
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
    body = mail.get_body(("plain",))
    assert body is not None
    assert body.get_content().split() == ["Grüße", ".", "End"]
    assert "Bcc" not in mail
    assert mail["Message-ID"] == "<7@example.org>"
    outcome, arrivals = to_server(SmtpFaults(), lambda channel: channel.send(notice, "7-1-email"))
    assert (outcome.status, arrivals.all[0]["subject"]) == ("sent", "Título")


def test_a_login_needs_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMTP_PASSWORD", raising=False)
    outcome = asyncio.run(smtp(1, user="r").send(NOTICE, "7-1-email"))
    assert outcome.is_permanent
    assert "SMTP_PASSWORD" in outcome.error


def test_the_server_of_these_tests_is_one_that_other_clients_can_talk_to() -> None:
    arrivals = Arrivals()

    async def main() -> None:
        listening = await serve_smtp(arrivals, lambda: 0.0)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            await ps.in_thread(send_by_smtplib, port)

    asyncio.run(main())
    assert [each["to"] for each in arrivals.all] == ["bob@example.org"]


def send_by_smtplib(port: int) -> None:
    with smtplib.SMTP("127.0.0.1", port) as client:
        client.sendmail("a@example.org", ["bob@example.org"], "Subject: Hi\r\n\r\nText")
