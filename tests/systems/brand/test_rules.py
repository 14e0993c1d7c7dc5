"""The rules of the brand system: what an article is, what is checked, and what a post looks like."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock_systems.brand.rules.articles import Article, Citation, is_web, read_article
from penstock_systems.brand.rules.checking import Flag, Source, check, is_quoted
from penstock_systems.brand.rules.posts import LENGTHS, PLATFORMS, compose, facets
from penstock_systems.brand.rules.texts import cut, graphemes, numbers, slug_of
from penstock_systems.brand.social_good.networks import plain_commentary

PAGE = (
    "Most owners keep their receipts for seven years. In one survey 42 % of advisers track the deadlines for an LLC. "
    "A missed form costs $1,250 in the first year, and the office answers letters slowly."
)
SOURCES = [Source(url="https://a.example/1", title="LLC notes", text=PAGE)]
SENTENCE = "Most owners keep their receipts for the years of an LLC because the office answers letters slowly. "


def article(body: object = SENTENCE * 8, **changes: object) -> Article:
    given = {
        "title": "LLC receipts",
        "description": "What to keep.",
        "body": body,
        "key_points": ["keep receipts"],
        "citations": [],
    }
    return read_article(given | changes)


def kinds(flags: list[Flag]) -> list[str]:
    return [flag.kind for flag in flags]


def checked(found: Article, **existing: str) -> list[str]:
    return kinds(check(found, SOURCES, existing=existing, banned=["act now"]))


@pytest.mark.parametrize(
    "quote, found",
    [
        ("Most owners keep their receipts for seven years.", True),
        ("most OWNERS keep their receipts, for seven years", True),
        ("Most owners keep all their receipts for seven long years", True),  # eight of ten words, in order
        ("Most owners lose their old receipts after two years", False),
        ("years seven for receipts their keep owners most", False),  # the words, in another order
        ("Most advisers keep $1,250 in slowly", False),  # words from all over the page
        ("", False),
    ],
)
def test_a_quotation_is_found_if_four_of_five_words_are_there_in_order(quote: str, found: bool) -> None:
    assert is_quoted(quote, PAGE) is found


def test_a_quotation_of_common_words_is_not_found_all_over_a_long_page() -> None:
    page = " ".join(f"the {word} of a plan" for word in PAGE.split() * 40)

    assert not is_quoted("the office of a missed plan in the seven receipts of a year", page)


def test_an_article_near_its_research_has_no_flag() -> None:
    quoted = Citation("https://a.example/1", "Most owners keep their receipts for seven years.")

    assert checked(article(citations=[{"url": quoted.url, "quote": quoted.quote}])) == []


@pytest.mark.parametrize(
    "changes, kind",
    [
        ({"citations": [{"url": "https://a.example/1", "quote": "Nobody keeps any receipts at all."}]}, "citation"),
        ({"citations": [{"url": "https://b.example/", "quote": "Most owners keep their receipts"}]}, "citation"),
        ({"body": SENTENCE * 8 + "It was 43 % last year."}, "number"),
        ({"body": SENTENCE * 8 + "Act now."}, "banned"),
        ({"body": "Purple elephants dance around wooden kitchens during summer evenings. " * 14}, "distance"),
    ],
)
def test_what_the_sources_do_not_say_is_flagged(changes: dict[str, object], kind: str) -> None:
    assert checked(article(**changes)) == [kind]


def test_numbers_of_the_sources_and_small_counts_are_no_flag() -> None:
    assert checked(article(SENTENCE * 8 + "42% track them. A form costs $1250. There are 3 forms.")) == []


def test_an_article_like_another_is_flagged_and_one_on_the_same_topic_is_not() -> None:
    other = "Advisers track the deadlines for an LLC, and a missed form costs more than the letters of the office. " * 8

    assert checked(article(), old=article().text(), other=other) == ["similar"]


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"title": "  "}, "title is empty"),
        ({"title": "t" * 121}, "more than 120 characters"),
        ({"body": "Too short."}, "has 2 words"),
        ({"body": ""}, "has 0 words"),
        ({"key_points": []}, "no key points"),
        ({"citations": [{"url": 5}]}, "citations"),
        ({"body": None}, "body"),
    ],
)
@pytest.mark.spec("D-18")
def test_an_answer_that_is_no_article_is_refused_with_the_reason(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ps.Unparsable, match=problem):
        article(**changes)


def test_html_and_links_of_a_model_are_text_or_harmless() -> None:
    hostile = (
        "<script>alert(1)</script> [click](javascript:alert(2)) ![x](http://a.example/x.png) <img src=x onerror=y>\n\n"
    )
    shown = article(hostile + SENTENCE * 8).html()

    assert not any(active in shown for active in ("<script", "<img", 'href="javascript:'))
    assert "&lt;script&gt;" in shown


def test_characters_that_break_a_feed_are_left_out_and_an_address_that_is_a_script_is_no_source() -> None:
    shown = article(title="One\x01 two\x00 \ud800", key_points=["a\x08b"])

    assert (shown.title.split(), shown.key_points) == (["One", "two"], ["a b"])
    assert [is_web(url) for url in ("https://a.example/", "HTTP://a.example", "javascript:alert(1)", " https")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "title", ["Short", "A very long title about forms " * 12, "日本語の題名" * 60, "👩‍👩‍👧‍👦🇩🇪" * 200]
)
def test_a_post_fits_its_network_and_ends_with_the_address(platform: str, title: str) -> None:
    url = "https://llctax.example/blog/receipts"
    text = compose(platform, title=title, description="d " * 400, key_points=["one", "two"], url=url)  # type: ignore[arg-type]

    most, counted = LENGTHS[platform]  # type: ignore[index]
    assert text.endswith(f"\n\n{url}")
    assert len(graphemes(text.removesuffix(url))) + (counted or len(url)) <= most


def test_a_title_mentions_no_one_on_linkedin_and_does_not_end_the_text() -> None:
    assert plain_commentary("Tools (2026), by @[Acme](urn:li:organization:1) #sale") == (
        r"Tools \(2026\), by \@\[Acme\]\(urn:li:organization:1\) \#sale"
    )
    assert plain_commentary("a\\b {c|d} <e> *f* _g_ ~h") == r"a\\b \{c\|d\} \<e\> \*f\* \_g\_ \~h"
    assert plain_commentary("Tools: what to know\n\nhttps://a.example/blog/b-1") == (
        "Tools: what to know\n\nhttps://a.example/blog/b-1"
    )


def test_the_mark_of_a_link_counts_bytes() -> None:
    [facet] = facets("Größe 👍 https://a.example/x", "https://a.example/x")

    assert facet["index"] == {"byteStart": 13, "byteEnd": 32}


def test_graphemes_count_as_a_reader_counts() -> None:
    assert len(graphemes("e\u0301👩‍👩‍👧‍👦🇩🇪🇫🇷1\ufe0f\u20e3")) == 5
    assert cut("one two three", 9) == "one two…"


def test_numbers_and_slugs_have_one_form() -> None:
    assert numbers("It costs $1,250.50, or 42 % of 3.000 in 2026.") == ["$1250.50", "42%", "3.000", "2026"]
    assert [slug_of(title) for title in ("Ünïcode & Co.!", "日本", "a" * 90)] == ["unicode-co", "article", "a" * 80]
