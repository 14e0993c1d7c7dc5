"""Prices: the most that a request can cost, what it did cost, and how old the price is that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any, NamedTuple

import msgspec

from penstock_systems.gateway.settings import PRICE_DAYS_MAX, Model, Settings

MESSAGE_TOKENS = 64  # what a provider may add around each message
MILLION = 1_000_000
LIMITS = ("max_completion_tokens", "max_tokens")


Tokens = Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class Usage(NamedTuple):
    prompt_tokens: Tokens
    completion_tokens: Tokens


class Price(NamedTuple):
    """A price, and its age in days."""

    name: str
    usd: str
    as_of: date
    days: int

    @property
    def is_old(self) -> bool:
        return self.days > PRICE_DAYS_MAX


def tokens_allowed(asked: Mapping[str, Any], model: Model) -> int:
    """Return the number of tokens that the answer of one choice may have."""
    return next((asked[name] for name in LIMITS if asked.get(name) is not None), model.max_tokens)


def most(asked: Mapping[str, Any], model: Model) -> Usage:
    """Return the most that a request can use: a token stands for at least one byte of it."""
    messages = asked["messages"]
    images = sum(_images(each.get("content")) for each in messages)
    prompt = len(msgspec.json.encode(asked)) + MESSAGE_TOKENS * len(messages) + model.image_tokens * images
    return Usage(prompt, tokens_allowed(asked, model) * (asked.get("n") or 1))


def usd_of(usage: Usage, model: Model) -> float:
    prompt = usage.prompt_tokens * model.usd_per_million_prompt_tokens
    return (prompt + usage.completion_tokens * model.usd_per_million_completion_tokens) / MILLION


def usage_in(reply: Any) -> Usage | None:
    """Return the usage that a reply states, or None where it states none, or one that cannot be."""
    used = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(used, dict):
        return None
    try:
        return msgspec.convert((used.get("prompt_tokens"), used.get("completion_tokens")), Usage)
    except msgspec.ValidationError:
        return None


def price_list(settings: Settings, today: date) -> Iterator[Price]:
    """Yield every price with its age."""
    for name, model in settings.models.items():
        dollars = f"{model.usd_per_million_prompt_tokens:g} + {model.usd_per_million_completion_tokens:g} a million"
        yield Price(name, dollars, model.as_of, (today - model.as_of).days)
    for provider, each in settings.providers.items():
        for name, operation in each.operations.items():
            yield Price(
                f"{provider}/{name}", f"{operation.usd:g} a call", operation.as_of, (today - operation.as_of).days
            )


def _images(content: Any) -> int:
    parts = content if isinstance(content, list) else ()
    return sum(isinstance(part, dict) and part.get("type") == "image_url" for part in parts)
