"""Language models: one question, one paid call through the gateway, one answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.model.deployment import ModelConfig
from penstock.model.errors import BadConfig, BadParameter, PenstockError
from penstock.outbound.chat import Answer, TokenUsage, answer_of, explained, messages, prompt_tokens_most, usage_of

if TYPE_CHECKING:
    from penstock.outbound.client import Client
    from penstock.outbound.paid import Gateway

OPERATION = "chat"
TOKENS_MAX = 1_000_000  # of an answer
ANSWER_BYTES_MAX = 4_000_000
PROMPT_CHARACTERS_MAX = 2_000_000
MILLION = 1_000_000


class ModelOffline(PenstockError):
    """This model has no key here, and no service was asked. Look at `model.is_offline` first."""


class Model:
    """A model that was named in penstock.toml. Every question is a row of the gateway's ledger."""

    def __init__(
        self,
        name: str,
        config: ModelConfig | None,
        gateway: Gateway,
        http: Client | None,
        make_client: Callable[..., Client],
    ) -> None:
        self.name = name
        self.config = config
        self._gateway = gateway
        self._http = http
        self._make_client = make_client

    @property
    def is_offline(self) -> bool:
        """True where penstock.toml does not know the model, or the environment not its key."""
        return self.config is None or bool(self.config.key_env and not self._key())

    @property
    def client(self) -> Client:
        """The way out to it, with bounds for a service that thinks before it answers."""
        if self._http is None:
            from penstock.outbound.addresses import Rules  # imported when used: its libraries take a while to load
            from penstock.outbound.bodies import Bounds

            config = self._configured()
            patient = Bounds(total_seconds=config.timeout_seconds, progress_seconds=config.timeout_seconds, redirects=0)
            self._http = self._make_client(rules=Rules(allow=config.allow), bounds=patient)
        return self._http

    async def ask(
        self,
        *,
        prompt: str,
        system: str = "",
        run: str | None = None,
        max_tokens: int | None = None,
        json: bool = False,
        temperature: float | None = None,
    ) -> Answer:
        """One question. With `json` the answer has to be JSON, which is then its `value`.

        Raises `BudgetSpent` before anything is sent, and what the client raises: `Throttled` and `Unavailable` pass,
        `Refused` and `Unparsable` do not."""
        config = self._configured()
        if len(system) + len(prompt) > PROMPT_CHARACTERS_MAX:
            raise BadParameter(f"A prompt has at most {PROMPT_CHARACTERS_MAX:,} characters. Shorten it.")
        tokens = config.max_tokens if max_tokens is None else max_tokens
        if not 0 < tokens <= TOKENS_MAX:
            raise BadParameter(f"max_tokens is {tokens!r}. Give a number from 1 to {TOKENS_MAX:,}.", value=tokens)
        asked = messages(system, prompt)
        most = self._usd(TokenUsage(prompt_tokens_most(asked), tokens))
        body: dict[str, Any] = {"model": config.model, "messages": asked, config.limit_name: tokens}
        if json:
            body["response_format"] = {"type": "json_object"}
        if temperature is not None:
            body["temperature"] = temperature
        provider = urlsplit(config.base_url).hostname or config.base_url
        async with self._gateway.paid(provider=provider, operation=OPERATION, at_most=most, run=run) as call:
            reply = await self._posted(f"{base(config.base_url)}/v1/chat/completions", body)
            usage = usage_of(reply)
            if usage is not None:
                call.settle(units=usage.prompt_tokens + usage.completion_tokens, usd=self._usd(usage))
            # What a service answers that does not say its price is counted at its most.
            usd = call.at_most_usd if usage is None else self._usd(usage)
            return answer_of(reply, where=provider, model=config.model, usd=usd, usage=usage, json=json)

    async def _posted(self, url: str, body: dict[str, Any]) -> Any:
        key = self._key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            response = await self.client.post(url, json=body, headers=headers, max_bytes=ANSWER_BYTES_MAX)
            return response.json()
        except PenstockError as error:
            raise explained(error, key) from None  # what it came from may hold the request, and with it the key

    def _key(self) -> str:
        key = os.environ.get(self.config.key_env, "").strip() if self.config and self.config.key_env else ""
        if not key.isascii() or not key.isprintable():
            assert self.config is not None
            raise BadConfig(f"{self.config.key_env} is not a key: it contains characters that are not ASCII.")
        return key

    def _configured(self) -> ModelConfig:
        if self.config is None or self.is_offline:
            where = f"[models.{self.name}] in penstock.toml"
            missing = where if self.config is None else f"{self.config.key_env}, which {where} names,"
            raise ModelOffline(f"The model {self.name!r} is offline: {missing} is not set.", model=self.name)
        return self.config

    def _usd(self, usage: TokenUsage) -> float:
        config = self._configured()
        prompt = usage.prompt_tokens * config.usd_per_million_prompt_tokens
        return (prompt + usage.completion_tokens * config.usd_per_million_completion_tokens) / MILLION


def base(url: str) -> str:
    """The address before `/v1`, which many write with it."""
    return url.rstrip("/").removesuffix("/v1")
