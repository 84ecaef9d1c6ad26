"""Tests of repeated addresses: the same answer without routes, and what is never given again."""

from starlette.testclient import TestClient

ADDRESS = "/v1/questions/heads/entropy"
ROUTE = 'attnstore_requests_total{status="200",what="/v1/questions/{name:path}"}'


def counted(client: TestClient, name: str) -> float:
    """One number of the metrics."""
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_a_repeated_address_gets_the_same_answer_and_is_counted(client: TestClient) -> None:
    first = client.get(ADDRESS, headers={"accept-encoding": "identity"})
    rows, asked = counted(client, "attnstore_rows_total"), counted(client, ROUTE)
    again = client.get(ADDRESS, headers={"accept-encoding": "identity"})
    assert again.content == first.content
    assert {**again.headers} == {**first.headers}
    assert counted(client, "attnstore_rows_total") - rows == len(first.json()["rows"])
    assert counted(client, ROUTE) - asked == 1


def test_other_forms_of_an_address_are_other_answers(client: TestClient) -> None:
    for _ in range(2):
        csv = client.get(ADDRESS, headers={"accept": "text/csv"})
        json = client.get(ADDRESS, headers={"accept": "application/json"})
        packed = client.get(ADDRESS, headers={"accept-encoding": "gzip"})
        assert csv.headers["content-type"].startswith("text/csv")
        assert json.json()["rows"]
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.json()["rows"] == json.json()["rows"]


def test_what_a_client_knows_is_not_sent_again_and_no_cache_asks_anew(client: TestClient) -> None:
    etag = client.get(ADDRESS).headers["etag"]
    assert client.get(ADDRESS, headers={"if-none-match": etag}).status_code == 304
    before = counted(client, "attnstore_cached_answers_total")
    assert client.get(ADDRESS, headers={"cache-control": "no-cache"}).status_code == 200
    assert counted(client, "attnstore_cached_answers_total") == before


def test_a_problem_is_not_kept(client: TestClient) -> None:
    for _ in range(2):
        assert client.get(ADDRESS, params={"nothing": "1"}).status_code == 400


def test_a_repeated_address_is_guarded(client: TestClient) -> None:
    assert client.get(ADDRESS).status_code == 200
    assert client.get(ADDRESS, headers={"host": "elsewhere.example"}).status_code in (400, 403, 421)
    assert client.head(ADDRESS).content == b""
