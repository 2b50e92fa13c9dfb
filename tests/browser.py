"""A browser for tests of pages, without a network; a test that needs one is skipped where there is none, and says so."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)


@contextmanager
def browser(folder: Path) -> Iterator[Any]:
    """Chromium by its driver, with its profile and what it downloads in a folder."""
    binary = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
    service = shutil.which("chromedriver")
    if not binary or not service:
        pytest.skip("there is no Chromium with its driver (Debian: chromium, chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(service))
    try:
        yield driver
    finally:
        driver.quit()


def visit(driver: Any, page: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> Any:
    """Open a page in a size and colour scheme, and wait until its script says that it is ready."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.get(page.resolve().as_uri())
    until(driver, "document.documentElement.dataset.ready === ''")
    return driver


def until(driver: Any, condition: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not driver.execute_script(f"return {condition}"):
        assert time.monotonic() < end, f"never true: {condition}"
        time.sleep(0.05)
