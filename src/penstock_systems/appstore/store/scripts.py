"""Finds a script tag in a page without reading the page: half a megabyte of markup is looked through as bytes."""

from __future__ import annotations

from collections.abc import Iterator

TAG_BYTES_MAX = 2_000  # from `<script` to its end
MENTIONS_MAX = 50  # places where a page may name the script


def script_of(body: bytes, name: bytes) -> bytes | None:
    """What the script with this id holds, whatever else its tag says and in whatever order."""
    return next(scripts_of(body, name), None)


def scripts_of(body: bytes, mark: bytes) -> Iterator[bytes]:
    """What every script holds whose tag has the mark as the value of an attribute. One that does not end, ends here."""
    at = 0
    for _ in range(MENTIONS_MAX):
        at = body.find(mark, at)
        if at < 0:
            return
        opened = body.rfind(b"<", max(0, at - TAG_BYTES_MAX), at)
        closed = body.find(b">", at, at + TAG_BYTES_MAX)
        quoted = body[at - 1 : at] + body[at + len(mark) : at + len(mark) + 1]
        inside = opened >= 0 and closed >= 0 and b">" not in body[opened:at]
        at += len(mark)
        if inside and quoted in (b'""', b"''", b"= ", b"=>") and body[opened : opened + 7].lower() == b"<script":
            end = body.find(b"</script", closed)
            yield body[closed + 1 : end if end >= 0 else len(body)]
            at = max(at, end)
