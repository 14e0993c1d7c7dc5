"""What a deployment says about a channel: `[channels.<name>]` in penstock.toml."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec


class ChannelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to receivers. The file names the environment variable that holds the secret, never the secret."""

    kind: Literal["resend", "smtp", "webhook", "slack", "discord", "telegram", "apprise"]
    secret_env: str | None = None  # RESEND_API_KEY, SMTP_PASSWORD, SLACK_WEBHOOK_URL ... where it is not given
    sender: str = ""  # of mail
    to: str = ""  # the receiver of notices that name none: an address, or a chat of Telegram
    alerts: bool = False  # it also receives the app's alerts
    url: str = ""  # of a webhook, or where Resend or Telegram is
    host: str = ""  # of SMTP
    port: int = 0
    user: str = ""
    tls: Literal["starttls", "tls", "none"] = "starttls"
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 10.0
