"""What is known about a blob besides its bytes, in a note beside the file that tells which content it speaks of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.model.errors import BadParameter

METADATA_BYTES_MAX = 8 * 1024
BEFORE_MAX = 3  # earlier contents that a note still speaks of: so many puts in a row may crash before one is complete

Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob as it was read: whole, with what was said about this content and no other."""

    key: str
    content: bytes = field(repr=False)
    etag: str
    stored_at: int  # microseconds since 1970
    content_type: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.content)

    @classmethod
    def of(cls, key: str, content: bytes, stored_at: int, note: bytes | None) -> Blob:
        etag = etag_of(content)
        known = _entries(note).get(etag, {})
        return cls(key, content, etag, stored_at, known.get("content_type"), known.get("metadata", {}))


def about(name: str) -> str:
    """Where the note about a file is: under a name that no key can have."""
    return f".about-{name}"


def etag_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def attributes_of(content_type: str | None, metadata: Mapping[str, str] | None) -> Attributes:
    found: Attributes = {"content_type": content_type} if content_type else {}
    if metadata:
        found["metadata"] = dict(metadata)
    if len(json.dumps(found)) > METADATA_BYTES_MAX:
        raise BadParameter(f"What is said about a blob takes at most {METADATA_BYTES_MAX} bytes.", value=content_type)
    return found


def noted(note: bytes | None, etag: str, attributes: Attributes) -> bytes | None:
    """The note with these attributes added, or None if nothing has to be written.

    It also keeps what was said about contents before: one of them is still there until the new one takes its place.
    """
    if note is None and not attributes:
        return None
    newest = [(each, said) for each, said in _entries(note).items() if each != etag][-BEFORE_MAX:]
    return json.dumps(dict([*newest, (etag, attributes)])).encode()


def _entries(note: bytes | None) -> dict[str, Attributes]:
    try:
        entries = json.loads(note or b"{}")
    except ValueError:
        return {}
    if not isinstance(entries, dict):
        return {}
    return {etag: said for etag, said in entries.items() if isinstance(said, dict)}
