"""The app of the brand system: four services with five queues, and what each may read of the others."""

from __future__ import annotations

from pathlib import Path

import penstock as ps
from penstock_systems.brand.messages import (
    BrandAudit,
    BrandResearch,
    ContentArchive,
    ContentFailed,
    ContentGenerated,
    ContentPublish,
    ContentPublished,
    ReportFiled,
    ResearchCompleted,
    ResearchFailed,
    ResearchRequested,
    SocialCreate,
    SocialPosted,
)
from penstock_systems.brand.settings import Settings

MIGRATIONS = Path(__file__).with_name("migrations")
BRAIN, EYES, MOUTH, HANDS = "scalable-media-api", "gatherfeed-api", "pages-plus", "social-good"

app = ps.App("brand", serve=True)
settings = Settings.of(app.config.systems)

brain = app.service(BRAIN, tables="sm_", uses=[EYES], migrations=MIGRATIONS / "scalable_media")
eyes = app.service(EYES, tables="gf_", migrations=MIGRATIONS / "gatherfeed")
mouth = app.service(MOUTH, tables="pp_", uses=[BRAIN], migrations=MIGRATIONS / "pages_plus")
hands = app.service(HANDS, tables="sg_", uses=[BRAIN], migrations=MIGRATIONS / "social_good")

web = app.http(user_agent=settings.page_user_agent, rules=ps.Rules(allow=settings.allow))
# A search result is an address that anyone may have written: it leads to none of the private addresses that `web` calls.
reader = app.http(user_agent=settings.page_user_agent, rules=ps.Rules(allow=settings.allow_pages))

# Each service has a folder of its own, which no other reads.
fetched_pages = eyes.blobs(
    Path(settings.blobs, "gatherfeed-data"), expiries=[ps.Expiry("pages/", days=settings.pages_days)], durable=False
)
written_articles = brain.blobs(Path(settings.blobs, "scalable-media-data"))

researches = eyes.queue("gatherfeed-commands", ResearchRequested, batch=5, batch_wait=10, retries=3)
publications = mouth.queue("publish-commands", ContentPublish, batch=10, batch_wait=5, retries=3)
postings = hands.queue("social-commands", SocialCreate, batch=10, batch_wait=5, retries=3)
wishes = brain.queue(
    "sm-commands", BrandResearch | BrandAudit | ContentArchive | ReportFiled, batch=10, batch_wait=5, retries=3
)
events = brain.queue(
    "brand-events",
    ResearchCompleted | ResearchFailed | ContentGenerated | ContentFailed | ContentPublished | SocialPosted,
    batch=10,
    batch_wait=5,
    retries=3,
)
