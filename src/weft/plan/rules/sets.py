"""Read and write sets are globs inside the workspace."""

from collections.abc import Sequence

from weft.documents.node import Path
from weft.plan.draft import Draft

MOST_GLOBS = 256


def check(draft: Draft) -> None:
    for step in draft.recipe.steps:
        for key, texts in (("read_set", step.read_set), ("write_set", step.write_set)):
            if texts:
                _check(draft, (*step.at, key), texts)
        if step.posture == "read_only" and step.write_set:
            draft.warn(
                "RCP902",
                (*step.at, "write_set"),
                f"step '{step.id}' is read_only, so its write_set is not used",
                "remove it, or write posture: writer",
            )


def _check(draft: Draft, at: Path, texts: Sequence[str]) -> None:
    from weft.plan.globs import GlobFault, parse_glob  # on use: most recipes have no sets

    count = 0
    for position, text in enumerate(texts):
        glob = parse_glob(text)
        if isinstance(glob, GlobFault):
            draft.say(glob.code, draft.element(at, position, text), glob.message, glob.hint)
        else:
            count += len(glob.patterns)
    # Every glob of a step may have to be compared with every one of another.
    if count > MOST_GLOBS:
        message = f"the {at[-1]} stands for {count:,} globs; at most {MOST_GLOBS} are allowed"
        draft.say("RCP118", at, message, "name folders instead of files")
