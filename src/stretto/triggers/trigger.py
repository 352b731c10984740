"""What a trigger is, and what it has fired: values, and their JSON, the same on every surface. A secret is in neither."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stretto.vocabulary.amounts import iso
from stretto.vocabulary.json_value import Json

KINDS = ("schedule", "webhook", "folder")


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a workflow starts by itself."""

    name: str
    kind: str  # schedule | webhook | folder
    workflow: str
    inputs: Mapping[str, Json] = field(default_factory=dict)  # the same for every run
    cron: str = ""  # schedule
    zone: str = "UTC"
    missed: str = "once"  # what becomes of fires while nobody served: skip | once | all
    overlap: str = "skip"  # while its last run goes on: skip | queue | cancel-previous | allow
    folder: str = ""  # folder: the path that is watched
    pattern: str = "*"  # and which files of it
    settle_seconds: float = 2.0  # how long a file must stay as it is
    input: str = ""  # folder: the input that gets the file's path
    mapping: Mapping[str, str] = field(default_factory=dict)  # webhook: input → template
    hook: str = ""  # webhook: the last part of its address
    permission: str | None = None
    is_paused: bool = False
    created_at: float = 0.0
    decided_until: float = 0.0  # schedule: all fires up to here are on record


@dataclass(frozen=True, slots=True)
class TriggerFire:
    """One time that a trigger fired, on record before its run starts."""

    trigger: str
    kind: str
    key: str  # the moment it was due at, a delivery, a version of a file
    run_id: str
    due_at: float
    at: float  # when it was recorded
    status: str  # queued | started | skipped | failed
    why: str = ""
    inputs: Mapping[str, Json] = field(default_factory=dict)  # besides those of the trigger
    owner: str = ""  # whose the run is; empty: of nobody but the user of this machine
    starter: str = ""  # the process that starts its run itself, until the run has begun


_OF_KIND = {
    "schedule": ("cron", "zone", "missed"),
    "webhook": ("hook", "mapping"),
    "folder": ("folder", "pattern", "settle_seconds", "input"),
}


def trigger_as_json(trigger: Trigger) -> dict[str, Json]:
    own: dict[str, Json] = {name: getattr(trigger, name) for name in _OF_KIND[trigger.kind]}
    return {
        "name": trigger.name,
        "kind": trigger.kind,
        "workflow": trigger.workflow,
        "inputs": dict(trigger.inputs),
        **own,
        "overlap": trigger.overlap,
        "permission": trigger.permission,
        "paused": trigger.is_paused,
        "created_at": iso(trigger.created_at),
    }


def fire_as_json(fire: TriggerFire) -> dict[str, Json]:
    return {
        "trigger": fire.trigger,
        "kind": fire.kind,
        "key": fire.key,
        "run_id": fire.run_id,
        "due_at": iso(fire.due_at),
        "status": fire.status,
        "why": fire.why or None,
    }
