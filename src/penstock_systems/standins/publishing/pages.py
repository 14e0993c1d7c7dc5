"""Fake pages of the web about any topic: the same address has the same sentences and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from penstock_systems.standins.appstore.chance import coded, mix

SENTENCES = 14
WHO = ("Most owners", "Accountants", "New founders", "Advisers", "Small firms", "Lawyers", "Regulators", "Buyers")
DO = ("compare", "track", "review", "plan", "document", "underestimate", "automate", "discuss")
WHAT = ("the cost of", "the rules for", "their records of", "the risks in", "the deadlines for", "the limits of")
WHEN = (
    "every quarter",
    "before the year ends",
    "in their first month",
    "once a week",
    "after each audit",
    "far too late",
)
WHY = (
    "because a missed detail is expensive",
    "since the forms changed",
    "so that nothing is forgotten",
    "although few guides explain it",
    "when the work grows",
    "and keep the receipts for it",
)


@dataclass(slots=True)
class Pages:
    """Mounted in the place of hosts of pages: `Pages().app` answers /{slug}/{number} of any host."""

    seed: int = 1
    requests: list[str] = field(default_factory=list)
    is_down: bool = False

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{slug}/{number:int}", self._page)])

    async def _page(self, request: Request) -> Response:
        slug, number = request.path_params["slug"], request.path_params["number"]
        self.requests.append(request.url.path)
        if self.is_down:
            return Response(status_code=404)
        title, lines = f"{slug.replace('-', ' ').capitalize()}: notes {number}", self.lines(slug, number)
        body = "".join(f"<p>{escape(' '.join(lines[at : at + 3]))}</p>" for at in range(0, len(lines), 3))
        page = f"<!doctype html><html><head><title>{escape(title)}</title></head><body><nav>Home</nav><article><h1>"
        return HTMLResponse(f"{page}{escape(title)}</h1>{body}</article><script>track()</script></body></html>")

    def lines(self, slug: str, number: int) -> list[str]:
        """Return the sentences of a page."""
        topic, subject = slug.replace("-", " "), coded(slug)
        return [self._sentence(topic, mix(self.seed, subject, number, place)) for place in range(SENTENCES)]

    def _sentence(self, topic: str, chance: int) -> str:
        def pick(options: tuple[str, ...], salt: int) -> str:
            return options[mix(chance, salt) % len(options)]

        if chance % 4 == 0:
            percent, who = mix(chance, 9) % 80 + 11, pick(WHO, 1).lower()
            return f"In one survey {percent} % of {who} {pick(DO, 2)} {pick(WHAT, 3)} {topic}."
        return f"{pick(WHO, 1)} {pick(DO, 2)} {pick(WHAT, 3)} {topic} {pick(WHEN, 4)}, {pick(WHY, 5)}."
