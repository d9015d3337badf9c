"""The pictures of the report in the documentation: ``python -m tests.reference.report_pictures`` writes them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

STATIC = Path(__file__).resolve().parents[2] / "docs" / "_static"


def main() -> None:
    """Write the report of the demo, and photograph it in a window and on a phone in the dark."""
    from playwright.sync_api import sync_playwright

    from klnumba.cli import shift
    from klnumba.tables import compare, scan

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "report.html"
        found = compare(*map(scan, shift.write(path.parent)))
        found.report(path, title="Benign and malignant tumours")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 620})
        page.goto(path.as_uri())
        page.screenshot(path=STATIC / "report.png")
        phone = browser.new_page(viewport={"width": 390, "height": 700}, color_scheme="dark")
        phone.goto(path.as_uri() + "#column-0")
        phone.screenshot(path=STATIC / "report_phone.png")
        browser.close()


if __name__ == "__main__":
    main()
