"""This file writes the OpenAPI document: what FastAPI finds, and an address for each question with its parameters."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from attnstore.catalogue.catalogue import questions
from attnstore.catalogue.question import REQUIRED, Param, Question
from attnstore.serve.shapes import BARE

ASK = "/v1/questions/{name}"
_TYPES = {"integer": "integer", "real": "number", "boolean": "boolean", "text": "string"}


def document(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
        )
        schemas = found["components"]["schemas"]
        schemas |= {shape.__name__: shape.model_json_schema() for shape in BARE}
        schemas |= schemas["Rows"].pop("$defs")
        schemas["Rows"]["properties"]["columns"]["items"]["$ref"] = "#/components/schemas/Column"
        general = found["paths"].pop(ASK)["get"]
        found["components"]["responses"] = {f"Asked{status}": said for status, said in general["responses"].items()}
        general["responses"] = {
            status: {"$ref": f"#/components/responses/Asked{status}"} for status in general["responses"]
        }
        for question in questions().values():
            found["paths"][ASK.replace("{name}", question.name)] = {"get": _asked(question, general)}
        app.openapi_schema = found
    return app.openapi_schema


def _asked(question: Question, general: dict[str, Any]) -> dict[str, Any]:
    shared = [one for one in general["parameters"] if one["in"] == "query"]
    named = [
        {**one, "required": True} if one["name"] == "other" else one
        for one in shared
        if question.compares or one["name"] != "other"
    ]
    return {
        **general,
        "summary": question.help.partition("\n")[0],
        "description": f"{question.help}\n\nSource: {question.source}",
        "operationId": "ask_" + question.name.replace("/", "_"),
        "parameters": [*map(_parameter, question.params.values()), *named],
    }


def _parameter(param: Param) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _TYPES.get(param.type, "string")}
    if param.choices:
        schema["enum"] = list(param.choices)
    if param.least is not None:
        schema["minimum"] = param.least
    if param.default is not REQUIRED and param.default is not None:
        schema["default"] = param.default
    is_required = param.default is REQUIRED
    return {"name": param.name, "in": "query", "required": is_required, "schema": schema, "description": param.allowed}
