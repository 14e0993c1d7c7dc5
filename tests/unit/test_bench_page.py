"""The page of all benchmarks and the README's figures: made of reports, complete, and honest. No figure is judged here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import brief, page
from bench.page import BENCHES, SECTIONS, Found, behind, cell, cleaned, found, read, section_of, table, tables
from bench.queues_report import DRAIN, ONE_BY_ONE, P50
from bench.report import ROOT, Bar, Report, Row, arguments

HOST = "tin-can-7"
HOSTILE = "it | fell\n\x1b[31m <b>over</b> \u202e `rm` [here](x)"
README = f"# Penstock\n\nbefore\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n"


def queues(**more: Any) -> Found:
    """Penstock drains faster than its peer; one by one the peer is ahead, and between processes it is as quick."""
    rows = [
        Row("penstock", DRAIN, 60_000, "messages/s", 120_000, 0.5),
        Row("penstock", ONE_BY_ONE, 1_900, "messages/s", 5_000, 0.38),
        Row("penstock", P50, 1.5, "ms", 0.5, 3.0),
        Row("penstock, two processes", P50, 2.6, "ms", 0.5, 5.2),
        Row("penstock-postgres", DRAIN, 20_000, "messages/s", 120_000, 0.17, "postgres", "fsync=on"),
        Row("huey", DRAIN, 4_000, "messages/s", 120_000, 0.033, durability="full: WAL; at most once"),
        Row("huey", ONE_BY_ONE, 4_600, "messages/s", 5_000, 0.92),
        Row("huey", P50, 2.0, "ms", 0.5, 4.0),
        Row("raw loop", DRAIN, 120_000, "messages/s"),
    ]
    bars = [
        Bar("drain beside huey", 15.0, 10.0, at_most=False, unit="x huey's drain"),
        Bar(P50, 5.2, 5.0, at_most=True, unit="x fdatasync"),
    ]
    told = {
        "commit": "0123456789abcdef+",
        "date": "2026-01-02 03:04",
        "size": "brief",
        "versions": {"penstock": "0.1", "huey": "3.5", "system": "Linux 6.1.2-box-v4 x86_64"},
        "machine": {"cores": 2, "fdatasync_p50_ms": 0.2},
        "skipped": [{"subject": "celery", "reason": f"{HOST}: /opt/hidden/place/redis-server is not installed"}],
        "suspects": [{"subject": "huey", "reason": "far below what it reaches"}],
    }
    return Found("queues", rows=rows, bars=bars, **{**told, **more})


def block_of(readme: str) -> str:
    found = re.search(f"{re.escape(page.BEGIN)}\n(.*)\n{re.escape(page.END)}", readme, re.DOTALL)
    assert found is not None, f"the README has no {page.BEGIN}"
    return found.group(1)


def cells_of(markdown: str) -> list[list[str]]:
    """The lines of the first table in a text, without the one below its head."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:1] + lines[2:]]


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def part(text: str, heading: str) -> str:
    return text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


# -- the page -------------------------------------------------------------------------------------------------------


def test_the_page_has_every_section_even_where_nothing_ran() -> None:
    text = page.whole({})

    assert headings(text) == [*SECTIONS, page.BETTER, page.SKIPPED]
    for section in SECTIONS:
        assert "Not run." in part(text, section)


def test_a_benchmark_without_a_report_is_reported_as_not_run() -> None:
    text = page.whole({"queues": queues()})

    assert "| queues | all of it |" not in text
    for name in BENCHES:
        if name != "queues":
            assert f"| {name} | all of it | not run: no report |" in part(text, page.SKIPPED)
            assert f"| {name} | **not run** |" in text


def test_a_table_has_each_queue_with_its_ratio_to_the_raw_loop_and_to_penstock() -> None:
    lines = part(page.whole({"queues": queues()}), "Throughput").splitlines()

    (peer,) = (line for line in lines if line.startswith("| huey |"))
    assert peer == "| huey | sqlite | full: WAL; at most once | 4,000 | 4,600 | 0.033 | 15 |"
    subjects = [line.split(" | ")[0].removeprefix("| ") for line in lines if " | " in line]
    assert subjects.index("penstock") < subjects.index("huey") < subjects.index("raw loop")


def test_bars_are_met_missed_or_unsure() -> None:
    bars = [
        Bar("fast", 3, 2, at_most=False, unit="x"),
        Bar("slow", 3, 2, at_most=True, unit="x"),
        Bar("who knows", 3, 2, at_most=True, unit="x", sure=False),
    ]

    text = page.whole({"workflows": Found("workflows", bars=bars)})

    assert "| fast | 3 x | at least 2 | met |" in text
    assert "| slow | 3 x | at most 2 | **missed** |" in text
    assert "| who knows | 3 x | at most 2 | unsure: slow disk |" in text
    assert "| workflows | slow | 3 x | at most 2 |" in part(text, page.BETTER)
    assert "who knows" not in part(text, page.BETTER)


def test_where_a_peer_is_better_comes_from_the_rows() -> None:
    text = part(page.whole({"queues": queues()}), page.BETTER)

    assert f"| {ONE_BY_ONE}, messages/s | huey (sqlite, every commit) | 4,600 | penstock 1,900: 0.413 |" in text
    # Sent and handled in one process Penstock is quicker; between two processes, as peers are measured, it is not.
    assert f"| {P50}, ms | huey (sqlite, every commit) | 2 | penstock, two processes 2.6: 0.769 |" in text
    assert DRAIN not in text


def test_a_peer_on_another_store_stands_beside_penstock_on_sqlite() -> None:
    rows = [
        Row("penstock", DRAIN, 60, "messages/s"),
        Row("penstock-postgres", DRAIN, 20, "messages/s", store="postgres"),
        Row("nats", DRAIN, 40, "messages/s", store="nats"),
        Row("pgqueuer", DRAIN, 30, "messages/s", store="postgres"),
        Row("raw loop", DRAIN, 900, "messages/s"),
    ]

    ((theirs, ours),) = behind(Found("queues", rows=rows, versions={"nats": "2", "pgqueuer": "1"}))

    assert (theirs.subject, [row.subject for row, _ in ours]) == ("pgqueuer", ["penstock-postgres"])


def test_no_peer_is_better_only_where_some_peer_ran() -> None:
    alone = Found("queues", rows=[Row("penstock", DRAIN, 60, "messages/s")])
    beaten = Found("queues", rows=[*alone.rows, Row("huey", DRAIN, 4, "messages/s")], versions={"huey": "3"})

    assert "No peer was run" in page.whole({"queues": alone})
    assert "No peer that ran was better" in page.whole({"queues": beaten})


def test_what_was_skipped_and_what_is_suspect_is_reported() -> None:
    text = part(page.whole({"queues": queues()}, host=HOST), page.SKIPPED)

    assert "| queues | celery | this machine: redis-server is not installed |" in text
    assert "| queues | huey | suspect: far below what it reaches |" in text


def test_the_page_tells_when_and_how_it_was_measured_and_not_where() -> None:
    reports = {"queues": queues(), "pace": Found("pace", "fedcba9876543210", "2026-01-03 00:00", "full")}

    text = page.whole(reports, host=HOST)

    assert (
        "Measured on 2026-01-02 to 2026-01-03, commit 0123456789+, fedcba9876, size brief, full, 2 or ? processors."
        in text
    )
    assert "| huey | 3.5 |" in text
    assert "synchronous=FULL" in text
    assert "/opt/" not in text
    assert HOST not in text
    assert "box-v4" not in text


def test_figures_of_a_run_that_was_too_small_are_marked() -> None:
    assert "Too small to be relied on**: queues" in page.whole({"queues": queues(size="smoke")})
    assert "Too small" not in page.whole({"queues": queues()})


def test_every_row_and_every_bar_is_in_the_tables_of_one_section() -> None:
    """Of measures that nobody thought of too."""
    for name in BENCHES:
        rows = [Row("penstock", f"measure {at} of {unit}", at + 1, unit) for at, unit in enumerate(("MB", "ms", "x/s"))]
        if name == "workflows":
            rows = [Row("penstock", row.measure, row.value, "workflows/s") for row in rows]
        if name == "queues":
            rows = [Row("penstock", measure, 1, "messages/s") for measure in (DRAIN, ONE_BY_ONE, P50)]
        report = Found(name, rows=rows, bars=[Bar("idle pages", 0, 0, at_most=True, unit="")])
        shown = {section: "\n".join(tables(report, section)) for section in SECTIONS}
        for row in rows:
            assert [section for section in SECTIONS if row.measure in shown[section]] == [
                section_of(name, row.measure, row.unit)
            ]
        assert [section for section in SECTIONS if "idle pages" in shown[section]] == ["Idle cost"]


@pytest.mark.parametrize(
    "name, measure, unit, section",
    [
        ("store", "idle send to handler, p50", "ms", "Latency"),
        ("store", "idle processor time", "% of one core", "Idle cost"),
        ("store", "resident memory after the runs", "MB", "Memory"),
        ("store", "claim of 100 at 1,000 rows, p50", "ms", "Latency"),
        ("appstore", "scale, 300 apps: database", "MB", "Pipeline"),
        ("appstore", "scale, 300 apps: rows read by an idle crawl cycle", "rows", "Idle cost"),
        ("appstore", "memory: 200 apps in the registry", "x 100", "Memory"),
        ("sleeping", "anything", "s", "Memory"),
        ("history", "append", "us/entry", "Throughput"),
    ],
)
def test_what_was_measured_decides_the_section(name: str, measure: str, unit: str, section: str) -> None:
    assert section_of(name, measure, unit) == section


def test_many_alike_become_their_median_and_their_most() -> None:
    rows = [Row("a new text", f"shape {at}", float(at), "us") for at in range(21)]

    (text,) = tables(Found("meter", rows=rows), "Throughput")

    assert "| a new text: median of 21 |" in text
    assert "| a new text: most of 21 |" in text
    assert "shape" not in text


# -- hostile text ---------------------------------------------------------------------------------------------------


def test_what_a_process_said_cannot_leave_its_cell() -> None:
    text = table(("what", "why"), [("a", HOSTILE)])

    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert re.search(r"(?<!\\)[<`\[]", text) is None
    assert len(re.findall(r"(?<!\\)\|", text.splitlines()[-1])) == 3


@pytest.mark.parametrize(
    "said, shown",
    [
        ("no /usr/lib/postgresql/15/bin/postgres here", "no postgres here"),
        ("'/srv/somebody/x y' failed", "'x y' failed"),
        ("http://127.0.0.1:8788/a/b", "http://127.0.0.1:8788/a/b"),
        ("12 messages/s and 3/4", "12 messages/s and 3/4"),
        (f"host {HOST} is down", "host this machine is down"),
    ],
)
def test_a_path_of_the_machine_is_not_shown(said: str, shown: str) -> None:
    assert cleaned(said, HOST) == shown


def test_a_cell_stays_as_it_is_where_nothing_is_wrong_with_it() -> None:
    assert cell("drain, 1,000 messages/s: **missed**") == "drain, 1,000 messages/s: **missed**"


# -- the README -----------------------------------------------------------------------------------------------------


def test_only_what_is_between_the_markers_is_replaced() -> None:
    assert page.replaced(README, "new\n\nlines") == README.replace("old", "new\n\nlines")
    assert block_of(page.replaced(README, "new")) == "new"


@pytest.mark.parametrize("text", ["", page.BEGIN, README + page.BEGIN])
def test_a_readme_without_its_markers_is_not_touched(text: str) -> None:
    with pytest.raises(AssertionError):
        page.replaced(text, "new")


def test_the_readme_shows_the_best_peer_even_where_it_is_better() -> None:
    head, *lines = cells_of(page.front({"queues": queues()}))

    assert head == list(page.FRONT_HEAD)
    assert lines[0][1:] == ["60,000 messages/s", "4,000, huey", "15"]
    assert lines[1][1:] == ["1,900 messages/s", "4,600, huey", "0.413"]
    assert lines[2][1:] == ["2.6 ms", "2, huey", "1.3"]
    assert all(line[1] == page.NOT_RUN for line in lines[3:])


def test_an_idle_app_stands_beside_its_bar_and_others_beside_their_reference() -> None:
    idle = Row("penstock", "idle processor time", 0.05, "% of one core")
    sleeping = [Row("penstock", f"peak memory, {runs} runs that sleep", 60, "MB", 50, 1.2) for runs in (10, 100)]
    reports = {
        "store": Found("store", rows=[idle], bars=[Bar(idle.measure, 0.05, 0.1, at_most=True, unit="%")]),
        "sleeping": Found("sleeping", rows=sleeping),
    }

    lines = {line[0]: line[1:] for line in cells_of(page.front(reports))}

    assert lines["CPU time of an idle app"] == ["0.05 % of one core", "at most 0.1", "0.5"]
    assert lines["memory of the largest number of sleeping runs"] == ["60 MB", "50, a tenth of them", "1.2"]


# -- plots ----------------------------------------------------------------------------------------------------------


def test_plots_are_drawn_of_what_was_measured_and_old_ones_go(tmp_path: Path) -> None:
    (tmp_path / "memory.svg").write_text("<svg/>", "utf-8")

    drawn = page.plot({"queues": queues()}, tmp_path)

    assert drawn == ["Throughput", "Latency"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latency.svg", "throughput.svg"]


def test_a_plot_is_whole_and_legible_by_day_and_by_night(tmp_path: Path) -> None:
    page.plot({"queues": queues()}, tmp_path)
    text = (tmp_path / "throughput.svg").read_text("utf-8")

    root = ElementTree.fromstring(text)

    assert root.tag.endswith("svg")
    assert "prefers-color-scheme: dark" in text
    assert "href" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in text
    assert len(text) < 30_000


# -- from end to end, and as it is kept -----------------------------------------------------------------------------


def test_the_program_writes_page_plots_and_readme_from_reports(tmp_path: Path) -> None:
    (tmp_path / "docs/explain").mkdir(parents=True)
    (tmp_path / "README.md").write_text(README, "utf-8")
    report = Report("pace", 7, size="brief", settings={"services of each": "4"})
    report.rows.append(Row("ban", page.MEAN, 97.0, "%", 100.0))
    report.write(tmp_path / "reports")
    command = [sys.executable, str(ROOT / "bench" / "page.py")]

    ended = subprocess.run(
        [*command, "--reports", str(tmp_path / "reports"), "--into", str(tmp_path)], capture_output=True, text=True
    )

    assert ended.returncode == 0, ended.stderr
    text = (tmp_path / page.PAGE).read_text("utf-8")
    assert "services of each: 4" in text
    assert str(tmp_path) not in text
    assert "![Pacing](benchmarks/pacing.svg)" in text
    assert (tmp_path / page.PLOTS / "pacing.svg").is_file()
    assert_agree((tmp_path / "README.md").read_text("utf-8"), text, tmp_path)


def test_what_the_repository_keeps_agrees_in_form() -> None:
    """Figures come from `make bench`; that they stand where they belong is what is looked at here."""
    assert_agree((ROOT / "README.md").read_text("utf-8"), (ROOT / page.PAGE).read_text("utf-8"), ROOT)


def assert_agree(readme: str, text: str, root: Path) -> None:
    block = block_of(readme)
    head, *lines = cells_of(block)
    assert head == list(page.FRONT_HEAD)
    assert [line[0] for line in lines] == [each.words for each in page.HEADLINES]
    assert headings(text) == [*SECTIONS, page.BETTER, page.SKIPPED]
    told = block.split(" All results", 1)[0]
    assert told in text.split("\n\n"), "the README and the page are of different runs"
    on_page = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert {f"{page.PLOTS.name}/{path.name}" for path in (root / page.PLOTS).glob("*.svg")} == set(on_page)
    in_front = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", block)
    assert len(in_front) == min(page.FRONT_PLOTS, len(on_page))
    assert {each.removeprefix("docs/explain/") for each in in_front} <= set(on_page)
    assert re.search(r"(?<![\w:/.~-])/(usr|tmp|var|opt|home|root|work)/", text + block) is None


def test_a_report_tells_its_size_and_its_options_and_can_be_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "argv", [str(ROOT / "bench" / "pace.py"), "--brief", "--out", str(tmp_path), "--first", "3"]
    )
    report = Report("pace", 3, size="brief", bars=[Bar("bans", 0, 0, at_most=True, unit="")])
    report.rows.append(Row("ban", page.MEAN, 97.0, "%", 100.0))
    report.write(tmp_path)

    back = read(tmp_path)["pace"]

    assert (back.arguments, back.size, back.rows, back.bars) == (
        ["--brief", "--first", "3"],
        "brief",
        report.rows,
        report.bars,
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", back.date)
    assert str(tmp_path) not in page.whole({"pace": back})


def test_a_report_of_before_there_were_sizes_is_read_too() -> None:
    old = {"name": "pace", "commit": "abc", "seed": 1, "rows": [], "unknown": 1}

    assert (found(old).size, found(old).date) == ("", "")
    assert "| pace | - | abc |" in page.whole({"pace": found(old)})


def test_a_program_that_is_no_benchmark_tells_no_options() -> None:
    assert arguments() == []


# -- all of them ----------------------------------------------------------------------------------------------------


def test_every_benchmark_can_be_brief_and_has_a_target_of_its_own() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (listed,) = re.findall(r"^BENCHES = (.*)$", makefile, re.MULTILINE)

    assert set(listed.split()) == set(BENCHES) == set(brief.SECONDS)
    for name in BENCHES:
        assert f"\nbench-{name}: " in makefile
        text = (ROOT / "bench" / f"{name}.py").read_text("utf-8")
        assert '"--brief"' in text
        assert '"--out"' in text


def test_all_of_them_together_take_less_than_twenty_minutes_by_what_is_known_of_each() -> None:
    assert sum(brief.SECONDS.values()) <= 17 * 60


def test_a_benchmark_that_fails_leaves_no_old_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = tmp_path / "bench"
    bench.mkdir()
    (bench / "meter.py").write_text("raise SystemExit('out of luck')", "utf-8")
    (bench / "points.py").write_text(
        "import sys, pathlib, json\n"
        "pathlib.Path(sys.argv[-1], 'points.json').write_text(json.dumps({'name': 'points', 'size': 'brief'}))\n",
        "utf-8",
    )
    out = tmp_path / "out"
    out.mkdir()
    (out / "meter.json").write_text(json.dumps({"name": "meter"}), "utf-8")
    (tmp_path / "docs/explain").mkdir(parents=True)
    (tmp_path / "README.md").write_text(README, "utf-8")
    monkeypatch.setattr(brief, "ROOT", tmp_path)
    given = ["brief.py", "--only", "points,meter", "--out", str(out), "--into", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given)

    with pytest.raises(SystemExit) as ended:
        brief.main()

    assert ended.value.code == "failed: meter"
    assert "out of luck" in (out / "meter.log").read_text("utf-8")
    text = (tmp_path / page.PAGE).read_text("utf-8")
    assert "| meter | all of it | not run: no report |" in text
    assert "| points | - | unknown | brief |" in text
