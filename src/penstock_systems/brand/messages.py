"""The commands and events between the services. A message holds ids and short texts; articles and pages stay in tables."""

from __future__ import annotations

from typing import Literal

import msgspec

import penstock as ps

Priority = Literal["high", "normal", "low"]


class ResearchRequested(ps.Command, type="research.requested"):
    """Scalable Media asks GatherFeed to research a keyword."""

    brand_slug: str
    keyword: str
    priority: Priority = "normal"


class ResearchCompleted(ps.Event, type="research.completed"):
    brand_slug: str
    research_id: str
    keyword: str


class ResearchFailed(ps.Event, type="research.failed"):
    brand_slug: str
    keyword: str
    reason: str


class ContentGenerated(ps.Event, type="content.generated"):
    """An article is approved and can be published."""

    brand_slug: str
    content_id: str
    keyword: str
    word_count: int


class ContentFailed(ps.Event, type="content.failed"):
    """An article was not written, or not published. A target does not know its keyword."""

    brand_slug: str
    content_id: str
    keyword: str
    reason: str


class ContentPublish(ps.Command, type="content.publish"):
    """Scalable Media asks Pages-Plus to publish an article at one target."""

    brand_slug: str
    content_id: str
    target: str = "pages-plus"


class ContentPublished(ps.Event, type="content.published"):
    brand_slug: str
    content_id: str
    published_url: str
    target: str = "pages-plus"


class ArticleContext(msgspec.Struct, frozen=True):
    title: str
    keyword: str
    meta_description: str
    key_points: list[str]


class SocialCreate(ps.Command, type="social.create"):
    """Scalable Media asks Social-Good to post about a published article."""

    brand_slug: str
    content_id: str
    article_context: ArticleContext
    published_url: str


class SocialPosted(ps.Event, type="social.posted"):
    brand_slug: str
    content_id: str
    platform: str
    post_url: str


class BrandResearch(ps.Command, type="brand.research"):
    """A person or a program asks for articles about keywords."""

    brand_slug: str
    keywords: list[str]
    priority: Priority = "normal"
    request_id: str = ""


class BrandAudit(ps.Command, type="brand.audit"):
    brand_slug: str


class ContentArchive(ps.Command, type="content.archive"):
    content_id: str


class ReportFiled(ps.Command, type="report.filed"):
    """A machine reports something that a person should read, such as an alert."""

    machine: str
    agent: str
    text: str
