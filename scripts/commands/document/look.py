"""Open built pages in a browser, and fail on visible faults.

Headless Chromium opens each page from the disk, light and dark, at four widths. A fault is: two
elements overlap; an element is wider than the window; code is cut in windows above 390 pixels; a
picture is missing; a link or an anchor is broken; something is fetched from the network; the
contrast of a text is below 4.5 to 1.

Needs playwright, axe-playwright-python and a Chromium on the PATH:
    scripts/document look [PAGES OR FOLDERS]     (default: site)
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

ROOT = Path(__file__).parents[3]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTHS = (390, 900, 1300, 1700)
SCHEMES = ("light", "dark")

LAYOUT = """width => {
  const found = [], name = e => `${e.tagName.toLowerCase()} "${(e.alt || e.innerText || "")
    .trim().replace(/\\s+/g, " ").slice(0, 50)}"`;
  const beyond = document.documentElement.scrollWidth - innerWidth;
  if (beyond > 0) found.push(`the page is ${beyond} px wider than the window`);
  const main = document.querySelector("article, main") || document.body;
  const seen = e => e.checkVisibility() && e.getClientRects().length;
  const scrolled = e => e.closest("pre, .md-typeset__scrollwrap, .scroll, .heat");
  if (width > 390) for (const code of main.querySelectorAll("pre > code")) {
    const cut = Math.max(code.scrollWidth - code.clientWidth,
      code.parentElement.scrollWidth - code.parentElement.clientWidth);
    if (seen(code) && cut > 1) found.push(`${cut} px are cut of ${name(code)}`);
  }
  const tables = main.querySelectorAll(".md-typeset__scrollwrap, .scroll, .heat");
  if (width >= 1300) for (const table of tables) {
    const cut = table.scrollWidth - table.clientWidth;
    if (seen(table) && cut > 1) found.push(`${cut} px are hidden of the table ${name(table)}`);
  }
  const things = [...main.querySelectorAll("p, h1, h2, h3, h4, table, pre, img, dt, dd, summary")]
    .filter(e => seen(e) && (!scrolled(e) || scrolled(e) === e));
  const boxes = things.map(e => e.getBoundingClientRect());
  things.forEach((a, i) => things.slice(i + 1).forEach((b, k) => {
    if (a.contains(b) || b.contains(a)) return;
    const p = boxes[i], q = boxes[i + 1 + k];
    const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (x > 2 && y > 2) found.push(`${name(a)} and ${name(b)} overlap by ${x | 0} x ${y | 0} px`);
  }));
  return found;
}"""
SETTLED = """() => new Promise(done => {
  let last = -1, same = 0;
  const look = () => {
    const now = document.documentElement.scrollWidth;
    same = now === last ? same + 1 : 0;
    last = now;
    same > 5 && now <= innerWidth || same > 60 ? done() : requestAnimationFrame(look);
  };
  look();
})"""
"""Waits until the theme's layout settles after a resize of the window: a second for wide pages."""
MISSING = """() => [...document.images].filter(e => e.complete && !e.naturalWidth)
  .map(e => `no picture at ${e.getAttribute("src")}`)"""
LINKS = '() => [...document.querySelectorAll("a[href]")].map(e => e.href)'


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=Path, default=[ROOT / "site"])
    pages = [page.resolve() for path in parser.parse_args().pages for page in html(path)]
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        print("scripts/document look: skipped: needs Chromium, playwright, axe-playwright-python")
        return 0
    faults: dict[str, None] = {}
    with sync_playwright() as driver:
        window = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in SCHEMES:
            tab = window.new_page(color_scheme=scheme)
            requests: list[str] = []
            tab.on("request", lambda request, requests=requests: requests.append(request.url))
            for page in pages:
                requests.clear()
                found = look(tab, page, scheme)
                found += [f"asks for {url}" for url in requests if url.startswith("http")]
                for fault in found:
                    faults[f"{named(page)}: {fault}"] = None
        window.close()
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages looked at, {len(faults)} faults")
    return bool(faults)


def named(page: Path) -> str:
    """The name of a page in messages."""
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else str(page)


def html(path: Path) -> list[Path]:
    """The sorted pages of a folder without the error page 404.html; or the page itself."""
    if not path.is_dir():
        return [path]
    return sorted(page for page in path.rglob("*.html") if page.name != "404.html")


def look(tab, page: Path, scheme: str) -> list[str]:
    """The faults of one page."""
    from axe_playwright_python.sync_playwright import Axe

    tab.set_viewport_size({"width": WIDTHS[-1], "height": 1000})
    tab.goto(page.as_uri())
    tab.evaluate("document.querySelectorAll('img').forEach(e => e.loading = 'eager')")
    tab.wait_for_function("[...document.images].every(e => e.complete)")
    faults = [f"{scheme}: {fault}" for fault in contrasts(Axe().run(tab, options=CONTRAST))]
    if scheme != SCHEMES[0]:
        return faults
    faults += tab.evaluate(MISSING) + dead(page, tab.evaluate(LINKS))
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 1000})
        tab.evaluate(SETTLED)
        faults += [f"{width} px wide: {fault}" for fault in tab.evaluate(LAYOUT, width)]
    return faults


CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}


def contrasts(results) -> list[str]:
    """One line per pair of colours with too little contrast for axe, with the first such text."""
    lines: dict[tuple[str, str], str] = {}
    for node in (node for rule in results.response["violations"] for node in rule["nodes"]):
        data = node["any"][0]["data"]
        pair = data["fgColor"], data["bgColor"]
        ratio = f"{data['contrastRatio']} to 1, {pair[0]} on {pair[1]}"
        lines.setdefault(pair, f"a contrast of {ratio}: {node['html'][:60]!r}")
    return list(lines.values())


def dead(page: Path, links: list[str]) -> list[str]:
    """The broken links of a page: missing files and anchors."""
    faults = []
    for link in dict.fromkeys(links):
        address, anchor = urldefrag(urljoin(page.as_uri(), link))
        if urlparse(address).scheme != "file":
            continue
        target = Path(unquote(urlparse(address).path))
        if not target.is_file():
            faults.append(f"a link to {target.name}, which does not exist")
        elif anchor and target.suffix == ".html" and unquote(anchor) not in anchors(target):
            faults.append(
                f"a link to {target.name}#{unquote(anchor)}, an anchor that does not exist"
            )
    return faults


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page, cached."""
    return set(re.findall(r"\b(?:id|name)=[\"']?([^\"'\s>]+)", page.read_text()))


if __name__ == "__main__":
    sys.exit(main())
