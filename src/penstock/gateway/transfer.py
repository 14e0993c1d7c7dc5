"""What it means when no answer came: a host that is down, a certificate that is bad, or something that speaks no HTTP."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import h11
import httpcore2
import httpx2

from penstock.gateway.failures import Forbidden
from penstock.model.errors import BadParameter, PenstockError, Unavailable, Unparsable

_TIMEOUTS = (TimeoutError, httpcore2.TimeoutException, httpx2.TimeoutException)
_OUR_MISTAKES = (httpcore2.LocalProtocolError, httpx2.LocalProtocolError)


def failed_transfer(error: Exception, url: str) -> PenstockError:
    # First, since a handshake that is given up looks like one that failed.
    if isinstance(error, _TIMEOUTS):
        return Unavailable(f"{url} did not answer in time.", reason="timeout", url=url)
    for cause in _causes(error):
        match cause:
            case PenstockError():
                return cause
            case ssl.SSLCertVerificationError():
                why = f"{url} shows a bad certificate: {cause.verify_message}."
                return Forbidden(why, reason="bad_certificate", url=url)
            case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
                break
            case ssl.SSLError():
                return Forbidden(f"{url} speaks no TLS that is safe: {cause.reason}.", reason="bad_tls", url=url)
            case socket.gaierror() | UnicodeError():
                return Unavailable(f"{url} has a host without an address: {cause}.", reason="dns", url=url)
            case h11.RemoteProtocolError(error_status_hint=431):
                return Unparsable(f"{url} was answered with too many headers.", reason="too_many_headers", url=url)
            case h11.RemoteProtocolError() if not str(cause).startswith("peer closed"):
                return Unparsable(f"{url} does not speak HTTP: {cause}.", reason="bad_http", url=url)
    if isinstance(error, _OUR_MISTAKES):
        return BadParameter(f"The request to {url} cannot be sent: {error}.", url=url)
    return Unavailable(f"{url} cannot be reached: {error}.", reason="connection", url=url)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
