"""Makes a channel of what penstock.toml says about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.channels.apprise import Apprise
from penstock.channels.channel import Channel
from penstock.channels.chats import TELEGRAM, Discord, Slack, Telegram
from penstock.channels.resend import BASE, Resend
from penstock.channels.smtp import Smtp
from penstock.channels.webhook import Webhook
from penstock.model.deployment import ChannelConfig

if TYPE_CHECKING:
    from penstock.outbound.client import Client


def make_channel(config: ChannelConfig, http: Client, *, trust_apprise: bool = False) -> Channel:
    """Return the channel of `[channels.<name>]`, or raise BadConfig."""
    env: dict[str, Any] = {} if config.secret_env is None else {"secret_env": config.secret_env}
    made: Channel
    match config.kind:
        case "resend":
            made = Resend(http, sender=config.sender, to=config.to, base_url=config.url or BASE, **env)
        case "smtp":
            smtp: dict[str, Any] = {"port": config.port, "user": config.user, "tls": config.tls, "to": config.to}
            made = Smtp(config.host, sender=config.sender, clock=http.clock, **smtp, **env)
        case "webhook":
            made = Webhook(http, config.url, **env)
        case "slack":
            made = Slack(http, **env)
        case "discord":
            made = Discord(http, **env)
        case "telegram":
            made = Telegram(http, to=config.to, base_url=config.url or TELEGRAM, **env)
        case "apprise":
            made = Apprise(trust_apprise=trust_apprise, **env)
    made.seconds = config.timeout_seconds
    return made
