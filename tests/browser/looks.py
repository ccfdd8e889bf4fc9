"""How pages look to everybody: wide and on a phone, light and dark, by axe."""

from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
from playwright.sync_api import Page, ViewportSize

SCRIPT = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RUN = "() => axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
# Each rule at both widths, colours in both schemes; measuring colours is most of the work, and they hardly know the width.
LOOKS: tuple[tuple[ViewportSize, Literal["light", "dark"]], ...] = ((WIDE, "light"), (PHONE, "dark"))


def problems(page: Page, what: str) -> list[str]:
    """Return what axe finds on the page as it is now, and whether it sticks out; each with how it was looked at."""
    page.evaluate(SCRIPT)
    found = []
    for size, scheme in LOOKS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        look = f"{what}, {scheme}, {size['width']} px"
        found += [f"{look}: {problem}" for problem in _violations(page)]
        if page.evaluate("document.documentElement.scrollWidth") > size["width"]:
            found.append(f"{look}: it is wider than the window")
    page.set_viewport_size(WIDE)
    return found


def _violations(page: Page) -> list[str]:
    violations: list[dict[str, Any]] = page.evaluate(RUN)
    return [f"{one['id']}: {node['html'][:120]}" for one in violations for node in one["nodes"]]
