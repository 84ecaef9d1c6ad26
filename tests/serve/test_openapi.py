"""The OpenAPI document says what the service does: real requests made from it get what it promises."""

from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from attnstore.catalogue.catalogue import questions
from tests.serve.running import Running

schemathesis = pytest.importorskip("schemathesis")


def test_every_question_has_an_address_with_its_parameters(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    for question in questions().values():
        found = document["paths"][f"/v1/questions/{question.name}"]["get"]
        names = [one["name"] for one in found["parameters"] if one["in"] == "query"]
        assert set(question.params) < set(names), question.name
        assert ("other" in names) == question.compares, question.name
        assert len(names) == len(set(names)), question.name


def test_every_reference_of_the_document_leads_somewhere(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    seen = []

    def walk(part: Any) -> None:
        for value in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            walk(value)
        if isinstance(part, dict) and isinstance(part.get("$ref"), str):
            place = document
            for step in part["$ref"].removeprefix("#/").split("/"):
                place = place[step]
            seen.append(part["$ref"])

    walk(document)
    assert "#/components/schemas/Rows" in seen


@pytest.mark.slow
def test_made_up_requests_get_what_the_document_promises(server: Running) -> None:
    from hypothesis import HealthCheck, given, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [content_type_conformance, response_schema_conformance, status_code_conformance, not_a_server_error]
    schema = schemathesis.openapi.from_dict(httpx.get(f"{server.url}/openapi.json").json())
    asked = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path.startswith("/v1/questions/") and not operation.path.startswith("/v1/questions/heads/"):
            continue

        @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy())
        def asks(case: Any) -> None:
            nonlocal asked
            response = case.call(base_url=server.url, timeout=90)
            asked += 1
            wanted = checks if response.status_code != 503 else checks[:3]
            case.validate_response(response, checks=wanted)

        asks()
    assert asked > 50
