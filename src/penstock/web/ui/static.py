"""Files that browsers keep: each under a digest of its content, so that a new version has a new address."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from starlette.responses import Response

KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
FOREVER = "public, max-age=31536000, immutable"
DIGITS = 12


class Static:
    """The files of one folder, read once."""

    def __init__(self, folder: Path) -> None:
        self._files = {each.name: each.read_bytes() for each in sorted(folder.iterdir()) if each.suffix in KINDS}
        self._digests = {name: sha256(content).hexdigest()[:DIGITS] for name, content in self._files.items()}

    def path(self, prefix: str, name: str) -> str:
        return f"{prefix}/static/{self._digests[name]}/{name}"

    def answer(self, digest: str, name: str) -> Response:
        if self._digests.get(name) != digest:
            return Response("There is no such file.", 404, media_type="text/plain")
        kind = KINDS[Path(name).suffix]
        return Response(self._files[name], media_type=kind, headers={"Cache-Control": FOREVER})
