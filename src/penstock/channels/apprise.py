"""130 services through Apprise, an extra library that is off unless `trust_apprise` is on."""

from __future__ import annotations

import asyncio

from penstock.channels.channel import SENT, Channel, Flight, Notice, Outcome
from penstock.model.errors import BadConfig


class Apprise(Channel):
    """`Apprise(secret_env="APPRISE_URLS", trust_apprise=True)`: addresses with spaces between, as Apprise writes them.

    It checks no address, sends no key, and answers yes or no. So it is off by default, and whatever is not a yes is unknown.
    """

    name = "apprise"

    def __init__(self, *, secret_env: str = "APPRISE_URLS", trust_apprise: bool = False) -> None:
        if not trust_apprise:
            raise BadConfig(
                "Apprise calls any address, also private ones. Set `trust_apprise = true` in penstock.toml if all its "
                "addresses are yours.",
                field="trust_apprise",
            )
        try:
            import apprise
        except ImportError as error:
            raise BadConfig("Apprise is not installed: pip install 'penstock[channels]'.") from error
        self._library = apprise
        self.secret_env = secret_env

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        service = self._library.Apprise()
        if not all(service.add(url) for url in self.secret.split()):
            return Outcome("failed", f"Apprise does not know an address in {self.secret_env}.", is_permanent=True)
        flight.leave()
        accepted = await asyncio.to_thread(service.notify, title=notice.subject, body=notice.text or notice.subject)
        return SENT if accepted else flight.lost("Apprise does not say whether it was sent.")
