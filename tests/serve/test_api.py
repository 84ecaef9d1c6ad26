"""What programs get: rows, maps and descriptions in the form that they ask for, each naming where it comes from."""

import base64
import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import attnstore
from attnstore.catalogue.catalogue import questions
from attnstore.serve.access import Access
from attnstore.serve.api import RESERVED
from attnstore.serve.app import make_app
from attnstore.serve.delivery import Held, wish
from attnstore.serve.limits import Limits
from attnstore.serve.map_forms import as_json
from attnstore.serve.problems import Problem
from attnstore.serve.published import Published, publish, shown_model
from attnstore.store.attention_map import AttentionMap
from tests.serve.running import Running

ARROW = "application/vnd.apache.arrow.stream"
ENTROPY = "/v1/questions/heads/entropy"


def told(answer: object, status: int, kind: str) -> dict[str, object]:
    """The problem that an answer tells of."""
    assert answer.status_code == status, answer.text  # type: ignore[attr-defined]
    assert answer.headers["content-type"] == "application/problem+json"  # type: ignore[attr-defined]
    found: dict[str, object] = answer.json()  # type: ignore[attr-defined]
    assert (found["type"], found["status"]) == (f"/problems/{kind}", status)
    return found


# --- what every answer carries


def test_a_question_gives_what_the_library_gives(client: TestClient, tiny_store: Path) -> None:
    found = client.get(ENTROPY, params={"eps": 0.001}).json()
    with attnstore.open(tiny_store) as store:
        expected = store.ask("heads/entropy", eps=0.001)
    assert [column["name"] for column in found["columns"]] == list(expected.columns)
    assert [tuple(row) for row in found["rows"]] == [tuple(row.values()) for row in expected]


def test_json_csv_and_arrow_say_the_same_and_name_their_snapshot(
    client: TestClient, published: dict[str, Published]
) -> None:
    snapshot = published["tiny"].content_hash
    as_json, as_csv, as_arrow = (client.get(ENTROPY, params={"format": form}) for form in ("json", "csv", "arrow"))
    body = as_json.json()
    assert (body["snapshot"], body["truncated"], body["cite"]["question"]) == (snapshot, False, "heads/entropy")
    for answer in (as_json, as_csv, as_arrow):
        assert answer.headers["attnstore-snapshot"] == snapshot
        assert answer.headers["attnstore-truncated"] == "false"
        cited = json.loads(base64.b64decode(answer.headers["attnstore-cite"]))
        assert (cited["content_hash"], cited["question"]) == (snapshot, "heads/entropy")
    table = pa.ipc.open_stream(as_arrow.content).read_all()
    said = json.loads(table.schema.metadata[b"attnstore"])
    assert (said["snapshot"], said["truncated"], said["cite"]["title"]) == (snapshot, False, "tiny")
    names = [column["name"] for column in body["columns"]]
    assert table.to_pylist() == [dict(zip(names, row, strict=True)) for row in body["rows"]]
    rows = list(csv.DictReader(io.StringIO(as_csv.text)))
    assert [{name: float(text) for name, text in row.items()} for row in rows] == table.to_pylist()


@pytest.mark.parametrize("form", ["json", "csv", "arrow"])
def test_an_answer_that_was_cut_says_so(client: TestClient, form: str) -> None:
    answer = client.get(ENTROPY, params={"format": form, "max_rows": 2})
    assert (answer.headers["attnstore-truncated"], answer.headers["attnstore-rows"]) == ("true", "2")
    if form == "json":
        assert answer.json()["truncated"] is True
    if form == "arrow":
        assert json.loads(pa.ipc.open_stream(answer.content).schema.metadata[b"attnstore"])["truncated"] is True


def test_sql_is_answered_by_post_and_by_a_link(client: TestClient) -> None:
    sql = "select form, count(*) as n from words where form = $form group by form"
    posted = client.post("/v1/query", json={"sql": sql, "params": {"form": "the"}})
    linked = client.get("/v1/query", params={"sql": sql, "params": '{"form": "the"}'})
    assert posted.json()["rows"] == linked.json()["rows"] == [["the", 6]]
    assert posted.headers["cache-control"] == linked.headers["cache-control"] == "no-store"


def test_a_second_store_is_asked_by_its_name(client: TestClient, published: dict[str, Published]) -> None:
    assert client.get(ENTROPY, params={"store": "other"}).json()["snapshot"] == published["other"].content_hash
    both = client.get("/v1/questions/compare/heads", params={"store": "tiny", "other": "other", "max_rows": 3})
    assert both.json()["cite"]["compared_with"]["content_hash"] == published["other"].content_hash
    told(client.get("/v1/questions/compare/heads"), 400, "bad-parameter")
    told(client.get(ENTROPY, params={"other": "other"}), 400, "bad-parameter")
    told(client.get(ENTROPY, params={"store": "another"}), 404, "not-found")


def test_where_leaves_only_some_examples(client: TestClient) -> None:
    found = client.get(ENTROPY, params={"where": "n_words < 5"}).json()
    assert {row[-1] for row in found["rows"]} == {1}
    told(client.get(ENTROPY, params={"where": "1=1) or (select 1 from duckdb_settings()"}), 403, "refused")


# --- maps


def test_a_map_is_the_one_that_was_stored(
    client: TestClient, published: dict[str, Published], arrays_maps: dict[str, np.ndarray]
) -> None:
    answer = client.get("/v1/attention/s3/1/2")
    found = answer.json()
    assert (found["name"], found["layer"], found["head"], found["kind"]) == ("s3", 1, 2, "encoder")
    assert found["queries"] == found["keys"] == ["[CLS]", "rain", "fell", "[SEP]"]
    np.testing.assert_allclose(found["weights"], arrays_maps["s3"][1, 2], atol=2e-3)
    assert (found["snapshot"], found["truncated"]) == (published["tiny"].content_hash, False)
    assert found["cite"]["content_hash"] == answer.headers["attnstore-snapshot"] == published["tiny"].content_hash
    as_npy = client.get("/v1/attention/3/1/2", headers={"accept": "application/x-npy"})
    assert as_npy.headers["content-type"] == "application/x-npy"
    assert json.loads(base64.b64decode(as_npy.headers["attnstore-cite"])) == found["cite"]
    np.testing.assert_array_equal(np.load(io.BytesIO(as_npy.content)), np.float32(found["weights"]))


def test_a_map_is_hidden_and_divided_as_asked(client: TestClient) -> None:
    found = client.get("/v1/attention/s3/0/0", params={"specials": "false", "renormalise": "true"}).json()
    assert found["keys"] == ["rain", "fell"]
    np.testing.assert_allclose(np.sum(found["weights"], axis=1), 1, atol=1e-5)
    words = client.get("/v1/attention/s6/0/0", params={"level": "word"}).json()
    assert {"neighbours'", "barked"} <= set(words["queries"])


def test_a_map_that_is_too_large_is_refused_in_both_forms(published: dict[str, Published]) -> None:
    access = Access(("testserver",))
    for limits, refused, given in (
        (Limits(workers=1, prepared=0, max_bytes=500), "json", "npy"),
        (Limits(workers=1, prepared=0, max_arrow_bytes=500), "npy", "json"),
    ):
        with TestClient(make_app(published, limits, access), raise_server_exceptions=False) as small:
            for path in ("/v1/attention/6/0/0", "/v1/attention/3/0/0"):
                found = told(small.get(path, params={"format": refused}), 413, "too-large")
                assert found["expected"] == "500 bytes"
                assert small.get(path, params={"format": given}).status_code == 200


def test_weights_that_are_not_kept_are_null_in_a_map_and_no_limit_is_passed() -> None:
    weights = np.array([[0.5, np.nan], [0.25, 0.75]], np.float32)
    found = AttentionMap(weights, ("query", "key"), (0,), (1,), ("a", "b"), ("a", "b"), "encoder", "token", 0, "s0")
    body = as_json(found, 0, 1, {"truncated": False}, 10_000)
    assert json.loads(body)["weights"] == [[0.5, None], [0.25, 0.75]]
    assert as_json(found, 0, 1, {"truncated": False}, len(body)) == body
    for most in (len(body) - 1, 15):
        with pytest.raises(Problem):
            as_json(found, 0, 1, {"truncated": False}, most)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/srv/models/tuned", "tuned"),
        ("/srv/models/tuned/", "tuned"),
        ("C:\\models\\tuned", "tuned"),
        ("google-bert/bert-base-cased", "google-bert/bert-base-cased"),
        ("", ""),
    ],
)
def test_a_model_is_named_without_where_it_lay(name: str, shown: str) -> None:
    assert shown_model(name) == shown


def test_no_answer_tells_where_the_model_lay(make_store: Callable[..., Path]) -> None:
    store = publish([("one", make_store("one.attn", model__name="/srv/secret/tuned"))])
    other = publish([("two", make_store("two.attn", model__name="/srv/secret/other"))])
    with TestClient(make_app({**store, **other}, Limits(workers=1, prepared=0), Access(("testserver",)))) as client:
        for path in (
            "/v1/stores",
            f"{ENTROPY}?max_rows=1",
            f"{ENTROPY}?max_rows=1&format=arrow",
            "/v1/query?sql=select+1",
            "/v1/attention/0/0/0",
            "/v1/evidence",
            "/v1/questions/compare/heads?store=one&other=two&max_rows=1",
            "/v1/questions/compare/heads?store=one&other=two&max_rows=1&format=arrow",
        ):
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
            said = answer.content + base64.b64decode(answer.headers.get("attnstore-cite", ""))
            assert b"secret" not in said, path
            if "attnstore-cite" in answer.headers:
                cited = json.loads(base64.b64decode(answer.headers["attnstore-cite"]))
                assert cited["model"] == "tuned"
                assert cited.get("compared_with", {"model": "other"})["model"] == "other"


@pytest.mark.parametrize(
    ("place", "status", "kind"),
    [
        ("nowhere/0/0", 404, "not-found"),
        ("0/9/0", 404, "not-found"),
        ("0/0/9", 404, "not-found"),
        ("0/-1/0", 400, "bad-parameter"),
        ("0/x/0", 400, "bad-parameter"),
        ("0/99999999999999999999/0", 400, "bad-parameter"),
        ("99999999999999999999/0/0", 404, "not-found"),
        ("0/0/0?level=letter", 400, "bad-parameter"),
        ("0/0/0?levle=word", 400, "bad-parameter"),
        ("0/0/0?level=word&level=token", 400, "bad-parameter"),
        ("0/0/0?kind=cross", 404, "not-found"),
        ("0/0/0?hide=vowels", 400, "bad-parameter"),
        ("0/0/0?weights=norm", 422, "not-stored"),
    ],
)
def test_a_map_that_is_not_there_is_a_problem(client: TestClient, place: str, status: int, kind: str) -> None:
    told(client.get(f"/v1/attention/{place}"), status, kind)


# --- what the service says of itself


def test_stores_schema_evidence_and_questions_are_described(
    client: TestClient, published: dict[str, Published], tiny_store: Path
) -> None:
    assert client.get("/v1").json()["stores"] == ["tiny", "other"]
    (tiny, other) = client.get("/v1/stores").json()
    assert tiny == client.get("/v1/stores/tiny").json()
    assert (tiny["content_hash"], other["name"]) == (published["tiny"].content_hash, "other")
    assert tiny["kinds"] == {"encoder": {"layers": 2, "heads": 3}}
    schema = client.get("/v1/stores/tiny/schema").json()
    with attnstore.open(tiny_store) as store:
        assert schema["tables"] == store.tables
    assert schema["snapshot"] == client.get("/v1/evidence").json()["snapshot"] == published["tiny"].content_hash
    found = {question["name"]: question for question in client.get("/v1/questions").json()}
    assert list(found) == list(questions())
    (eps,) = (param for param in found["heads/entropy"]["params"] if param["name"] == "eps")
    assert (eps["type"], eps["required"]) == ("real", False)


def test_health_readiness_and_counters_are_there(client: TestClient) -> None:
    assert client.get("/healthz").json() == client.get("/readyz").json() == {"status": "ok"}
    client.get("/v1/questions/no/such")
    text = client.get("/metrics").text
    assert 'attnstore_requests_total{status="404",what="/v1/questions/{name:path}"}' in text
    assert 'attnstore_requests_total{status="200",what="/healthz"}' in text


def test_no_question_has_a_parameter_that_an_address_means_otherwise() -> None:
    for question in questions().values():
        assert not set(question.params) & set(RESERVED), question.name


# --- which form


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("*/*", "application/json"),
        ("text/csv", "text/csv; charset=utf-8"),
        ("text/csv; charset=utf-8", "text/csv; charset=utf-8"),
        ("application/json;q=0.5, text/csv", "text/csv; charset=utf-8"),
        (f"text/html, {ARROW};q=0.9, */*;q=0.1", ARROW),
        ("text/*", "text/csv; charset=utf-8"),
        ("application/*", "application/json"),
        ("application/json;q=0, */*", "text/csv; charset=utf-8"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"),
    ],
)
def test_accept_chooses_the_form(client: TestClient, accept: str, given: str) -> None:
    answer = client.get(ENTROPY, headers={"accept": accept})
    assert answer.headers["content-type"] == given
    assert "Accept" in answer.headers["vary"]


def test_a_form_that_is_not_there_is_a_problem_and_format_goes_before_accept(client: TestClient) -> None:
    told(client.get(ENTROPY, headers={"accept": "image/png"}), 406, "not-acceptable")
    told(client.get("/v1/attention/0/0/0", headers={"accept": "text/csv"}), 406, "not-acceptable")
    assert client.get(ENTROPY, params={"format": "csv"}, headers={"accept": "image/png"}).status_code == 200
    told(client.get(ENTROPY, params={"format": "xml"}), 400, "bad-parameter")


def test_a_header_that_is_no_preference_likes_nothing() -> None:
    assert wish("text/csv;q=much", ("text/csv",)) is None
    assert wish("", ("text/csv",)) is None
    assert wish("gzip;q=0, *", ("gzip",)) is None
    assert wish("br, *;q=0.1", ("gzip",)) == "gzip"


def test_text_is_packed_for_those_who_unpack_it(server: Running) -> None:
    path, plain = f"{ENTROPY}?max_rows=100", {"accept-encoding": "identity"}
    with server.client() as client:
        whole = client.get("/v1/questions/heads/entropy", params={"format": "csv"}, headers=plain)
        assert "content-encoding" not in whole.headers
        assert int(whole.headers["content-length"]) == len(whole.content)
        with client.stream("GET", "/v1/questions/relations/best", headers={"accept-encoding": "gzip"}) as packed:
            raw = b"".join(packed.iter_raw())
        assert packed.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(raw))["columns"]
        arrow = client.get(path, headers={"accept": ARROW, "accept-encoding": "gzip"})
        assert "content-encoding" not in arrow.headers


def test_head_gives_the_headers_alone(server: Running) -> None:
    with server.client() as client:
        for path in (ENTROPY, "/v1", "/healthz", "/openapi.json", "/v1/attention/0/0/0", "/v1/questions/no/such"):
            got, headed = client.get(path), client.head(path)
            assert (headed.status_code, headed.content) == (got.status_code, b""), path
            assert headed.headers["content-type"] == got.headers["content-type"], path


# --- answers that a client has


def test_an_answer_that_the_client_has_is_not_sent_again(client: TestClient) -> None:
    first = client.get(ENTROPY)
    etag = first.headers["etag"]
    for condition in (etag, etag.removeprefix("W/"), f'"other", {etag}'):
        again = client.get(ENTROPY, headers={"if-none-match": condition})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert client.get(ENTROPY, headers={"if-none-match": '"other"'}).status_code == 200
    for other in ({"eps": 0.5}, {"store": "other"}, {"format": "csv"}, {"where": "n_words < 5"}, {"max_rows": 2}):
        assert client.get(ENTROPY, params=other).headers["etag"] != etag, other


# --- what is refused


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("eps=1&eps=2", "eps twice"),
        ("store=tiny&store=other", "store twice"),
        ("epsilon=1", "no parameter 'epsilon'"),
        ("eps=small", "eps='small'"),
        ("max_rows=0", "max_rows"),
        ("max_rows=many", "max_rows"),
        ("where=" + "a" * 5000, "where"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(client: TestClient, query: str, said: str) -> None:
    assert said in str(told(client.get(f"{ENTROPY}?{query}"), 400, "bad-parameter")["detail"])


def test_a_parameter_that_an_address_does_not_have_is_refused_everywhere(client: TestClient) -> None:
    for path in ("/v1", "/v1/stores", "/v1/evidence", "/v1/questions", "/healthz", "/v1/query?sql=select+1"):
        told(client.get(path + ("&" if "?" in path else "?") + "colour=red"), 400, "bad-parameter")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"", "application/json"),
        (b"[]", "application/json"),
        (b'{"sql": 1}', "application/json"),
        (b'{"sql": ""}', "application/json"),
        (b'{"sql": "select 1", "limit": 5}', "application/json"),
        (b'{"sql": "select 1", "params": {"a": [1]}}', "application/json"),
        (b'{"sql": "select 1", "max_rows": 0}', "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"sql=select+1", "application/x-www-form-urlencoded"),
        (b"select 1", "text/plain"),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
    ],
)
def test_a_statement_that_is_no_json_is_a_problem(client: TestClient, body: bytes, kind: str) -> None:
    told(client.post("/v1/query", content=body, headers={"content-type": kind}), 400, "bad-parameter")


def test_methods_and_addresses_that_are_not_there_are_problems(client: TestClient) -> None:
    told(client.get("/v2"), 404, "not-found")
    told(client.get("/v1/questions/no/such"), 404, "not-found")
    told(client.get("/problems/none"), 404, "not-found")
    answer = client.request("DELETE", "/v1/query")
    told(answer, 405, "not-allowed")
    assert answer.headers["allow"] == "HEAD, GET, POST"
    told(client.options("/v1"), 405, "not-allowed")
    assert client.get("/problems/busy").json()["status"] == 503


def test_params_of_a_link_are_an_object_of_plain_values(client: TestClient) -> None:
    for params in ("[]", "{", '{"a": {}}', '{"a": [1]}', "1"):
        told(client.get("/v1/query", params={"sql": "select 1", "params": params}), 400, "bad-parameter")


def test_no_answer_says_where_the_store_lies(client: TestClient, tiny_store: Path) -> None:
    paths = ["/v1", "/v1/stores", "/v1/stores/tiny", "/v1/stores/tiny/schema", "/v1/evidence", ENTROPY, "/openapi.json"]
    paths += ["/v1/attention/0/0/0", "/v1/attention/99/0/0", "/v1/questions/..%2f..%2fetc", "/v1/query?sql=select+x"]
    paths += ["/v1/query?sql=select+*+from+'/etc/passwd'", "/v1/questions/relations/best?relation=%00", "/metrics"]
    for path in paths:
        answer = client.get(path)
        assert answer.status_code != 500, path
        assert str(tiny_store.parent) not in answer.text, path
        assert "Traceback" not in answer.text, path


# --- how much is in memory


def test_answers_in_flight_are_bounded_and_one_alone_is_handed_over() -> None:
    held = Held(1000)
    held.check(5000)
    held.bytes = 600
    held.check(400)
    with pytest.raises(Problem) as caught:
        held.check(401)
    assert (caught.value.kind, caught.value.status) == ("busy", 503)
    assert caught.value.retry_after
