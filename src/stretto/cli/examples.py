"""The examples under the help of each command. A test checks that each is accepted as it stands."""

EXAMPLES = {
    "": (
        "stretto init                     make a project in this folder",
        "stretto list                     which recipes there are",
        "stretto run research-and-brief -i topic=tea",
        "stretto help run                 all options of a command, with examples",
        "stretto explain RCP104           what a problem's code means",
    ),
    "init": ("stretto init",),
    "new": (
        "stretto new                                list the templates",
        "stretto new digest --template map-reduce   write workflows/digest.yaml",
    ),
    "validate": (
        "stretto validate                 all recipes of the project",
        "stretto validate brief.yaml",
        "stretto validate --json          for scripts and editors",
    ),
    "plan": (
        "stretto plan brief.yaml -i topic=tea",
        "stretto plan brief.yaml --full   whole prompts",
    ),
    "explain": (
        "stretto explain brief.yaml       the recipe in prose",
        "stretto explain RCP104           what the code of a problem means",
    ),
    "graph": (
        "stretto graph brief.yaml",
        "stretto graph brief.yaml --format svg > brief.svg",
    ),
    "list": ("stretto list",),
    "show": ("stretto show research-and-brief",),
    "schema": ("stretto schema > recipe.schema.json",),
    "run": (
        "stretto run brief.yaml -i topic=tea",
        "stretto run brief.yaml -i text=@notes.txt  an input from a file",
        "stretto run brief.yaml --permission ask    ask before files are changed",
        "stretto run brief.yaml --detach            in the background",
    ),
    "resume": ("stretto resume RUN",),
    "retry": (
        "stretto retry RUN                what failed, and what depends on it",
        "stretto retry RUN --from review  everything from a step on",
    ),
    "fork": ("stretto fork RUN --from review -i tone=formal",),
    "cancel": ("stretto cancel RUN",),
    "runs": ("stretto runs",),
    "watch": ("stretto watch RUN",),
    "report": (
        "stretto report RUN",
        "stretto report RUN --format html -o report.html",
    ),
    "logs": (
        "stretto logs RUN",
        "stretto logs RUN review -f       one step, as it goes",
    ),
    "output": (
        "stretto output RUN",
        "stretto output RUN review > review.md",
    ),
    "events": ("stretto events RUN --follow",),
    "diff": (
        "stretto diff RUN STEP            what a step changed",
        "stretto diff RUN RUN             what differed between two runs",
    ),
    "approve": (
        "stretto approve RUN STEP --show  what would run",
        "stretto approve RUN STEP",
    ),
    "reject": ('stretto reject RUN STEP --reason "too broad"',),
    "apply": (
        "stretto apply RUN STEP",
        "stretto apply RUN STEP --theirs  where both changed a line, the step's",
    ),
    "doctor": (
        "stretto doctor",
        "stretto doctor --smoke           prove that the engine works here",
    ),
    "models": (
        "stretto models list",
        "stretto models pull smollm2      fetch the weights of a small model",
        "stretto models use local:smollm2",
    ),
    "agents": (
        "stretto agents list",
        "stretto agents show researcher",
    ),
    "trust": ("stretto trust",),
    "prune": ("stretto prune --dry-run          what would be removed",),
    "help": (
        "stretto help                     all commands",
        "stretto help models pull",
    ),
}
