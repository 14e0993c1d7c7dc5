"""Sent, failed or unknown: a call that left without an answer may have arrived, and nothing else is unknown."""

from __future__ import annotations

import asyncio
import socket

import pytest

import penstock as ps
from penstock.channels import Channel, Flight, Notice, Outcome, Recorded, Slack, Webhook, next_step
from penstock.outbound.client import Client
from penstock.testing import virtual
from tests.sockets import Talk, server
from tests.unit.channels.receivers import NOTICE, Answers, client

SLACK = "https://hooks.slack.com/services/T1/B1/XXXXSECRET"


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(60)


async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"220 this is no HTTP\r\n\r\n")
    await writer.drain()


@pytest.mark.fault("F43")
@pytest.mark.spec("C-07", "G3-07")
@pytest.mark.parametrize("talk", [reset, silent, babble])
def test_a_request_that_left_and_got_no_answer_is_unknown(talk: Talk) -> None:
    async def main() -> Outcome:
        async with server(talk) as port, Client(rules=ps.Rules(allow=[f"127.0.0.1:{port}"])) as web:
            channel = Webhook(web, f"http://127.0.0.1:{port}/in")
            channel.seconds = 0.5
            return await channel.send(NOTICE, "key")

    outcome = asyncio.run(main())
    assert outcome.status == "unknown"
    assert ("timed out after 0.5 s" in outcome.error) == (talk is silent)


@pytest.mark.fault("F40")
def test_a_request_that_never_left_has_failed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def main() -> list[Outcome]:
        async with Client(rules=ps.Rules(allow=[f"127.0.0.1:{port}"])) as web:
            urls = [f"http://127.0.0.1:{port}/", "http://127.0.0.1:1/", "http://[::1]/", "ftp://hooks.example.com/"]
            return [await Webhook(web, url).send(NOTICE, "key") for url in [*urls, "http://169.254.169.254/latest"]]

    refused, *private = asyncio.run(main())
    assert (refused.status, refused.is_permanent) == ("failed", False)
    assert [(each.status, each.is_permanent) for each in private] == [("failed", True)] * 4
    assert "blocked_address" in private[0].error


@pytest.mark.fault("F43")
@pytest.mark.parametrize(
    "status, expected",
    [
        (200, Outcome("sent")),
        (204, Outcome("sent")),
        (301, Outcome("failed", is_permanent=True)),
        (404, Outcome("failed", is_permanent=True)),
        (408, Outcome("unknown")),
        (410, Outcome("failed", is_permanent=True, is_gone=True)),
        (429, Outcome("failed", is_throttled=True, retry_after=7.0)),
        (500, Outcome("failed", retry_after=7.0)),
        (502, Outcome("unknown")),
        (504, Outcome("unknown")),
    ],
)
@virtual
async def test_an_answer_is_known_unless_it_comes_from_a_gateway_on_the_way(status: int, expected: Outcome) -> None:
    host = Answers((status, b"", {"location": "https://hooks.example.com/elsewhere", "retry-after": "7"}))
    found = await Webhook(client(host), "https://hooks.example.com/in/SECRETPATH?token=abc").send(NOTICE, "key")
    assert "SECRETPATH" not in found.error
    assert "abc" not in found.error
    assert len(host.asked) == 1
    facts = ("status", "retry_after", "is_throttled", "is_permanent", "is_gone")
    assert [getattr(found, name) for name in facts] == [getattr(expected, name) for name in facts]


@pytest.mark.fault("F43")
@virtual
async def test_a_patient_webhook_gives_up_only_a_receiver_that_is_gone() -> None:
    host = Answers(*((status, b"", {}) for status in (302, 401, 404, 410)))
    channel = Webhook(client(host), "https://hooks.example.com/in", is_patient=True)
    found = [await channel.send(NOTICE, "key") for _ in range(4)]
    assert [each.is_permanent for each in found] == [False, False, False, True]


class Odd(Channel):
    name = "odd"

    def __init__(self, error: Exception, *, leaves: bool) -> None:
        self._error, self._leaves = error, leaves

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        if self._leaves:
            flight.leave()
        raise self._error


@pytest.mark.spec("C-07", "C-05")
@virtual
async def test_an_exception_of_a_channel_is_an_outcome_on_one_line() -> None:
    before = await Odd(ValueError("line\nbreak password=hunter2"), leaves=False).send(NOTICE, "key")
    assert before == Outcome("failed", "odd: ValueError: line break password=[redacted]")
    after = await Odd(ConnectionResetError("gone"), leaves=True).send(NOTICE, "key")
    assert after.status == "unknown"


@virtual
async def test_a_channel_without_its_secret_says_which_variable_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLACK_WEBHOOK_URL", raising=False)
    host = Answers()
    outcome = await Slack(client(host)).send(NOTICE, "key")
    assert (outcome.status, outcome.is_permanent) == ("failed", True)
    assert "SLACK_WEBHOOK_URL" in outcome.error
    assert host.asked == []


@pytest.mark.fault("F48")
@virtual
async def test_the_address_of_a_chat_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_WEBHOOK_URL", SLACK)
    outcome = await Slack(client(Answers((400, b"invalid_payload " + SLACK.encode(), {})))).send(NOTICE, "key")
    assert "invalid_payload" in outcome.error
    assert "XXXXSECRET" not in outcome.error


def test_an_outcome_raises_what_a_queue_understands() -> None:
    for outcome, error in (
        (Outcome("failed", "a", is_throttled=True, retry_after=7.0), ps.Throttled),
        (Outcome("failed", "a", is_permanent=True), ps.Refused),
        (Outcome("failed", "a"), ps.Unavailable),
        (Outcome("unknown", "a"), ps.Unavailable),
    ):
        with pytest.raises(error) as raised:
            outcome.raise_failure()
        assert type(raised.value) is error
    Outcome("sent").raise_failure()


class Keyed(Odd):
    key_seconds = 86_400.0


class Telling(Odd):
    async def find(self, notice: Notice, key: str, since: int) -> Outcome | None:
        return None


HOUR = 3_600_000_000


@pytest.mark.spec("G3-06", "G7-03", "C-09")
@pytest.mark.parametrize(
    "channel, recorded, hours, unknown, expected",
    [
        (Odd, None, 0, "hold", "send"),
        (Odd, Recorded(0, "sent"), 99, "hold", "done"),
        (Odd, Recorded(0, "failed"), 99, "hold", "send"),
        (Odd, Recorded(0, "unknown"), 0, "hold", "hold"),
        (Odd, Recorded(0, ""), 0, "hold", "hold"),
        (Odd, Recorded(0, ""), 0, "resend", "send"),
        (Keyed, Recorded(0, "unknown"), 0, "hold", "send"),
        (Keyed, Recorded(0, ""), 23.8, "hold", "send"),
        (Keyed, Recorded(0, "unknown"), -0.05, "hold", "send"),
        (Keyed, Recorded(0, "unknown"), -1, "hold", "hold"),  # the clock was set back: nobody knows for how long
        (Keyed, Recorded(0, ""), 24, "hold", "hold"),
        (Keyed, Recorded(0, ""), 24, "resend", "send"),
        (Telling, Recorded(0, ""), 1, "hold", "find"),
        (Telling, Recorded(0, ""), 1, "resend", "find"),
    ],
)
def test_an_unknown_outcome_is_repeated_while_its_key_lives_then_looked_up_or_held(
    channel: type[Odd], recorded: Recorded | None, hours: float, unknown: str, expected: str
) -> None:
    made = channel(ValueError(), leaves=False)
    found = next_step(recorded, made, now=round(hours * HOUR), unknown=unknown)  # type: ignore[arg-type]
    assert found == expected
