"""The report in a real browser, without a network: nothing in the data runs, and what it offers works.

Skipped where there is no Chromium with its driver, or no selenium.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import browser, until, visit
from run_folder import EVIL, HEBREW, attacked, measured, published, relation, verification

from hfcf.report import report


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture
def show(driver: Any) -> Callable[..., Any]:
    """`show(folder)` opens its report; width, height and colour scheme can be chosen."""
    return lambda folder, *size, **settings: visit(driver, folder / "report.html", *size, **settings)


def count(driver: Any) -> int:
    return int(driver.execute_script("return document.getElementById('count').textContent").split()[0].replace(",", ""))


def choose(driver: Any, control: str, value: str, event: str = "change") -> None:
    driver.execute_script(
        "const it = document.getElementById(arguments[0]); it.value = arguments[1]; it.dispatchEvent(new Event(arguments[2]))",
        control, value, event,
    )  # fmt: skip


def test_nothing_in_the_data_runs(show: Callable[..., Any], tmp_path: Path) -> None:
    attacked(tmp_path)
    driver = show(tmp_path)
    for way in ("worst", "random", "best"):
        driver.execute_script("document.querySelector(`input[value=${arguments[0]}]`).click()", way)
    choose(driver, "find", "window.pwned", "input")
    until(driver, "document.getElementById('count').textContent.startsWith('1')")
    # What was sought is shown as it stands.
    for evil in EVIL[:2]:
        assert driver.execute_script("return document.getElementById('list').textContent.includes(arguments[0])", evil)
    assert driver.execute_script("return typeof window.pwned") == "undefined"
    assert driver.execute_script("return document.scripts.length") == 2
    assert driver.execute_script("return document.querySelectorAll('img, iframe, [onerror], [onmouseover]').length") == 0
    # The policy holds as well: what would get past the escapes does not run.
    driver.execute_script(
        "const it = document.createElement('script'); it.textContent = 'window.pwned = 1'; document.body.append(it)"
    )
    assert driver.execute_script("return typeof window.pwned") == "undefined"
    [refused] = driver.get_log("browser")
    assert "Content Security Policy" in refused["message"]


def test_the_page_asks_for_nothing_and_complains_of_nothing(show: Callable[..., Any], tmp_path: Path) -> None:
    published(verification(), tmp_path)
    driver = show(tmp_path)
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    shifts = """const [done] = arguments, sum = (list) => list.getEntries().reduce((sum, one) => sum + one.value, 0);
        new PerformanceObserver((list) => done(sum(list))).observe({ type: 'layout-shift', buffered: true });
        setTimeout(() => done(0), 500)"""
    assert driver.execute_async_script(shifts) < 0.05


def test_search_filters_order_and_pages(show: Callable[..., Any], tmp_path: Path) -> None:
    published(verification([f"Town{i}q is old." for i in range(30)]), tmp_path)
    driver = show(tmp_path)
    assert count(driver) == 40 + 60
    first = "document.querySelector('#list .id').textContent"
    assert driver.execute_script("return document.querySelectorAll('#list article').length") == 25
    driver.execute_script("document.querySelector('.pager').lastElementChild.click()")
    until(driver, "document.querySelector('.pager span').textContent === 'page 2 of 4'")
    assert driver.execute_script(f"return {first}") == "18:made:evidence"
    for sought, found in (("NEEDLE7", 1), ("town4q IS", 3), ("no candidate left 29", 1), ("nowhere", 0)):
        choose(driver, "find", sought, "input")
        until(driver, f"document.getElementById('count').textContent.startsWith('{found} of')")
    driver.execute_script("document.querySelector('#filters [type=reset]').click()")
    until(driver, "document.getElementById('count').textContent.startsWith('100 of')")
    for outcome, found in (("accepted", 40), ("rejected", 60), ("sources", 10), ("candidates", 50), ("all", 100)):
        choose(driver, "outcome", outcome)
        until(driver, f"document.getElementById('count').textContent.startsWith('{found} of')")
    choose(driver, "change", "evidence")
    until(driver, "document.getElementById('count').textContent.startsWith('30 of')")
    choose(driver, "change", "")
    choose(driver, "order", "0:-1")
    until(driver, f"{first} === '29'")  # a rejected candidate has a score as well
    # A reason of the funnel leads to its rows.
    driver.execute_script(
        "[...document.querySelectorAll('[data-why]')].find((it) => it.textContent.includes('cut off at N')).click()"
    )
    until(driver, "document.getElementById('count').textContent.startsWith('30 of')")
    assert "is cut off at" in driver.execute_script("return document.querySelector('#list .why').textContent")


def test_the_best_the_worst_and_some_at_random(show: Callable[..., Any], tmp_path: Path) -> None:
    published(verification([f"City {i} is old." for i in range(60)]), tmp_path)
    measured(tmp_path, {"fluency": [float(n) for n in range(80)], "similarity": [n / 80 for n in range(80)]}, {})
    report(tmp_path)
    driver = show(tmp_path)
    ids = "return [...document.querySelectorAll('#pairs-list .id')].map((it) => it.textContent)"
    assert driver.execute_script(ids)[:2] == ["0:made:claim", "0:made:evidence"]
    assert len(driver.execute_script(ids)) == 20
    driver.execute_script("document.querySelector('input[value=worst]').click()")
    until(driver, "document.querySelector('#pairs-list .id').textContent === '58:made:evidence'")
    choose(driver, "by", "1")
    until(driver, "document.querySelector('#pairs-list .id').textContent === '0:made:claim'")
    driver.execute_script("document.querySelector('input[value=random]').click()")
    until(driver, "!document.getElementById('again').hidden")
    drawn = driver.execute_script(ids)
    driver.execute_script("document.getElementById('again').click()")
    until(driver, f"document.querySelector('#pairs-list .id').textContent !== '{drawn[0]}'")
    assert len({*drawn}) == len({*driver.execute_script(ids)}) == 20


def test_changes_are_marked_word_by_word(show: Callable[..., Any], tmp_path: Path) -> None:
    published(verification(), tmp_path)
    driver = show(tmp_path)
    text = "return [...document.querySelectorAll('#list article:nth-child(2) ' + arguments[0])].map((it) => it.textContent)"
    assert [driver.execute_script(text, kind) for kind in ("del", "ins")] == [["1994"], ["2006"]]
    assert driver.execute_script(text, ".text")[1] == "Rome is old. Founded in 1994 2006: Rome is old."
    assert driver.execute_script(text, ".label") == ["SUPPORTS → REFUTES"]
    # Not by colour alone.
    line = "return getComputedStyle(document.querySelector(arguments[0])).textDecorationLine"
    assert [driver.execute_script(line, kind) for kind in ("del", "ins")] == ["line-through", "underline"]


def test_entities_of_relations_are_marked(show: Callable[..., Any], tmp_path: Path) -> None:
    published(relation(), tmp_path)
    driver = show(tmp_path)
    read = "return [...document.querySelectorAll('#list article:first-child ' + arguments[0])].map((it) => it.textContent)"
    parts = {kind: driver.execute_script(read, kind) for kind in ("mark.head", "mark.tail", "del", "ins")}
    assert parts == {"mark.head": ["eggs"], "mark.tail": ["buckets"], "del": ["moved into"], "ins": ["taken out of"]}


def test_right_to_left_text_runs_so(show: Callable[..., Any], tmp_path: Path) -> None:
    published(verification((HEBREW, "Rome is old.")), tmp_path)
    driver = show(tmp_path)
    read = "return [...document.querySelectorAll('#list .text')].map((it) => [getComputedStyle(it).direction, it.textContent])"
    directions = {direction for direction, text in driver.execute_script(read) if text.startswith(HEBREW)}
    assert directions == {"rtl"}
    assert {direction for direction, text in driver.execute_script(read) if text.startswith("Rome")} == {"ltr"}


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_needs_no_sideways_scroll(show: Callable[..., Any], tmp_path: Path, width: int) -> None:
    published(verification(("A" * 300, f"{'B' * 80} is old.", "c")), tmp_path, name="x" * 120, settings={"key" * 30: "v" * 200})
    summary = {"n": 4, "mean": 0.5, "median": 0.5, "histogram": {"edges": [0, 0.5, 1], "counts": [1, 3]}}
    measured(
        tmp_path, {"fluency": [1.0, 2.0, 3.0, 4.0]}, {"fluency": {"after": summary}, "m" * 60: {"after": {"share": 0.5, "n": 2}}}
    )
    columns = " | ".join("column" for _ in range(30))
    (tmp_path / "table.md").write_text(f"# T\n\n| {columns} |\n|{'---|' * 30}\n| {columns} |\n")
    report(tmp_path)
    driver = show(tmp_path, width=width, height=844)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("rows", [1, 0], ids=["none accepted", "no rows"])
def test_a_run_that_accepted_nothing_has_a_page_that_works(show: Callable[..., Any], tmp_path: Path, rows: int) -> None:
    made = verification(["a", "b", "c"])
    published(made.select([2] * rows), tmp_path)
    driver = show(tmp_path)
    assert driver.get_log("browser") == []
    assert count(driver) == 4 * rows
    assert driver.execute_script("return document.querySelectorAll('#list article').length") == 4 * rows
    assert driver.execute_script("return document.querySelector('#pairs h2').textContent") == "No pair was accepted"
    if rows:
        driver.execute_script("document.querySelector('[data-why]').click()")
        until(driver, "document.getElementById('count').textContent === '1 of 4 rows'")
    choose(driver, "find", "nowhere", "input")
    until(driver, f"document.getElementById('count').textContent === '0 of {4 * rows} rows'")


def test_without_scripts_nothing_on_it_is_dead(driver: Any, tmp_path: Path) -> None:
    published(verification(), tmp_path)
    shown = "return [...document.querySelectorAll(arguments[0])].filter((it) => it.getBoundingClientRect().height > 0).length"
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get((tmp_path / "report.html").resolve().as_uri())
        assert driver.execute_script(shown, ".funnel li") > 0
        assert driver.execute_script(shown, "noscript p") == 2
        assert driver.execute_script(shown, "#pairs, #rows") == 2
        assert driver.execute_script(shown, ".controls, .pager, .list, .live, select, #count") == 0
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def lengthened(out: Path, accepted: int, rejected: int) -> None:
    """The rows of a folder again and again, each with texts of its own, as long as a multi-hop corpus has them."""
    words = [f"word{i * 7919 % 4001}" for i in range(4001)]
    for config, rows in (("default", accepted), ("rejected", rejected)):
        path = next((out / "data" / config).glob("*.parquet"))
        table = pq.read_table(path)
        first, made = table.to_pylist(), []
        for i in range(rows):
            row, more = json.loads(json.dumps(first[i % len(first)])), f" {i} " + " ".join(words[i * 31 % 3900 :][:80])
            if config == "default":
                row["id"] = f"{i}"
                row["evidence"][1]["text"] = more
            else:
                row["source"]["evidence"][1]["text"] = more
            made.append(row)
        pq.write_table(pa.Table.from_pylist(made, schema=table.schema), path)
