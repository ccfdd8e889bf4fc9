"""How pages look to everybody: wide and on a phone, light and dark, by axe."""

from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
from playwright.sync_api import Page, ViewportSize

Scheme = Literal["light", "dark"]

SCRIPT = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
# Colours are measured by themselves. None of the rules reads the style sheets, which axe would fetch again to preload them.
# Nor does it say where a node is: its HTML is told.
RULES = """() => axe.run(document, {
    resultTypes: ['violations'], preload: false, selectors: false, rules: {'color-contrast': {enabled: false}}
}).then((found) => found.violations)"""
# One visible text of each kind: of which element with which classes and states it is, and in which others; what our style sheets
# tell apart.
KINDS = """() => {
    const traits = ['class', 'role', 'type', 'open', 'popover', 'readonly', 'data-state', 'data-submits', 'aria-busy',
        'aria-current', 'aria-disabled', 'aria-invalid', 'aria-pressed'];
    const states = [':checked', ':disabled', ':popover-open', ':has(:checked)', ':has(:disabled)'];
    const own = (one) => [/^[a-z-]+$/.test(one.id) ? one.id : '', ...traits.map((name) => one.getAttribute(name) ?? ''),
        ...states.filter((state) => one.matches(state))].join('|');
    const text = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
    const says = (one) => one.matches('input, select, textarea') || [...one.childNodes].some(text);
    const paths = new Map();
    window.kinds = new Map();
    for (const one of document.querySelectorAll('body, body *')) {
        paths.set(one, `${paths.get(one.parentElement) ?? ''} > ${one.localName} ${own(one)}`);
        if (says(one) && one.checkVisibility() && !kinds.has(paths.get(one))) kinds.set(paths.get(one), one);
    }
    return [...kinds.keys()];
}"""
COLOURS = """(fresh) => {
    const include = fresh.map((kind) => kinds.get(kind));
    return axe.run({include}, {resultTypes: ['violations'], preload: false, selectors: false, runOnly: ['color-contrast']})
        .then((found) => found.violations);
}"""
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
# Each rule at both widths, colours in both schemes: they hardly know the width.
LOOKS: tuple[tuple[ViewportSize, Scheme], ...] = ((WIDE, "light"), (PHONE, "dark"))

# Measuring colours is most of the work, and one text has those of the other texts of its kind, on whichever page.
_measured: dict[Scheme, set[str]] = {"light": set(), "dark": set()}


def problems(page: Page, what: str) -> list[str]:
    """Return what axe finds on the page as it is now, and whether it sticks out; each with how it was looked at."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(SCRIPT)
    found = []
    for size, scheme in LOOKS:
        _resize(page, size)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        look = f"{what}, {scheme}, {size['width']} px"
        found += [f"{look}: {problem}" for problem in (*_broken(page), *_unreadable(page, scheme))]
        if page.evaluate("document.documentElement.scrollWidth") > size["width"]:
            found.append(f"{look}: it is wider than the window")
    _resize(page, WIDE)
    return found


def _resize(page: Page, size: ViewportSize) -> None:
    if page.viewport_size != size:
        page.set_viewport_size(size)


def _broken(page: Page) -> list[str]:
    return _told(page.evaluate(RULES))


def _unreadable(page: Page, scheme: Scheme) -> list[str]:
    fresh = [kind for kind in page.evaluate(KINDS) if kind not in _measured[scheme]]
    _measured[scheme].update(fresh)
    return _told(page.evaluate(COLOURS, fresh)) if fresh else []


def _told(violations: list[dict[str, Any]]) -> list[str]:
    return [f"{one['id']}: {node['html'][:120]}" for one in violations for node in one["nodes"]]
