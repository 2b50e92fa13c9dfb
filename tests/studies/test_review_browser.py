"""The review page in a real browser, without a network: a person edits, marks, saves, and what is saved is imported.

Skipped where there is no Chromium with its driver, or no selenium.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser, until, visit
from review_rows import kept, row, undecidable

from hfcf.studies.human.export import RATERS
from hfcf.studies.review.collect import import_
from hfcf.studies.review.export import export
from hfcf.tasks.structures.model import CLAIM, Structure
from hfcf.tasks.structures.program_reader import LINKING

EVIL = "<img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>"


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def driver(downloads: Path) -> Iterator[Any]:
    with browser(downloads) as one:
        yield one


def one(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def texts(driver: Any, selector: str) -> list[str]:
    return [element.text for element in driver.find_elements("css selector", selector)]


def write(driver: Any, selector: str, text: str) -> None:
    """Replace what stands in a control, as a person types it."""
    from selenium.webdriver.common.keys import Keys

    control = one(driver, selector)
    control.send_keys(Keys.CONTROL + "a")
    control.send_keys(text)


def arrows(driver: Any) -> int:
    return len(driver.find_elements("css selector", "#drawing .arrow"))


def answer(driver: Any, **answers: int) -> None:
    for name, value in answers.items():
        one(driver, f"input[name={name}][value='{value}']").find_element("xpath", "..").click()


def save(driver: Any, downloads: Path, folder: Path) -> list[dict[str, Any]]:
    """Save, and put the file where the import reads it."""
    one(driver, "#save").click()
    path, end = downloads / "rater-1.jsonl", time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, "nothing was saved"
        time.sleep(0.05)
    shutil.move(path, folder / RATERS / path.name)
    return [json.loads(line) for line in (folder / RATERS / path.name).read_text(encoding="utf-8").splitlines()]


YES = {"fluency": 1, "faithfulness": 1, "validity": 1, "acceptability": 1}


def test_a_person_edits_saves_and_imports(driver: Any, downloads: Path, tmp_path: Path) -> None:
    export([row("a")], tmp_path, people=1)
    visit(driver, tmp_path / RATERS / "rater-1.html")
    assert texts(driver, "#problems li") == []
    assert arrows(driver) == 3
    write(driver, "#claim", "Heavy rain made the floor wet.")
    assert texts(driver, "[data-name=claim] tspan")[1:] == ["Heavy rain made the floor", "wet."]
    # Evidence: one piece edited, one deleted, one added.
    write(driver, "[aria-label='Text of sent1']", "It rained all night.")
    one(driver, "[aria-label='Delete sent4']").click()
    one(driver, "#add").click()
    assert texts(driver, "#problems li") == ["Sentence4 is empty", "Sentence4 is useful and not used"]
    driver.switch_to.active_element.send_keys("Nobody put a bucket there.")
    assert texts(driver, "#problems li") == ["Sentence4 is useful and not used"]
    # A step by clicks: it replaces the one that is removed.
    one(driver, "[aria-label='Remove sent1 + sent2 → int1']").click()
    assert "int1 is concluded in no step: it is not an intermediate but a leaf" in texts(driver, "#problems li")
    assert arrows(driver) == 1
    for name in ("sent1", "sent2", "Sentence4"):
        one(driver, f"#drawing [data-name={name}]").click()
    assert one(driver, "#from").text == "sent1 + sent2 + Sentence4"
    one(driver, "#to option[value=int1]").click()
    one(driver, "#link").click()
    assert (texts(driver, "#problems li"), arrows(driver)) == ([], 4)
    assert one(driver, "#structure").get_attribute("value").splitlines() == [
        "one_to_one_linking(int1, Claim)",
        "multiple_to_one_linking([sent1, sent2, Sentence4], int1)",
    ]
    assert one(driver, "#state").text == "To answer: fluency, faithfulness, validity, acceptability."
    answer(driver, **YES)
    write(driver, "#note", "a bucket helps")
    assert one(driver, "#state").text == "This row is done."
    assert one(driver, "#progress").text == "1 of 1 rows done, not saved"
    [entry] = save(driver, downloads, tmp_path)
    assert one(driver, "#progress").text == "1 of 1 rows done"
    assert entry["note"] == "a bucket helps"
    found = import_(tmp_path)
    assert found["rows"] == {"kept": 1, "edited": 1, "dropped": 0, "open": 0, "left_out": 0}
    back = kept(tmp_path)["a"]
    assert back["claim"] == "Heavy rain made the floor wet."
    assert [piece["text"] for piece in back["evidence"]] == [
        "It rained all night.", "The roof of the hall leaks.", "The floor of the hall got wet.", "Nobody put a bucket there.",
    ]  # fmt: skip
    assert [info["id"] for info in back["evidence_info"]] == ["sent1", "sent2", "int1", "Sentence4"]
    assert set(Structure.from_row(back).edges()) == {*((name, "int1") for name in ("sent1", "sent2", "Sentence4")), ("int1", CLAIM)}


def test_what_is_wrong_is_shown_as_it_is_typed(driver: Any, tmp_path: Path) -> None:
    export([row("a")], tmp_path, people=1)
    visit(driver, tmp_path / RATERS / "rater-1.html")
    answer(driver, **YES)
    for program, message in {
        "one_to_one_linking(sent1, Claim)": "sent2 is useful and not used",
        "one_to_one_linking(sent7, Claim)": "line 1: sent7 is no name: write one of sent1, sent2, int1, sent4, Claim",
        "one_to_one_linking(int1, int1)": "int1 is a premise of itself",
        "alert(1)": f"line 1: write {', '.join(LINKING)}, with the names of evidence",
    }.items():
        write(driver, "#structure", program)
        assert message in texts(driver, "#problems li")
        assert one(driver, "#state").text == "To keep this row, correct what is wrong."
    answer(driver, acceptability=0)
    assert one(driver, "#state").text == "This row is done."


def test_the_page_is_used_by_keyboard(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    export([row("a")], tmp_path, people=1)
    visit(driver, tmp_path / RATERS / "rater-1.html")
    # Whatever can be clicked has the focus in turn.
    driver.execute_script("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        active = driver.switch_to.active_element
        reached |= {active.get_attribute(name) for name in ("id", "data-name", "aria-label", "name")}
    assert {"claim", "Text of sent1", "Role of sent1", "Delete sent1", "add", "structure", "fluency", "note"} <= reached
    assert {"file", "save", "sent1", "sent2", "to", "Remove int1 → Claim"} <= reached
    for name in ("sent1", "sent2"):
        driver.execute_script("document.querySelector(`#drawing [data-name=${arguments[0]}]`).focus()", name)
        driver.switch_to.active_element.send_keys(Keys.SPACE)
        assert driver.switch_to.active_element.get_attribute("aria-pressed") == "true"
    one(driver, "#link").send_keys(Keys.ENTER)
    assert "multiple_to_one_linking([sent1, sent2], Claim)" in one(driver, "#structure").get_attribute("value")
    driver.execute_script("document.querySelector('input[name=fluency]').focus()")
    driver.switch_to.active_element.send_keys(Keys.SPACE)
    assert one(driver, "input[name=fluency][value='1']").is_selected()


def test_a_saved_review_goes_on_where_it_was(driver: Any, downloads: Path, tmp_path: Path) -> None:
    export([row("a"), row("b", "REFUTES"), undecidable("c")], tmp_path, people=1)
    page = tmp_path / RATERS / "rater-1.html"
    visit(driver, page)
    ids = texts(driver, "#row option")
    assert sorted(ids) == ["a", "b", "c"]
    for _ in ids:
        answer(driver, **YES)
        if one(driver, "#on").is_enabled():
            one(driver, "#on").click()
    assert one(driver, "#progress").text == "3 of 3 rows done, not saved"
    write(driver, "#claim", "Another claim.")
    entries = save(driver, downloads, tmp_path)
    assert [entry["id"] for entry in entries] == ids
    visit(driver, page)
    assert one(driver, "#progress").text == "0 of 3 rows done"
    one(driver, "#file").send_keys(str(tmp_path / RATERS / "rater-1.jsonl"))
    until(driver, "document.getElementById('progress').textContent.startsWith('3 of 3')")
    one(driver, f"#row option[value='{len(ids) - 1}']").click()
    assert one(driver, "#claim").get_attribute("value") == "Another claim."
    assert import_(tmp_path)["rows"]["kept"] == 3
    broken = tmp_path / "broken.jsonl"
    broken.write_text("not this")
    one(driver, "#file").send_keys(str(broken))
    until(driver, "document.getElementById('progress').textContent === 'This file is no saved review.'")


def test_nothing_in_the_data_runs_and_the_page_asks_for_nothing(driver: Any, tmp_path: Path) -> None:
    evil = row(f"a{EVIL}", claim=f"A claim. {EVIL}", cause=EVIL, effect=EVIL)
    evil["evidence"] = [{"title": EVIL, "text": f"{EVIL} {i}"} for i in range(4)]
    evil["evidence_info"] = [{**info, "id": f"{info['id']}{EVIL}"} for info in evil["evidence_info"]]
    evil["structure"] = [{"premises": [info["id"] for info in evil["evidence_info"][:3]], "conclusion": CLAIM}]
    export([evil], tmp_path, people=1)
    driver.get_log("browser")
    visit(driver, tmp_path / RATERS / "rater-1.html")
    write(driver, "#claim", f"Another. {EVIL}")
    assert EVIL in one(driver, "#cause").text
    assert driver.execute_script("return typeof window.pwned") == "undefined"
    assert driver.execute_script("return document.querySelectorAll('img, iframe').length") == 0
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert driver.get_log("browser") == []
    for width in (400, 1280):
        visit(driver, tmp_path / RATERS / "rater-1.html", width=width, scheme="dark")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
