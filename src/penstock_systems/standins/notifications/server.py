"""All fake servers of notifications as one ASGI app, for a test, for `--standins`, and for a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette

from penstock_systems.standins.notifications.arrivals import Arrivals
from penstock_systems.standins.notifications.chats import Chats
from penstock_systems.standins.notifications.receivers import Receivers, Times, Verify
from penstock_systems.standins.notifications.resend import Faults, Resend

HOSTS = (
    "https://api.resend.com",
    "https://hooks.example.com",
    "https://hooks.slack.com",
    "https://discord.com",
    "https://api.telegram.org",
)


def make_servers(
    now: Callable[[], float],
    *,
    count: Path | None = None,
    seed: int = 1,
    faults: Faults | None = None,
    times: Times | None = None,
    begins: float | None = None,
    verify: Verify | None = None,
    chats_lost: float = 0.0,
) -> Starlette:
    """Return the app. Its `state` has the `arrivals`, `resend` and `receivers`."""
    arrivals = Arrivals(count)
    resend = Resend(arrivals, now, seed=seed, faults=faults)
    receivers = Receivers(arrivals, now, begins=begins, times=times, verify=verify)
    app = Starlette(
        routes=[*resend.routes, *receivers.routes, *Chats(arrivals, now, lost=chats_lost, seed=seed).routes]
    )
    app.state.arrivals, app.state.resend, app.state.receivers = arrivals, resend, receivers
    return app
