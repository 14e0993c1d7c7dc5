"""The app of the reminders: its database, its settings, its ways out, and its clock."""

from __future__ import annotations

import os

import penstock as ps
from penstock.channels import Channel, Discord, Resend, Slack, Smtp, Telegram, make_channel
from penstock_systems.reminders.settings import CHANNEL_SECONDS, Settings

RESEND_KEY = "NOTIFICATIONS_RESEND_KEY"
WEBHOOK = "webhook"  # the channel of endpoints: each has its own address and secret

app = ps.App("reminders", require_trial=True)
db = app.db
settings = Settings.of(app.config.systems)
web = app.http(rules=ps.Rules(allow=settings.allow))


def now_ms() -> int:
    """The current time, in milliseconds since 1970."""
    return web.clock.now() // 1000


def make_channels() -> dict[str, Channel]:
    """The channels by name: those of `[channels]` in penstock.toml, and mail and chats with secrets in the environment."""
    made: dict[str, Channel] = {
        "email": Resend(web, sender=settings.sender, secret_env=RESEND_KEY),
        "slack": Slack(web),
        "discord": Discord(web),
        "telegram": Telegram(web),
    }
    for each in made.values():
        each.seconds = CHANNEL_SECONDS
    for name, config in app.config.channels.items():
        if name == WEBHOOK:
            raise ps.BadConfig(
                "[channels.webhook] in penstock.toml: the reminders send webhooks to endpoints. Use another name."
            )
        made[name] = make_channel(config, web, trust_apprise=app.config.trust_apprise)
    return made


channels: dict[str, Channel] = make_channels()
mail_channels = frozenset(name for name, each in channels.items() if isinstance(each, Resend | Smtp))
spaced_channels = frozenset(name for name, each in channels.items() if isinstance(each, Resend))  # so many a second


def environment_secret(name: str) -> str:
    return os.environ.get(name, "").strip()
