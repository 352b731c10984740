"""Read and write sets are globs inside the workspace."""

from weft.plan.draft import Draft
from weft.plan.globs import GlobFault, parse_glob


def check(draft: Draft) -> None:
    for step in draft.recipe.steps:
        for key, texts in (("read_set", step.read_set), ("write_set", step.write_set)):
            for position, text in enumerate(texts or ()):
                glob = parse_glob(text)
                if isinstance(glob, GlobFault):
                    at = (*step.at, key, position)
                    draft.say(glob.code, at, glob.message, glob.hint)
        if step.posture == "read_only" and step.write_set:
            draft.warn(
                "RCP902",
                (*step.at, "write_set"),
                f"step '{step.id}' is read_only, so its write_set is not used",
                "remove it, or write posture: writer",
            )
