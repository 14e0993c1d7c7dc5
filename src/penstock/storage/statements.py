"""Named SQL statements, kept in .sql files beside the Python that runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$\n?", re.MULTILINE)


def load(package: str, file: str) -> Mapping[str, str]:
    """The statements of one file by name, in the order they stand there."""
    text = (files(package) / file).read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    # The engine's texts carry their name, so that no user's text can ever share a cached statement with them.
    return {
        name: f"/* penstock {name} */ " + _COMMENT.sub("", body).strip().rstrip(";")
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
