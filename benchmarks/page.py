"""The page in Chromium: its first load, opening a long answer, and the cost of a stream.

python -m benchmarks.page [--seconds 20]

Prints wall-clock times and the CPU times of the page's thread, which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

from benchmarks.stage import ModelProcess, model_server, running_service
from tests.fixtures.browser import FLAGS, VIEWPORT, find_installed
from tests.frontend.chatting import sign_in
from tests.servers.people import ALICE, make_people

END = "It ends here."
PARAGRAPH = "Some words with *stress*, `code` and a [link](https://example.com/), as answers have them.\n\n"
PIECE = (
    "## A part\n\nSome words with **stress** and `code`, then a table.\n\n"
    "| name | what it does | cost |\n|---|---|--:|\n"
    + "".join(f"| row {n} | does *something* | {n * 7} |\n" for n in range(12))
    + "\n```python\ndef add(a, b):\n    # The sum.\n    return a + b\n"
    + "\n".join(f"print(add({n}, {n + 1}))" for n in range(15))
    + "\n```\n\n- one point\n- another one, with a [link](https://example.com/)\n\n"
)
LONG = {
    "paragraphs": PARAGRAPH * (1_000_000 // len(PARAGRAPH)),
    "headings, tables, code, lists": PIECE * (1_000_000 // len(PIECE)),
    "one paragraph": "word " * 199_000,
    "one block of code": "```js\n" + "const answer = 'what it is'; // a line\n" * 25_000 + "```\n\n",
}
LINE = "    total += weigh(item, 'a string', 42)  # add what it weighs\n"
CODE_CHARS = 120_000
CHARS_PER_TOKEN = 4
# Chromium's protocol counts bytes per second: this is a line of 5 Mbit/s.
SLOW_LINE = {"latency": 80, "downloadThroughput": 625_000, "uploadThroughput": 625_000}
# Resolves when the user can type, with the milliseconds since the navigation began.
USABLE = """
() => new Promise((resolve) => {
  const look = () => {
    const box = document.querySelector("#composer");
    if (box && !box.disabled) requestAnimationFrame(() => resolve(performance.now()));
    else requestAnimationFrame(look);
  };
  look();
})
"""
# Resolves when the end of the answer is drawn, with the milliseconds since `link` was clicked.
OPEN = """
(link, end) => new Promise((resolve) => {
  const started = performance.now();
  link.click();
  const look = () => {
    const blocks = document.querySelectorAll(".section:not(.is-far) > .block");
    if (blocks.length && blocks[blocks.length - 1].textContent.includes(end)) resolve(performance.now() - started);
    else requestAnimationFrame(look);
  };
  look();
})
"""
# Resolves when the answer is complete. Playwright's own waiting would poll the page.
COMPLETE = """
() => new Promise((resolve) => {
  const look = () => document.querySelector("article.is-assistant")?.dataset.status === "complete";
  new MutationObserver((_, observer) => { if (look()) { observer.disconnect(); resolve(); } })
    .observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-status"] });
})
"""

MESSAGES = 10_000
# Resolves when the newest message is drawn, with the milliseconds since `link` was clicked.
OPEN_NEWEST = """
(link, end) => new Promise((resolve) => {
  const started = performance.now();
  link.click();
  const look = () => {
    const last = [...document.querySelectorAll(".thread article")].at(-1);
    if (last && last.textContent.includes(end)) resolve(performance.now() - started);
    else requestAnimationFrame(look);
  };
  look();
})
"""
# Scrolls back until `wanted` messages were shown. Resolves with their number and the most that were shown at once.
SCROLL_BACK = """
(wanted) => new Promise((resolve) => {
  const seen = new Set(), started = performance.now();
  let most = 0;
  const look = () => {
    const shown = document.querySelectorAll(".thread article");
    for (const one of shown) seen.add(one.id);
    most = Math.max(most, shown.length);
    if (seen.size >= wanted || performance.now() - started > 120_000) return resolve([seen.size, most]);
    document.querySelector(".thread").scrollTop = 0;
    setTimeout(look, 50);
  };
  look();
})
"""
# Records the duration of each frame from now on.
WATCH_FRAMES = """
() => {
  window.frames_ms = [];
  const look = (before) => requestAnimationFrame((now) => { window.frames_ms.push(now - before); look(now); });
  requestAnimationFrame(look);
}
"""
FRAMES_P95 = "() => frames_ms.slice(1).sort((a, b) => a - b)[Math.floor((frames_ms.length - 1) * 0.95)]"


def first_load(browser: Browser, url: str) -> None:
    """Print what a signed-in browser with an empty cache fetches at 80 ms and 5 Mbit/s, and when the user can type."""
    page = browser.new_context(base_url=url, viewport=VIEWPORT).new_page()
    sign_in(page, ALICE)
    page.goto("/", wait_until="networkidle")
    for attempt in range(3):
        session = page.context.new_cdp_session(page)
        sizes: dict[str, int] = {}
        addresses: dict[str, str] = {}
        session.on(
            "Network.requestWillBeSent",
            lambda e, a=addresses: a.update({e["requestId"]: e["request"]["url"]}),
        )
        session.on(
            "Network.loadingFinished", lambda e, s=sizes: s.update({e["requestId"]: e["encodedDataLength"]})
        )
        session.send("Network.enable")
        session.send("Network.clearBrowserCache")
        session.send("Network.emulateNetworkConditions", {"offline": False, **SLOW_LINE})
        page.goto("/", wait_until="commit")
        usable_ms = page.evaluate(USABLE)
        page.wait_for_load_state("networkidle")
        session.detach()
        if attempt == 0:
            for key, address in addresses.items():
                print(f"    {sizes.get(key, 0):8,d}  {address.removeprefix(url)[:90]}")
        kilobytes = sum(sizes.values()) / 1000
        print(f"  first load: {len(addresses)} requests, {kilobytes:.0f} kB, usable after {usable_ms:.0f} ms")
    page.context.close()


def open_long(page: Page, client: httpx2.Client, name: str, text: str) -> None:
    said = [("user", "Tell me all."), ("assistant", f"{text}\n\n{END}")]
    body = {"title": name, "messages": [{"role": role, "content": content} for role, content in said]}
    made = client.post("/api/v1/conversations/import", json=body).raise_for_status().json()
    page.goto("/")
    link = page.locator(f"a[href='/c/{made['id']}']")
    expect(link).to_be_visible()
    times = []
    for _ in range(3):
        session = begin_session(page)
        took_ms = link.evaluate(f"(link) => ({OPEN})(link, {json.dumps(END)})")
        times.append((took_ms, thread_seconds(session)["TaskDuration"] * 1000))
        session.detach()
        page.goto("/")
        expect(link).to_be_visible()
    clock_ms, cpu_ms = (min(values) for values in zip(*times, strict=True))
    print(f"  open {len(text):9,d} characters, {name:30} {clock_ms:6.0f} ms, of its thread {cpu_ms:6.0f} ms")


def open_many(page: Page, client: httpx2.Client) -> None:
    """Print how fast a conversation of 10,000 messages opens, and how many are shown at once when scrolling back."""
    said = [{"role": ("user", "assistant")[n % 2], "content": PARAGRAPH} for n in range(MESSAGES - 1)]
    body = {"title": "Many", "messages": [*said, {"role": "assistant", "content": END}]}
    made = client.post("/api/v1/conversations/import", json=body).raise_for_status().json()
    times = []
    for _ in range(3):
        page.goto("/")
        link = page.locator(f"a[href='/c/{made['id']}']")
        expect(link).to_be_visible()
        times.append(link.evaluate(f"(link) => ({OPEN_NEWEST})(link, {json.dumps(END)})"))
    count, most = page.evaluate(SCROLL_BACK, 2_000)
    print(f"  open {MESSAGES:9,d} messages {min(times):6.0f} ms; back by {count:,d}: at most {most} at once")


def thread_seconds(session: CDPSession) -> dict[str, float]:
    """Return the CPU seconds of the page's thread since the session began, by kind."""
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}


def begin_session(page: Page) -> CDPSession:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def stream(browser: Browser, page: Page, model: ModelProcess, name: str, text: str, rate: float) -> None:
    """Show `text` on the page at `rate` tokens per second, and print the work of the page's thread meanwhile."""
    model.script(chat=[{"text": text, "rate": rate}])
    page.goto("/", wait_until="networkidle")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        browser.start_tracing(page=page, path=trace, categories=["disabled-by-default-devtools.timeline"])
        page.evaluate(WATCH_FRAMES)
        session, started = begin_session(page), time.perf_counter()
        page.locator("#composer").fill("Go on")
        page.locator("#composer").press("Enter")
        page.evaluate(COMPLETE)
        seconds, used = time.perf_counter() - started, thread_seconds(session)
        frame_ms = page.evaluate(FRAMES_P95)
        browser.stop_tracing()
        tasks = tasks_of(json.loads(trace.read_text()))
    script, all_work = (used[kind] for kind in ("ScriptDuration", "TaskDuration"))
    print(f"  {name}: {len(text):,d} characters at {rate:.0f} tokens/s, {seconds:.1f} s")
    clock_ms, cpu_ms = (max(values) for values in zip(*tasks, strict=True))
    print(f"    longest task   {clock_ms:6.0f} ms, of its thread {cpu_ms:6.0f} ms")
    print(f"    frames p95     {frame_ms:6.0f} ms")
    print(
        f"    of one core    script {script / seconds:6.1%}, all of the page's thread {all_work / seconds:6.1%}"
    )


def tasks_of(trace: dict[str, Any]) -> list[tuple[float, float]]:
    """Return (wall-clock milliseconds, CPU milliseconds) of each task of the pages' main threads."""
    events = trace["traceEvents"]
    main = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    return [
        (one["dur"] / 1000, one.get("tdur", 0) / 1000)
        for one in events
        if one["name"].endswith("RunTask") and (one["pid"], one["tid"]) in main and "dur" in one
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="of the slow stream")
    seconds = parser.parse_args().seconds
    chromium = find_installed()
    if not chromium:
        raise SystemExit("No Chromium here: install it, or name it in CHROMIUM.")
    code = f"```python\n{LINE * (CODE_CHARS // len(LINE))}```\n\n{END}"
    mixed = (PIECE * 100)[: 50 * seconds * CHARS_PER_TOKEN]
    with model_server() as model, running_service(model.url) as (service, _):
        token = make_people(service.env, [ALICE]).tokens[ALICE]
        client = httpx2.Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        with sync_playwright() as playwright, client:
            browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
            first_load(browser, service.url)
            page = browser.new_context(base_url=service.url, viewport=VIEWPORT).new_page()
            sign_in(page, ALICE)
            for name, text in LONG.items():
                open_long(page, client, name, text)
            open_many(page, client)
            stream(browser, page, model, "one block of code", code, 1_500.0)
            stream(browser, page, model, "headings, tables, code, lists", mixed, 50.0)
            browser.close()


if __name__ == "__main__":
    main()
