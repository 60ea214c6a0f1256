import pytest, sys
from playwright.sync_api import expect
from tests.frontend.test_branches import model, service, page, rewrite
from tests.frontend.chatting import ask, SIZES
from tests.servers.behaviour import says

def test_shots(page, model, service, browser):
    model.script(says("Paris it is."), says("Two million."), says("Oslo it is."))
    ask(page, "Capital of France?")
    ask(page, "How many live there?")
    rewrite(page, "Capital of France?", "Capital of Norway?")
    expect(page.locator("article.is-assistant")).to_contain_text("Oslo")
    expect(page.locator(".siblings")).to_contain_text("2/2")
    url=page.url
    cookies=page.context.cookies()
    for scheme in ("light","dark"):
        for name,(w,h) in SIZES.items():
            c=browser.new_context(base_url=service.url, viewport={"width":w,"height":h}, color_scheme=scheme, has_touch=name!="desktop", is_mobile=name=="phone")
            c.add_cookies(cookies)
            tab=c.new_page(); tab.goto(url)
            expect(tab.locator(".siblings")).to_be_visible()
            tab.wait_for_timeout(400)
            tab.screenshot(path=f"/tmp/front-shots/branch-{name}-{scheme}.png")
            tab.get_by_role("button", name="Edit").first.click()
            tab.wait_for_timeout(300)
            tab.screenshot(path=f"/tmp/front-shots/edit-{name}-{scheme}.png")
            c.close()
