"""What a deployment says about the outside: `[channels.<name>]` and `[models.<name>]` in penstock.toml."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Price = Annotated[float, msgspec.Meta(ge=0)]


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


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model behind an OpenAI-compatible address. The file names the environment variable that holds the key, never the
    key; a server of one's own that wants none has `key_env = ""`."""

    base_url: str
    model: str
    key_env: str
    usd_per_million_prompt_tokens: Price
    usd_per_million_completion_tokens: Price
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 1_000  # of an answer, unless the caller says otherwise
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # what the service calls that limit
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    allow: tuple[str, ...] = ()  # private addresses that may be called, such as 127.0.0.1:11434
