"""Give a recipe another name, and leave the rest of its text as it is written."""

from stretto.documents.node import MapNode, ScalarNode, plain
from stretto.documents.yaml_form import yaml_form
from stretto.recipe.model import Recipe


def with_name(recipe: Recipe, name: str) -> str:
    """The text of the recipe, under this name."""
    if recipe.name == name:
        return recipe.source.text
    place = _name_node(recipe)
    if place is not None:
        text = recipe.source.text
        return text[: place.start] + name + text[place.end :]
    content = plain(recipe.root) if recipe.root is not None else {}
    return yaml_form({"name": name, **(content if isinstance(content, dict) else {})})


def _name_node(recipe: Recipe) -> ScalarNode | None:
    """What says the name, where it is one plain word that another can take the place of."""
    root = recipe.root
    bodies = [root]
    if isinstance(root, MapNode) and "workflow" in root.entries:
        bodies.append(root.entries["workflow"])
    for key in ("id", "name"):
        for body in bodies:
            node = body.entries.get(key) if isinstance(body, MapNode) else None
            if isinstance(node, ScalarNode) and node.value == recipe.name:
                return node if node.written == node.value else None
    return None
