"""A socket to listen on, the tokens that count there, and the server of an app behind it."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import uvicorn

from penstock.app import App
from penstock.config import Config, KnownToken
from penstock.model.errors import BadConfig
from penstock.web.connection import CONNECTIONS_MAX, AddressLimit, limited
from penstock.web.site import make_site
from penstock.web.tokens import configured, hashed
from penstock.web.ui.access import Access

PORT_MAX = 65_535
LOGIN_LINK = "PENSTOCK_LOGIN_LINK"  # by which workers know the digest of the link that was printed
GRACE_SECONDS = 10  # what requests get to finish in after a signal


def tokens_for(config: Config, host: str) -> tuple[list[KnownToken], str | None]:
    """Return the tokens, and the secret of one made for this run if none is configured."""
    tokens = configured(config, os.environ)
    if tokens:
        return tokens, None
    if not _is_loopback(host):
        raise BadConfig(
            f"Other machines can reach {host}, and no token is configured. Set PENSTOCK_TOKEN, or list [[tokens]] in "
            "penstock.toml.",
            field="tokens",
        )
    secret = secrets.token_urlsafe(32)
    return [KnownToken("made for this run", hashed(secret))], secret


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listen(host: str, port: int, advice: str = "Choose another with --host and --port.") -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=CONNECTIONS_MAX)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BadConfig(f"Cannot listen on {host} port {port}: {why}. {advice}", field="port") from error


class Server(uvicorn.Server):
    """Ends by these signal handlers: uvicorn's own would end the process by the signal, not with an exit code."""

    interrupted = False
    when_stopped: Callable[[], None] = staticmethod(lambda: None)  # before it waits for what is under way

    def handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def _stop(self, number: signal.Signals) -> None:
        self.interrupted = self.interrupted or number is signal.SIGINT
        self.when_stopped()
        self.handle_exit(number, None)


def make_server(app: App, tokens: Sequence[KnownToken], limit: AddressLimit, access: Access | None = None) -> Server:
    """Return the server of an app's routes and its dashboard, which is not running yet."""
    site = make_site(app, tokens=tokens, access=access)
    server = Server(
        uvicorn.Config(
            site,
            http=limited(limit),
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            # Of a proxy that is named: its last X-Forwarded-For is the client. Of others these headers are ignored.
            proxy_headers=bool(limit.proxies),
            forwarded_allow_ips=list(limit.proxies),
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    server.when_stopped = site.state.dashboard.close
    return server


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
