"""What a deployment decides about the gateway: `[systems.gateway]` in penstock.toml. All of it has defaults."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

import penstock as ps

PRICE_DAYS_MAX = 180  # an older price is reported: providers change theirs about twice a year
Positive = Annotated[float, msgspec.Meta(gt=0)]
FromZero = Annotated[float, msgspec.Meta(ge=0)]


class Operation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A paid call other than a chat: `/v1/<provider>/<operation>`, at a fixed price."""

    path: str
    method: Literal["GET", "POST"] = "GET"
    usd: FromZero
    as_of: date
    cache_seconds: FromZero = 0.0  # an answer is repeated for so long without a call


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service that costs money. Its key is in the environment variable `key_env`, and nowhere else."""

    base_url: str
    key_env: str = ""  # "" for a server without keys
    key_header: str = "Authorization"  # `Bearer KEY`; in any other header the key stands alone
    rate: tuple[Positive, Positive] = (0.01, 50.0)
    parallel: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 32
    max_wait: FromZero = 20.0  # seconds that a call waits for its turn
    operations: dict[str, Operation] = {}

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or self.base_url


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that callers may ask for, and its price as it was on the day `as_of`."""

    provider: str = "openai"
    name: str = ""  # at the provider; the same name where it is empty
    usd_per_million_prompt_tokens: FromZero
    usd_per_million_completion_tokens: FromZero
    as_of: date
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 4_096  # of an answer whose caller names no limit
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    # The most that one image counts, whatever its address or its bytes: gpt-4o-mini counts up to 48,169 for one.
    image_tokens: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 50_000


class Money(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars of all callers together. A caller's key has its own budgets beside these."""

    run: FromZero | None = None
    day: FromZero | None = 10.0
    month: FromZero | None = 100.0


PROVIDERS = {
    "openai": Provider(base_url="https://api.openai.com", key_env="OPENAI_API_KEY"),
    "brave": Provider(
        base_url="https://api.search.brave.com",
        key_env="BRAVE_API_KEY",
        key_header="X-Subscription-Token",
        rate=(0.01, 5.0),
        operations={
            "web_search": Operation(path="/res/v1/web/search", usd=0.005, as_of=date(2025, 1, 1), cache_seconds=3_600.0)
        },
    ),
}
MODELS = {
    "gpt-4o-mini": Model(
        usd_per_million_prompt_tokens=0.15,
        usd_per_million_completion_tokens=0.60,
        as_of=date(2024, 7, 18),
        limit_name="max_completion_tokens",
    ),
}


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    providers: dict[str, Provider] = {}
    models: dict[str, Model] = {}
    budgets: Money = Money()
    allow: tuple[str, ...] = ()  # private addresses of own servers, such as "127.0.0.1:11434"
    cache_seconds: FromZero = 86_400.0  # of answers to chats with temperature 0
    timeout_seconds: Positive = 600.0  # of one call

    @staticmethod
    def of(systems: Mapping[str, Any]) -> Settings:
        """Read the section of this system, and add the providers and models that come with it."""
        try:
            given = msgspec.convert(systems.get("gateway", {}), Settings)
        except msgspec.ValidationError as error:
            known = ", ".join(Settings.__struct_fields__)
            raise ps.BadConfig(f"[systems.gateway] in penstock.toml: {error}. Known settings: {known}.") from error
        settings = msgspec.structs.replace(
            given, providers=PROVIDERS | given.providers, models=given.models or dict(MODELS)
        )
        for name, model in settings.models.items():
            if model.provider not in settings.providers:
                raise ps.BadConfig(
                    f"[systems.gateway.models.{name}] in penstock.toml: there is no provider {model.provider!r}. Known "
                    f"providers: {', '.join(settings.providers)}. Describe it under [systems.gateway.providers]."
                )
        return settings
