"""Who may ask: names, tokens, pages of other sites, and what browsers are told to obey."""

import base64
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from attnstore.serve.access import Access, hosts, new_token, plain_name
from attnstore.serve.app import make_app
from attnstore.serve.limits import Limits
from attnstore.serve.published import Published

TOKEN = "a-token-of-a-test"
SITE = "https://pages.example.org"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def asked(published: dict[str, Published]) -> Iterator[TestClient]:
    """A client of an application that asks for a token and lets one site read."""
    access = Access(hosts("127.0.0.1", ["testserver", "Maps.Example.org."]), TOKEN, (SITE,), max_body=2000)
    app = make_app(published, Limits(workers=1, prepared=0), access)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as found:
        yield found


# --- names


@pytest.mark.parametrize(
    "host",
    [
        "testserver",
        "testserver:8000",
        "TestServer",
        "testserver.",
        "localhost:1",
        "127.0.0.1",
        "[::1]:8000",
        "[0::1]",
        "maps.example.org:443",
        "testserver:",
    ],
)
def test_the_service_goes_by_its_names(asked: TestClient, host: str) -> None:
    assert asked.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "testserver.evil.example",
        "",
        "testserver:80:80",
        "x@testserver",
        "testserver/x",
        "127.0.0.2",
        "[::1",
        "::1",
        "local host",
        "testserver:eighty",
        "[::1].evil.example",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
    ],
)
def test_another_name_is_refused(asked: TestClient, host: str) -> None:
    answer = asked.get("/healthz", headers={"host": host})
    assert (answer.status_code, answer.json()["type"]) == (421, "/problems/wrong-host")


def test_a_service_at_every_address_goes_by_each_of_them_and_by_no_strange_name() -> None:
    everywhere = Access(hosts("0.0.0.0", ["maps.example.org"]))
    for host in ("192.168.1.7:8000", "[2001:db8::1]", "localhost", "maps.example.org"):
        assert everywhere.is_own(host), host
    assert not everywhere.is_own("evil.example")
    assert not Access(hosts("127.0.0.1")).is_own("192.168.1.7")
    assert plain_name("[2001:DB8:0::1]") == "2001:db8::1"


# --- tokens


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN[:-1]}",
        "Bearer \xff",
        "Basic " + base64.b64encode(f"x:{TOKEN}".encode()).decode(),
    ],
)
def test_without_the_token_nothing_is_told(asked: TestClient, given: str) -> None:
    headers = {"authorization": given.encode("latin-1")} if given else {}
    for path in ("/v1", "/metrics", "/openapi.json", "/files/x/y", "/stores/tiny", "/v1/query?sql=select+1", "/none"):
        answer = asked.get(path, headers=headers)  # type: ignore[arg-type]
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), path
        assert TOKEN not in answer.text


def test_with_the_token_all_is_told_and_it_stands_nowhere(asked: TestClient) -> None:
    for headers in (BEARER, {"authorization": f"bearer  {TOKEN} "}):
        answer = asked.get("/v1", headers=headers)
        assert answer.status_code == 200
        assert TOKEN not in answer.text + str(answer.headers)
    assert asked.get(f"/v1?token={TOKEN}").status_code == 401


def test_whether_the_process_runs_is_told_to_everyone(asked: TestClient) -> None:
    for path in ("/healthz", "/readyz", "/login", "/static/page.css"):
        assert asked.get(path).status_code == 200, path


def test_a_person_is_led_to_the_form_and_back(asked: TestClient) -> None:
    led = asked.get("/stores/tiny?question=a%26b", headers={"accept": "text/html"})
    assert (led.status_code, led.headers["location"]) == (303, "/login?to=%2Fstores%2Ftiny%3Fquestion%3Da%2526b")
    form = asked.get(led.headers["location"], headers={"accept": "text/html"})
    assert 'value="/stores/tiny?question=a%26b"' in form.text
    wrong = asked.post("/login", data={"token": "another", "to": "/"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    answer = asked.post("/login", data={"token": TOKEN, "to": "/stores/tiny?question=a%26b"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/stores/tiny?question=a%26b")
    kept = answer.headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=strict" in kept
    assert TOKEN not in kept
    value = kept.partition(";")[0]
    asked.cookies.clear()
    assert asked.get("/v1", headers={"cookie": f"other=1; {value}"}).status_code == 200
    assert asked.get("/v1", headers={"cookie": value[:-1]}).status_code == 401


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "evil",
        "",
        "/\t/evil.example",
        "/\n/evil.example",
        "/\x00/evil.example",
        "/\x7f/evil.example",
    ],
)
def test_the_form_leads_to_no_other_site(asked: TestClient, to: str) -> None:
    answer = asked.post("/login", data={"token": TOKEN, "to": to})
    asked.cookies.clear()
    assert answer.headers["location"] == "/"
    form = asked.get("/login", params={"to": to}, headers={"accept": "text/html"})
    assert "evil" not in form.text


def test_a_new_token_is_long_and_another_each_time() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 32


# --- pages of other sites

IMAGE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
FRAME = {**LINK, "sec-fetch-dest": "iframe"}
OWN = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", IMAGE, 403),
        ("GET", FRAME, 403),
        ("GET", {**IMAGE, "sec-fetch-site": "same-site"}, 403),
        ("GET", LINK, 200),
        ("POST", LINK, 403),
        ("GET", OWN, 200),
        ("POST", OWN, 200),
        ("GET", {**OWN, "sec-fetch-site": "none"}, 200),
        ("GET", {"origin": "https://evil.example"}, 403),
        ("POST", {"origin": "https://evil.example"}, 403),
        ("POST", {"origin": "null"}, 403),
        ("POST", {"origin": "http://testserver"}, 200),
        ("GET", {"origin": SITE, **IMAGE, "sec-fetch-mode": "cors"}, 200),
        ("POST", {"origin": SITE, "sec-fetch-site": "cross-site"}, 200),
        ("GET", {"origin": SITE + ".evil.example"}, 403),
    ],
)
def test_pages_of_other_sites_may_not_ask(asked: TestClient, method: str, headers: dict[str, str], status: int) -> None:
    body = {"json": {"sql": "select 1 as one"}} if method == "POST" else {}
    path = "/v1/query" if method == "POST" else "/v1"
    answer = asked.request(method, path, headers={**BEARER, **headers}, **body)  # type: ignore[arg-type]
    assert answer.status_code == status, answer.text
    if status == 403:
        assert answer.json()["type"] == "/problems/cross-origin"


def test_a_site_that_is_listed_may_read_and_no_other(asked: TestClient) -> None:
    wanted = {"origin": SITE, "access-control-request-method": "POST"}
    wanted["access-control-request-headers"] = "authorization, content-type"
    before = asked.options("/v1/query", headers=wanted)
    assert (before.status_code, before.headers["access-control-allow-origin"]) == (204, SITE)
    assert "authorization" in before.headers["access-control-allow-headers"]
    assert "POST" in before.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in before.headers
    answer = asked.get("/v1", headers={**BEARER, "origin": SITE})
    assert answer.headers["access-control-allow-origin"] == SITE
    assert "attnstore-cite" in answer.headers["access-control-expose-headers"]
    assert "Origin" in answer.headers["vary"]
    refused = asked.get("/v1", headers={"origin": SITE})  # a page may read why
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, SITE)
    for origin in ("https://evil.example", "null", "*"):
        other = asked.options("/v1/query", headers={**wanted, "origin": origin})
        assert other.status_code in (401, 403)
        assert "access-control-allow-origin" not in other.headers
    assert "access-control-allow-origin" not in asked.get("/v1", headers=BEARER).headers
    assert asked.options("/v1/query", headers={**wanted, "host": "evil.example"}).status_code == 421


# --- what browsers obey


def test_every_answer_has_the_headers_that_protect(client: TestClient, asked: TestClient) -> None:
    etag = client.get("/v1/questions/heads/entropy").headers["etag"]
    answers = {
        200: client.get("/v1"),
        304: client.get("/v1/questions/heads/entropy", headers={"if-none-match": etag}),
        400: client.get("/v1?a=b"),
        401: asked.get("/v1"),
        403: client.get("/v1", headers=IMAGE),
        404: client.get("/none"),
        405: client.delete("/v1"),
        421: client.get("/v1", headers={"host": "evil.example"}),
        303: asked.get("/stores/tiny", headers={"accept": "text/html"}),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
    pages = [client.get(path, headers={"accept": "text/html"}) for path in ("/", "/none", "/static/page.css")]
    for answer in (*answers.values(), *pages):
        assert answer.headers["x-content-type-options"] == "nosniff", answer.url
        assert answer.headers["x-frame-options"] == "DENY", answer.url
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy, answer.url
        assert "frame-ancestors 'none'" in policy, answer.url
        assert "unsafe" not in policy, answer.url
        assert "server" not in answer.headers, answer.url


# --- how much


def test_a_request_body_has_a_limit_also_where_its_length_is_not_told(asked: TestClient) -> None:
    body = b'{"sql": "select 1 as one"' + b" " * 5000 + b"}"
    headers = {**BEARER, "content-type": "application/json"}
    sized = asked.post("/v1/query", content=body, headers=headers)
    chunked = asked.post("/v1/query", content=iter([body[:100], body[100:]]), headers=headers)
    for answer in (sized, chunked):
        assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")
    fits = asked.post("/v1/query", content=iter([b'{"sql": "select', b' 1 as one"}']), headers=headers)
    assert fits.json()["rows"] == [[1]]
