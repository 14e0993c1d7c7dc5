"""Lines in a chat: Slack, Discord and Telegram. None of them knows keys, and nothing in a line is a mention or a link."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.channels.channel import SENT, Channel, Flight, Notice, Outcome
from penstock.channels.posting import id_of, post

if TYPE_CHECKING:
    from penstock.outbound.client import Client

SLACK_CHARACTERS_MAX = 3_000
DISCORD_CHARACTERS_MAX = 2_000
TELEGRAM_CHARACTERS_MAX = 4_096
NO_PREVIEWS = 4  # of Discord's flags
TELEGRAM = "https://api.telegram.org"


class Slack(Channel):
    """`Slack(app.http())`: an incoming webhook, whose address is the secret in SLACK_WEBHOOK_URL."""

    name = "slack"

    def __init__(self, http: Client, *, secret_env: str = "SLACK_WEBHOOK_URL") -> None:
        self._http = http
        self.secret_env = secret_env

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        text = lines(notice).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        answer = await post(self, self._http, self.secret, flight, json={"text": text[:SLACK_CHARACTERS_MAX]})
        return answer if isinstance(answer, Outcome) else SENT


class Discord(Channel):
    """`Discord(app.http())`: a webhook, whose address is the secret in DISCORD_WEBHOOK_URL."""

    name = "discord"

    def __init__(self, http: Client, *, secret_env: str = "DISCORD_WEBHOOK_URL") -> None:
        self._http = http
        self.secret_env = secret_env

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        line = {
            "content": lines(notice)[:DISCORD_CHARACTERS_MAX],
            "allowed_mentions": {"parse": []},
            "flags": NO_PREVIEWS,
        }
        # With `wait` it answers once the line is stored, and says under which id.
        answer = await post(self, self._http, f"{self.secret}?wait=true", flight, json=line)
        return answer if isinstance(answer, Outcome) else Outcome("sent", provider_id=id_of(answer, "id"))


class Telegram(Channel):
    """`Telegram(app.http(), to="123")`: a bot, whose token is in TELEGRAM_BOT_TOKEN."""

    name = "telegram"

    def __init__(
        self, http: Client, *, to: str = "", secret_env: str = "TELEGRAM_BOT_TOKEN", base_url: str = TELEGRAM
    ) -> None:
        self._http = http
        self._to = to
        self._base = base_url.rstrip("/")
        self.secret_env = secret_env

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        chat = notice.to or self._to
        text = lines(notice)[:TELEGRAM_CHARACTERS_MAX]
        line = {"chat_id": chat, "text": text, "link_preview_options": {"is_disabled": True}}
        answer = await post(self, self._http, f"{self._base}/bot{self.secret}/sendMessage", flight, json=line)
        if not isinstance(answer, Outcome):
            return Outcome("sent", provider_id=id_of(answer, "result", "message_id"))
        if "answered 403" in answer.error:  # the person has blocked the bot
            return replace(answer, is_gone=True)
        found = re.search(r"retry after (\d{1,5})", answer.error)
        return answer if found is None else replace(answer, retry_after=float(found[1]))


def lines(notice: Notice) -> str:
    """Return the title and the text, or the title alone where both are the same."""
    return notice.subject if notice.text in ("", notice.title) else f"{notice.subject}\n{notice.text}"
