"""Slack, Discord and Telegram: nothing in a line is a mention, and each one's way to refuse is understood."""

from __future__ import annotations

import asyncio
import json

import pytest

import penstock as ps
from penstock.channels import Apprise, Channel, Discord, Notice, Resend, Slack, Smtp, Telegram, Webhook, make_channel
from penstock.config import parse
from penstock.testing import virtual
from tests.unit.channels.receivers import NOTICE, Answers, Watch, client, fakes

URLS = {
    "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T1/B1/ops",
    "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/ops",
    "TELEGRAM_BOT_TOKEN": "1:secret-token",
}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in URLS.items():
        monkeypatch.setenv(name, value)


def chats(web: ps.Client) -> list[Channel]:
    return [Slack(web), Discord(web), Telegram(web, to="123")]


LONG = Notice(NOTICE.title, NOTICE.text + "x" * 9_000)


@virtual
async def test_a_line_fits_mentions_no_user_and_a_second_one_at_once_learns_when() -> None:
    watch = Watch()
    web, servers = fakes(watch)
    for channel in chats(web):
        assert (await channel.send(LONG, "7")).status == "sent"
        throttled = await channel.send(LONG, "8")
        assert (throttled.is_throttled, throttled.retry_after) == (True, 1.0)
    slack, discord, telegram = servers.arrivals.all
    assert slack["text"].startswith("Pay the &lt;b&gt;rent&lt;/b&gt; Bcc: all@example.com\n12 % off")
    assert "&lt;!channel&gt;" in slack["text"]
    assert [len(each["text"]) for each in (slack, discord, telegram)] == [3_000, 2_000, 4_096]


@virtual
async def test_discord_may_mention_no_user_and_telegram_parses_nothing() -> None:
    host = Answers()
    for channel in chats(client(host))[1:]:
        await channel.send(NOTICE, "7")
    discord, telegram = (json.loads(body) for _, _, body in host.asked)
    assert discord["allowed_mentions"] == {"parse": []}
    assert "parse_mode" not in telegram


@virtual
async def test_a_chat_that_is_gone_fails_for_good_and_a_person_who_blocked_the_bot_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web, _ = fakes(Watch())
    monkeypatch.setenv("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T1/B1/gone")
    monkeypatch.setenv("DISCORD_WEBHOOK_URL", "https://discord.com/api/webhooks/1/gone")
    found = [await each.send(Notice("Hi"), "7") for each in [Slack(web), Discord(web), Telegram(web, to="gone")]]
    assert [each.is_permanent for each in found] == [True] * 3
    blocked = await Telegram(web).send(Notice("Hi", to="blocked"), "7")
    assert (blocked.is_permanent, blocked.is_gone) == (True, True)
    assert "secret-token" not in " ".join(each.error for each in [*found, blocked])


TOML = """
trust_apprise = {trust}
[channels.mail]
kind = "resend"
sender = "Reminders <r@example.org>"
secret_env = "MAIL_KEY"
timeout_seconds = 3
[channels.own]
kind = "smtp"
host = "mail.example.org"
sender = "r@example.org"
[channels.hook]
kind = "webhook"
url = "https://ops.example.org/hook"
[channels.team]
kind = "slack"
[channels.guild]
kind = "discord"
[channels.me]
kind = "telegram"
to = "123"
[channels.pager]
kind = "apprise"
"""


def test_channels_are_made_of_what_penstock_toml_says() -> None:
    config = parse(TOML.replace("{trust}", "false"), "penstock.toml")
    made = {name: make_channel(each, ps.Client()) for name, each in config.channels.items() if name != "pager"}
    kinds = {"mail": Resend, "own": Smtp, "hook": Webhook, "team": Slack, "guild": Discord, "me": Telegram}
    assert {name: type(channel) for name, channel in made.items()} == kinds
    assert (made["mail"].secret_env, made["mail"].seconds, made["own"].seconds) == ("MAIL_KEY", 3.0, 10.0)
    with pytest.raises(ps.BadConfig, match="Invalid enum value 'pigeon'"):
        parse('[channels.a]\nkind = "pigeon"', "penstock.toml")


def test_apprise_is_refused_unless_it_is_trusted() -> None:
    config = parse(TOML.replace("{trust}", "true"), "penstock.toml")
    with pytest.raises(ps.BadConfig, match="trust_apprise = true"):
        make_channel(config.channels["pager"], ps.Client())
    assert config.trust_apprise


def test_apprise_answers_yes_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise", reason="the extra `channels` is not installed")
    monkeypatch.setenv("APPRISE_URLS", "json://127.0.0.1:1/")
    outcome = asyncio.run(Apprise(trust_apprise=True).send(NOTICE, "7"))
    assert outcome.status == "unknown"
    monkeypatch.setenv("APPRISE_URLS", "nothing://at-all")
    assert asyncio.run(Apprise(trust_apprise=True).send(NOTICE, "7")).is_permanent
