"""http_fetch returns pages of allowed hosts as text and refuses all other addresses."""

from __future__ import annotations

import gzip
import ssl
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.guarded_http import ForbiddenHost, GuardedTransport, HostRules, resolve_host, tls_context
from agents.tools.html_text import text_of_html
from agents.tools.http_fetch import MAX_BYTES, HttpFetch
from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.context.tools import registry
from tests.servers.web_server import WebPage, WebServer

CALLER = ToolCaller("alice", "c", "r")
PUBLIC = "93.184.215.14"


@pytest.fixture
def web():
    with WebServer() as server:
        yield server


class Rules:
    def __init__(self, hosts=(), own=()):
        self.told = HostRules(tuple(hosts), tuple(own))

    def rules(self):
        return self.told


class Names:
    """A resolver with a table of answers, used one after the other; the last one is repeated."""

    def __init__(self, **table):
        self.table = {name.replace("_", "."): list(answers) for name, answers in table.items()}
        self.asked = []

    async def __call__(self, host, port):
        self.asked.append(host)
        answers = self.table.get(host, [[host]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


def own(web, *names):
    return [f"{name}:{web.port}" for name in names]


async def fetch(url, rules, names=None):
    tool = HttpFetch(rules) if names is None else HttpFetch(rules, names)
    return (await tool.call({"url": url}, CALLER)).text


async def test_a_page_of_an_own_host_is_returned_as_text(web):
    web.pages["/a"] = WebPage(
        b"<html><head><style>x{}</style><script>steal()</script></head><body><h1>Prices</h1>"
        b"<table><tr><td>Tea</td><td>4.20</td></tr></table></body></html>"
    )
    text = await fetch(f"http://127.0.0.1:{web.port}/a", Rules(own=own(web, "127.0.0.1")))
    assert "answered 200" in text
    assert "Prices" in text
    assert "Tea | 4.20 |" in text
    assert "steal" not in text


@pytest.mark.parametrize("host", ["a" * 64, "a..b", f"{'b' * 70}.example", "x" * 300])
async def test_an_invalid_host_name_raises_os_error(host):
    """Callers handle OSError as for an unknown name. After another exception, a webhook would be retried forever."""
    with pytest.raises(OSError, match="not a valid host name"):
        await resolve_host(host, 80)


async def test_the_connection_goes_to_the_address_that_was_checked(web):
    """The name would resolve to another address the second time. The server still gets the name as its host."""
    web.pages["/a"] = WebPage(b"hello")
    names = Names(wiki_example=[["127.0.0.1"], ["169.254.169.254"]])
    text = await fetch(f"http://wiki.example:{web.port}/a", Rules(own=own(web, "wiki.example")), names)
    assert "hello" in text
    assert names.asked == ["wiki.example"]
    assert web.hosts == [f"wiki.example:{web.port}"]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "::7f00:1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe", "224.0.0.1", "168.63.129.16", "::ffff:168.63.129.16", "64:ff9b:1::1",
        "64:ff9b:1:a00:1::", "64:ff9b::a83f:8110", "::ffff:0:a00:1", "::ffff:0:7f00:1", "fec0::1", "feff::1", "192.88.99.1",
        "5f00::1", "3fff::1", "3fff:fff::1", "2001:db8::1", "100::1", "2620:0:2d0::5efe:a00:1", "2620:0:2d0::200:5efe:7f00:1",
        "255.255.255.255", "100.100.100.200", "192.0.0.192",
    ],
)  # fmt: skip
async def test_a_name_that_resolves_to_a_forbidden_address_is_refused(address):
    names = Names(innocent_example=[[address]])
    with pytest.raises(ToolFailure, match=r"innocent\.example resolves to"):
        await fetch("http://innocent.example/", Rules(hosts=["*"]), names)


async def test_a_name_with_one_forbidden_address_is_refused():
    names = Names(mixed_example=[[PUBLIC, "10.0.0.1"]])
    with pytest.raises(ToolFailure, match=r"10\.0\.0\.1"):
        await fetch("http://mixed.example/", Rules(hosts=["*"]), names)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/",
        "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://localhost/", "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/", "unix:///var/run/docker.sock",
        "http://user:password@127.0.0.1/", "http://127.0.0.1:6379/", "http:///etc/passwd", "http://[::1%25lo]/", "not an address",
    ],
)  # fmt: skip
async def test_local_addresses_and_other_schemes_are_refused_in_every_spelling(url):
    with pytest.raises(ToolFailure):
        await fetch(url, Rules(hosts=["*"]))


async def test_a_redirect_to_a_host_that_is_not_allowed_is_not_followed(web):
    web.pages["/a"] = WebPage(status=302, headers={"Location": f"http://localhost:{web.port}/secret"})
    web.pages["/secret"] = WebPage(b"the secret")
    with pytest.raises(ToolFailure, match=f"localhost:{web.port} is not an allowed host"):
        await fetch(f"http://127.0.0.1:{web.port}/a", Rules(own=own(web, "127.0.0.1")))
    assert web.paths == ["/a"]


async def test_a_redirect_to_an_allowed_name_with_an_internal_address_is_not_followed(web):
    web.pages["/a"] = WebPage(status=307, headers={"Location": "http://public.example/"})
    names = Names(public_example=[["169.254.169.254"]], wiki_example=[["127.0.0.1"]])
    with pytest.raises(ToolFailure, match=r"169\.254\.169\.254"):
        await fetch(f"http://wiki.example:{web.port}/a", Rules(["*"], own(web, "wiki.example")), names)


async def test_redirects_within_allowed_hosts_are_followed_up_to_a_limit(web):
    web.pages["/a"] = WebPage(status=301, headers={"Location": "/b", "Set-Cookie": "who=alice"})
    web.pages["/b"] = WebPage(b"arrived")
    rules = Rules(own=own(web, "127.0.0.1"))
    assert "arrived" in await fetch(f"http://127.0.0.1:{web.port}/a", rules)
    web.pages["/round"] = WebPage(status=302, headers={"Location": "/round"})
    with pytest.raises(ToolFailure, match="redirects more than 5 times"):
        await fetch(f"http://127.0.0.1:{web.port}/round", rules)


async def test_an_own_host_is_allowed_only_at_its_port(web):
    with pytest.raises(ToolFailure, match="not an allowed host"):
        await fetch(f"http://127.0.0.1:{web.port + 1}/", Rules(own=own(web, "127.0.0.1")))


async def test_metadata_addresses_are_refused_even_if_an_operator_names_them():
    with pytest.raises(ToolFailure, match="always forbidden"):
        await fetch("http://169.254.169.254/", Rules(own=["169.254.169.254"]))


@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_an_endless_page_is_cut(web, encoding):
    def endless(write):
        packer = zlib.compressobj(wbits=31)
        while True:
            block = b"la " * 50_000
            write(packer.compress(block) + packer.flush(zlib.Z_SYNC_FLUSH) if encoding else block)

    headers = {"Content-Encoding": encoding} if encoding else {}
    web.pages["/a"] = WebPage(endless, "text/plain", headers=headers)
    text = await fetch(f"http://127.0.0.1:{web.port}/a", Rules(own=own(web, "127.0.0.1")))
    assert f"Cut after {MAX_BYTES:,} bytes." in text
    assert len(text) < MAX_BYTES + 200


async def test_a_small_response_that_unpacks_to_gigabytes_is_cut(web):
    bomb = gzip.compress(bytes(300 * 2**20), compresslevel=1)
    web.pages["/a"] = WebPage(bomb, "text/plain", headers={"Content-Encoding": "gzip"})
    text = await fetch(f"http://127.0.0.1:{web.port}/a", Rules(own=own(web, "127.0.0.1")))
    assert len(text) < MAX_BYTES + 200


async def test_a_compressed_page_is_read_whole(web):
    body = "".join(f"<p>line {n}</p>" for n in range(20_000)).encode()
    web.pages["/a"] = WebPage(gzip.compress(body), headers={"Content-Encoding": "gzip"})
    text = await fetch(f"http://127.0.0.1:{web.port}/a", Rules(own=own(web, "127.0.0.1")))
    assert "line 19999" in text


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (WebPage(b"\x89PNG", "image/png"), "image/png, not text"),
        (WebPage(b"x", headers={"Content-Encoding": "br"}), "unsupported compression: br"),
        (WebPage(b"no gzip", headers={"Content-Encoding": "gzip"}), "cannot be read"),
    ],
)
async def test_a_response_that_is_no_readable_text_is_refused_with_the_reason(web, page, problem):
    web.pages["/a"] = page
    with pytest.raises(ToolFailure, match=problem):
        await fetch(f"http://127.0.0.1:{web.port}/a", Rules(own=own(web, "127.0.0.1")))


@pytest.mark.parametrize(
    ("charset", "cafe"),
    [
        ("latin-1", "Café"),
        ("utf-8", "Caf\ufffd"),
        ("no-such-charset", "Caf\ufffd"),
        ("undefined", "Caf\ufffd"),
        ("idna", "Caf\ufffd"),
        ("base64", "Caf\ufffd"),
    ],
)
async def test_any_charset_and_broken_markup_give_text(web, charset, cafe):
    web.pages["/a"] = WebPage(
        b"<p>Caf\xe9 <table><tr><td>x\x00y" + b"<div>" * 5_000, f"text/html; charset={charset}"
    )
    text = await fetch(f"http://127.0.0.1:{web.port}/a", Rules(own=own(web, "127.0.0.1")))
    assert text == f"http://127.0.0.1:{web.port}/a answered 200.\n\n{cafe}\n\nxy |"


@pytest.mark.parametrize(
    "html",
    [
        "<table><tr><td>" + "wide " * 10_000 + "<tr><td>b" * 10_000,
        "<table><tr>" + "<td>a" * 20_000,
        "<div>" * 200 + "a<br>" * 20_000,
        "<ul>" * 100 + "<li>a" * 20_000,
        '<p style="margin-top: 1000000em; padding-left: 1000000em">a</p>' * 10,
    ],
    ids=["wide column", "many cells", "deep blocks", "deep lists", "margins"],
)
def test_the_text_of_a_page_is_bounded_by_the_size_of_the_page(html):
    """Columns aligned to the widest cell would turn 400 kB into 30 MB."""
    text = text_of_html(html)
    assert "a" in text or "b" in text
    assert len(text) < 2 * len(html)


def test_hidden_elements_of_a_page_are_left_out():
    assert text_of_html('<p style="Display : None">hidden</p><p style="color: red">shown</p>') == "shown"


async def test_a_slow_charset_is_not_used(web):
    web.pages["/a"] = WebPage(b"9" * MAX_BYTES, "text/plain; charset=punycode")
    text = await fetch(f"http://127.0.0.1:{web.port}/a", Rules(own=own(web, "127.0.0.1")))
    assert text.endswith("999")


def test_rules_match_names_and_ports():
    rules = HostRules(("docs.python.org", "*.wikipedia.org", "api.example:8443"))
    for host, port in (("docs.python.org", 443), ("de.wikipedia.org", 80), ("api.example", 8443)):
        rules.check_name(host, port)
    for host, port in (
        ("python.org", 443), ("evil-docs.python.org", 443), ("wikipedia.org", 443), ("evilwikipedia.org", 443),
        ("docs.python.org", 22), ("api.example", 443), ("docs.python.org.evil.example", 443),
    ):  # fmt: skip
        with pytest.raises(ForbiddenHost):
            rules.check_name(host, port)
    assert not HostRules(own_hosts=("*",)).is_own("anything", 80)


@given(st.ip_addresses())
def test_only_public_addresses_pass_unless_they_are_own(address):
    try:
        HostRules(("*",)).check_address("x.example", 80, str(address))
    except ForbiddenHost:
        return
    assert address.is_global
    assert not address.is_multicast
    assert not address.is_link_local


async def test_the_certificate_authorities_are_loaded_once_for_all_clients(monkeypatch):
    read = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_: read.append(1))
    tls_context.cache_clear()
    for _ in range(3):
        await GuardedTransport(HostRules()).aclose()
    tls_context.cache_clear()
    assert len(read) == 1


# --- enabling the tool --------------------------------------------------------------------------------


def test_http_fetch_is_disabled_until_an_operator_names_a_host(db, settings):
    names = [tool.spec.name for tool in registry.tools_of(None)]
    assert "http_fetch" not in names
    settings.HTTP_FETCH_HOSTS = ["docs.python.org"]
    assert "http_fetch" in [tool.spec.name for tool in registry.tools_of(None)]
