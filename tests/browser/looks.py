"""How pages look to everybody: wide and on a phone, light and dark, by axe."""

from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
from playwright.sync_api import Page, ViewportSize

SCRIPT = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RUN = "(options) => axe.run(document, {resultTypes: ['violations'], ...options}).then((found) => found.violations)"
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}  # nothing else differs in the dark
SCHEMES: dict[Literal["light", "dark"], dict[str, Any]] = {"light": {}, "dark": COLOURS}
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


def problems(page: Page, what: str) -> list[str]:
    """Return what axe finds on the page as it is now, and whether it sticks out; each with how it was looked at."""
    page.evaluate(SCRIPT)
    found = []
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        width = size["width"]
        for scheme, options in SCHEMES.items():
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found += [f"{what}, {scheme}, {width} px: {problem}" for problem in _violations(page, options)]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{what}, {width} px: it is wider than the window")
    page.set_viewport_size(WIDE)
    return found


def _violations(page: Page, options: dict[str, Any]) -> list[str]:
    violations: list[dict[str, Any]] = page.evaluate(RUN, options)
    return [f"{one['id']}: {node['html'][:120]}" for one in violations for node in one["nodes"]]
