"""The app of the gateway: its database, its way out, and the pace of each provider."""

from __future__ import annotations

import os

import penstock as ps
from penstock_systems.gateway.settings import Provider, Settings

SERVICE = "gateway"  # the name that its calls have in the ledger
ANSWER_BYTES_MAX = 20_000_000
STAND_IN_KEY = "sk-stand-in"

app = ps.App("gateway", serve=True)
db = app.db
settings = Settings.of(app.config.systems)
budgets = ps.Budgets(run=settings.budgets.run, day=settings.budgets.day, month=settings.budgets.month)
paying = app.gateway(budgets=budgets, service=SERVICE)
web = app.http(
    rules=ps.Rules(allow=settings.allow),
    bounds=ps.Bounds(
        body_bytes=ANSWER_BYTES_MAX,
        redirects=0,
        total_seconds=settings.timeout_seconds,
        progress_seconds=settings.timeout_seconds,
    ),
)
paces = {
    name: app.pace(name, rate=each.rate, parallel=each.parallel, max_wait=each.max_wait)
    for name, each in settings.providers.items()
}


class Offline(ps.Refused):
    """The provider's key is not in the environment, and no call was made."""


def key_of(provider: Provider) -> str:
    """Return the provider's key. Raises Offline where the environment does not have it."""
    if not provider.key_env:
        return ""
    key = os.environ.get(provider.key_env, "").strip()
    if not key and "PENSTOCK_STANDINS" in os.environ:
        return STAND_IN_KEY
    if not key or not key.isascii() or not key.isprintable():
        raise Offline(f"{provider.host} is offline: set {provider.key_env} where the gateway runs.")
    return key


def headers_of(provider: Provider) -> dict[str, str]:
    key = key_of(provider)
    if not key:
        return {}
    return {provider.key_header: f"Bearer {key}" if provider.key_header == "Authorization" else key}
