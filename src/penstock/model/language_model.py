"""What a deployment says about a language model: `[models.<name>]` in penstock.toml."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Price = Annotated[float, msgspec.Meta(ge=0)]


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
