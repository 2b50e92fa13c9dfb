"""The page in a real browser, without the internet: each task with the offline preset, wide and narrow, light and dark.

Skipped where there is no Gradio, no Chromium with its driver, or no selenium. Set HFCF_SCREENSHOTS to a folder to keep pictures.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser, until
from conftest import empty_cache
from offline_models import installed

from hfcf.core.task import get_task

pytest.importorskip("gradio", reason='Gradio is not installed: pip install ".[app]"')
if not all(map(installed, ("minilm", "t5", "spacy", "smollm2", "wordnet", "mlm"))):
    pytest.skip("the offline models are not installed", allow_module_level=True)

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("verification", "relation", "qa")]
ENDS = "['done', 'failed']"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `hfcf app`, which runs without a network proxy or the Hub."""
    folder = tmp_path_factory.mktemp("app")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HFCF_CACHE": str(empty_cache(folder / "cache")), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "hfcf", "app", "--port", str(port)]
    with (folder / "log").open("w") as log, subprocess.Popen(command, env=environment, stdout=log, stderr=log) as server:
        try:
            end = time.monotonic() + 240
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert server.poll() is None, (folder / "log").read_text()
                    assert time.monotonic() < end, (folder / "log").read_text()
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def driver(folder: Path) -> Iterator[Any]:
    with browser(folder) as one:
        yield one


def resize(driver: Any, width: int, scheme: str, height: int = 900) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})


def open_tab(driver: Any, address: str, task: str, width: int = 1280, scheme: str = "light") -> None:
    resize(driver, width, scheme)
    driver.get(address)
    until(driver, "document.querySelector('[data-state]')")
    title = get_task(task).form[0].title
    driver.execute_script(
        "[...document.querySelectorAll('button[role=tab]')].find(tab => tab.textContent.trim() === arguments[0]).click()", title
    )
    until(driver, f"document.querySelector('#run-{task}')?.offsetParent")


def press(driver: Any, name: str) -> None:
    until(driver, f"document.querySelector('#{name}')?.matches(':not([disabled])')")
    driver.execute_script(f"document.querySelector('#{name}').click()")


def state(task: str) -> str:
    return f"document.querySelector('#result-{task} [data-state]')?.dataset.state"


def finish(driver: Any, task: str, seconds: float) -> float:
    """Run, and return the seconds to the first counterfactual as a person sees them."""
    start = time.monotonic()
    press(driver, f"run-{task}")
    until(driver, f"!['empty', ...{ENDS}].includes({state(task)})", 30)
    until(driver, f"{ENDS}.includes({state(task)})", seconds)
    return time.monotonic() - start


def write(driver: Any, name: str, text: str) -> None:
    area = driver.execute_script(f"return document.querySelector('#{name} textarea, #{name} input')")
    driver.execute_script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", area, text)


@pytest.mark.parametrize("task", ["classification", *SLOW])
def test_each_task_shows_stages_and_counterfactuals(driver: Any, address: str, folder: Path, task: str) -> None:
    open_tab(driver, address, task)
    cold = finish(driver, task, 900)
    told = driver.execute_script(f"return document.querySelector('#result-{task}').innerText")
    assert driver.execute_script(f"return {state(task)}") == "done", told
    count = "return document.querySelectorAll(arguments[0]).length"
    assert driver.execute_script(count, f"#result-{task} article.pair") >= 1
    assert driver.execute_script(count, f"#result-{task} ins") >= 1
    assert driver.execute_script(count, f"#steps-{task} li.done") == driver.execute_script(count, f"#steps-{task} li") >= 2
    driver.get_log("browser")
    warm = finish(driver, task, 300)
    print(f"\n{task}: {cold:.1f} s cold, {warm:.1f} s warm")

    until(driver, f"document.querySelector('#rows-{task}')?.offsetParent")
    for name, file in (("rows", "counterfactuals.jsonl"), ("pasted", "counterfactuals-as-pasted.jsonl")):
        (folder / file).unlink(missing_ok=True)
        driver.find_element("css selector", f"#{name}-{task}").click()  # a browser blocks a script's second download
        end = time.monotonic() + 30
        while not (folder / file).exists():
            assert time.monotonic() < end, f"{file} was not downloaded"
            time.sleep(0.1)
    rows = [json.loads(line) for line in (folder / "counterfactuals.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows
    assert all(row["source_id"] and row["edits"] for row in rows)

    for width in (1280, 400):
        for scheme in ("light", "dark"):
            resize(driver, width, scheme)
            time.sleep(0.3)
            across = driver.execute_script("return document.documentElement.scrollWidth")
            assert across <= width, f"{across} pixels at {width}"
            if kept := os.environ.get("HFCF_SCREENSHOTS"):
                driver.save_screenshot(str(Path(kept) / f"{task}-{width}-{scheme}.png"))
    others = "return performance.getEntriesByType('resource').map(one => one.name).filter(name => !name.startsWith(arguments[0]))"
    assert driver.execute_script(others, address) == [], "a request that leaves the machine"
    assert [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_what_is_pasted_does_not_run(driver: Any, address: str) -> None:
    open_tab(driver, address, "classification")
    evil = "It is <img src=x onerror='window.hacked=1'> a good ${window.hacked=2} film <script>window.hacked=3</script> {{ 7*7 }}."
    write(driver, "text-classification", evil)
    write(driver, "label-classification", "<b onclick=window.hacked=4>good</b>")
    finish(driver, "classification", 300)
    assert driver.execute_script("return window.hacked ?? null") is None
    assert driver.execute_script("return document.querySelectorAll('.hfcf img, .hfcf script, .hfcf [onclick]').length") == 0
    assert "<b onclick" in driver.execute_script("return document.querySelector('#result-classification').innerText")


def test_a_mistake_is_a_sentence_without_a_traceback(driver: Any, address: str) -> None:
    open_tab(driver, address, "classification")
    write(driver, "text-classification", " ")
    finish(driver, "classification", 120)
    text = driver.execute_script("return document.querySelector('#result-classification').innerText")
    assert "text" in text
    assert "Traceback" not in text
    press(driver, "run-classification")  # the page can run again
