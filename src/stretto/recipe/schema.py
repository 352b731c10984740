"""The JSON Schema of recipes. In: the grammar. Out: draft-07, which every editor reads."""

from stretto.documents.shapes import JsonSchema
from stretto.recipe.grammar import BODY, ENVELOPE, STEP


def recipe_schema() -> JsonSchema:
    """Flat and structural recipes have their steps at the root, wrapped ones under workflow:."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Stretto recipe",
        "description": BODY.about,
        "definitions": {"recipe": _body(), "wrapped": _envelope()},
        # if/then, not oneOf: an editor then reports the one mistake and not both alternatives.
        "if": {"required": ["workflow"]},
        "then": {"$ref": "#/definitions/wrapped"},
        "else": {"$ref": "#/definitions/recipe"},
    }


def _body() -> JsonSchema:
    schema = BODY.schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["steps"] = {
        "type": "array",
        "minItems": 1,
        "items": STEP.schema(),
        "description": "the work: a list of steps",
    }
    return schema


def _envelope() -> JsonSchema:
    schema = ENVELOPE.schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["workflow"] = {"$ref": "#/definitions/recipe"}
    return schema
