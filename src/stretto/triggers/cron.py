"""When a cron schedule fires. In: an expression, a time zone, a moment. Out: moments. No clock is read.

Five fields, as people write them for the clock on their wall. Where that clock is set (DST):

- times that the clock skips fire once, all together, at the moment when the clock moves on;
- a time that the clock shows twice fires the first time only, unless the schedule fires in every hour:
  then it fires both times.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import takewhile
from typing import TypeGuard
from zoneinfo import ZoneInfo

from stretto.problems.errors import InvalidUsage, NotReady
from stretto.text.short import did_you_mean

MISSED = ("skip", "once", "all")
OVERLAP = ("skip", "queue", "cancel-previous", "allow")
GRACE_SECONDS = 60.0  # after which a fire counts as missed
MOST_MADE_UP = 24  # missed fires that `all` makes up for
MOST_RECORDED = 10_000  # fires of one absence that are recorded one by one
_ABSENCES = (7, 56, 448, 366_000)  # days to look back, in turn, until there are enough fires
_LONGEST_EXPRESSION = 200
_SHORT = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
# No clock is set back by more than this: since 2000 the most was 3 hours, in Antarctica/Casey.
_LARGEST_STEP_BACK = timedelta(hours=4)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    cron: str
    zone: str = "UTC"

    def check(self) -> "CronSchedule":
        """The same, or InvalidUsage and what is wrong with it."""
        _zone(self.zone)
        found = next(_wall_times(self.cron, datetime(2026, 1, 1)), None)
        if found is None:
            raise InvalidUsage(f"'{self.cron}' never fires", hint="no calendar has such a day")
        return self


def next_fires(schedule: CronSchedule, after: float) -> Iterator[float]:
    """Every moment at which it fires after that one, in order, in seconds since the epoch."""
    zone = _zone(schedule.zone)
    since = datetime.fromtimestamp(after, UTC)
    start = since.astimezone(zone).replace(tzinfo=None) - _LARGEST_STEP_BACK
    is_hourly = _is_hourly(schedule.cron)
    waiting: list[float] = []
    last = after
    for wall in _wall_times(schedule.cron, start):
        for at in _moments(wall, zone, is_hourly):
            heappush(waiting, at)
        # A later wall time may be an earlier moment, by one step back of the clock at the most.
        safe = _moments(wall, zone, False)[0] - _LARGEST_STEP_BACK.total_seconds()
        while waiting and waiting[0] <= safe:
            if (at := heappop(waiting)) > last:
                last = at
                yield at
    while waiting:
        if (at := heappop(waiting)) > last:
            last = at
            yield at


def _moments(wall: datetime, zone: ZoneInfo, is_hourly: bool) -> tuple[float, ...]:
    first = wall.replace(tzinfo=zone, fold=0)
    shown = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None)
    if shown != wall:
        return (_after_gap(wall, zone),)
    second = wall.replace(tzinfo=zone, fold=1)
    if is_hourly and second.utcoffset() != first.utcoffset():
        return first.timestamp(), second.timestamp()
    return (first.timestamp(),)


def _after_gap(wall: datetime, zone: ZoneInfo) -> float:
    """The moment at which the clock moves on over `wall`, which it never shows."""
    # Read with the offset from before the gap, `wall` is a moment after it; with the other, before.
    late, early = (wall.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    before = datetime.fromtimestamp(early, UTC).astimezone(zone).utcoffset()
    while late - early > 0.5:
        middle = (early + late) / 2
        if datetime.fromtimestamp(middle, UTC).astimezone(zone).utcoffset() == before:
            early = middle
        else:
            late = middle
    return float(round(late))


_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_EVERY = re.compile(r"\*(?:/([0-9]+))?")


def in_words(cron: str) -> str:
    """'every day at 02:30', as far as it can be said in a few words; else the expression itself."""
    minute, hour, day, month, week_day = _SHORT.get(cron.strip().lower(), cron).split()
    when = _time_in_words(minute, hour)
    days = [
        _day_of_month(day),
        _named_days(week_day, _DAYS, "SUN MON TUE WED THU FRI SAT", 0, "on "),
    ]
    months = _named_days(month, _MONTHS, _SHORT_MONTHS, 1, "in ")
    if when is None or None in days or months is None:
        return f"at the times of {cron.strip()}"
    said = " and ".join(str(each) for each in days if each) if "*" in (day[0], week_day[0]) else ""
    if not said and (days[0] or days[1]):
        said = " or ".join(str(each) for each in days if each)
    is_daily = not said and when.startswith("at ") and "past every" not in when
    return " ".join(filter(None, ["every day" if is_daily else "", when, said, months]))


_SHORT_MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"


def _time_in_words(minute: str, hour: str) -> str | None:
    minute, hour = _without_uneven_step(minute, 60), _without_uneven_step(hour, 24)
    every_minute, every_hour = _EVERY.fullmatch(minute), _EVERY.fullmatch(hour)
    if every_minute is not None:
        pace = (
            "every minute" if every_minute[1] in (None, "1") else f"every {every_minute[1]} minutes"
        )
        if hour == "*":
            return pace
        ends = _numbers(hour)
        return f"{pace} from {ends[0]:02}:00 to {ends[-1]:02}:59" if _is_run(ends) else None
    minutes = _numbers(minute)
    if minutes is None or len(minutes) > 4:
        return None
    if every_hour is not None:
        pace = "every hour" if every_hour[1] in (None, "1") else f"every {every_hour[1]} hours"
        return (
            f"at {_join_words([f'{each:02}' for each in minutes])} minutes past {pace}"
            if minutes != [0]
            else pace
        )
    hours = _numbers(hour)
    if hours is None or len(hours) * len(minutes) > 6:
        return None
    return "at " + _join_words([f"{each:02}:{past:02}" for each in hours for past in minutes])


def _without_uneven_step(field: str, size: int) -> str:
    """`*/25` of 60 minutes begins anew at each hour, so it is no pace: 0,25,50."""
    every = _EVERY.fullmatch(field)
    step = int(every[1] or 1) if every else 1
    return field if size % step == 0 else ",".join(map(str, range(0, size, step)))


def _day_of_month(field: str) -> str | None:
    if field == "*":
        return ""
    if field.upper() == "L":
        return "on the last day of the month"
    days = _numbers(field)
    if days is None or len(days) > 6:
        return None
    return f"on day {_join_words([str(each) for each in days])} of the month"


def _named_days(field: str, names: list[str], short: str, first: int, word: str) -> str | None:
    if field == "*":
        return ""
    for number, name in enumerate(short.split()):
        field = re.sub(rf"\b{name}\b", str(number + first), field, flags=re.IGNORECASE)
    found = _numbers(field)
    if found is None or not all(0 <= each - first < len(names) for each in found):
        return None
    said = [names[each - first] for each in found]
    if len(said) > 2 and _is_run(found):
        return f"from {said[0]} to {said[-1]}"
    return word + _join_words(list(dict.fromkeys(said)))


def _numbers(field: str) -> list[int] | None:
    found: list[int] = []
    for part in field.split(","):
        read = re.fullmatch(r"([0-9]{1,2})(?:-([0-9]{1,2}))?", part)
        if read is None:
            return None
        found += range(int(read[1]), int(read[2] or read[1]) + 1)
    return found or None


def _is_run(numbers: list[int] | None) -> TypeGuard[list[int]]:
    return numbers is not None and numbers == list(range(numbers[0], numbers[-1] + 1))


def _join_words(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _wall_times(cron: str, after: datetime) -> Iterator[datetime]:
    """Raises InvalidUsage and NotReady."""
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        hint = "pip install 'stretto[serve]'"
        raise NotReady("schedules need the package cronsim", hint=hint) from None
    written = _SHORT.get(cron.strip().lower(), cron)
    hint = "minute, hour, day of month, month, day of week: '30 2 * * *' is every night at half past two"
    if len(written) > _LONGEST_EXPRESSION or len(written.split()) != 5:
        known = did_you_mean(cron, _SHORT) if cron.startswith("@") else hint
        raise InvalidUsage(
            f"'{cron[:60]}' is no cron expression of five fields", hint=known or hint
        )
    try:
        found = CronSim(written, after)
    except CronSimError as error:
        if "day-of-month" in str(error) and _is_right_in_any_month(written, after):
            said = f"'{cron}' would never fire: none of its months has such a day"
            raise InvalidUsage(said) from None
        raise InvalidUsage(f"'{cron}' is no cron expression: {error}", hint=hint) from None
    return takewhile(lambda at: at.year < 9000, found)


def _is_right_in_any_month(written: str, after: datetime) -> bool:
    from cronsim import CronSim, CronSimError

    minute, hour, day, _, weekday = written.split()
    try:
        CronSim(f"{minute} {hour} {day} * {weekday}", after)
    except CronSimError:
        return False
    return True


def _is_hourly(cron: str) -> bool:
    """Whether it fires in every hour of the day."""
    from cronsim import CronSim

    return len(CronSim(_SHORT.get(cron.strip().lower(), cron), datetime(2026, 1, 1)).hours) == 24


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        pass
    except KeyError:
        pass
    from zoneinfo import available_timezones

    hint = did_you_mean(name, sorted(available_timezones())) or "such as Europe/Berlin or UTC"
    raise InvalidUsage(f"there is no time zone '{name[:60]}'", hint=hint)


@dataclass(frozen=True, slots=True)
class DueFire:
    """A moment at which a schedule was due, and whether a run is to start for it."""

    at: float
    is_run: bool
    why: str = ""  # why no run starts


@dataclass(frozen=True, slots=True)
class DueFires:
    fires: tuple[DueFire, ...]
    until: float  # all fires up to here are decided


def due(schedule: CronSchedule, missed: str, since: float, now: float) -> DueFires:
    """What a schedule owes between two moments, by its policy for missed fires.

    `since`: up to where its fires are decided. Where the clock was set back (`now` lies before), it
    goes on from `now`: whoever records fires refuses one that is on record, so none runs twice.
    """
    if now <= since:
        return DueFires((), now)
    found, looked_from = _newest(schedule, since, now)
    late = [at for at in found if now - at > GRACE_SECONDS]
    is_on_time = len(late) < len(found)  # then that one makes up for those before it
    most = {"skip": 0, "once": 0 if is_on_time else 1, "all": MOST_MADE_UP}[missed]
    made_up = frozenset(late[max(0, len(late) - most) :])
    fires = [_decide(at, now, missed, made_up) for at in found]
    if looked_from > since and fires and not fires[0].is_run:
        fires[0] = DueFire(fires[0].at, False, f"{fires[0].why}; and so were all before it")
    return DueFires(tuple(fires), now)


def _newest(schedule: CronSchedule, since: float, now: float) -> tuple[list[float], float]:
    """The newest fires between two moments, at most MOST_RECORDED, and from which moment on these
    are all that there are."""
    for days in _ABSENCES:
        start = max(since, now - days * 86_400)
        found = list(takewhile(lambda at: at <= now, next_fires(schedule, start)))
        if start == since or len(found) >= MOST_RECORDED:
            break
    return found[-MOST_RECORDED:], start if len(found) <= MOST_RECORDED else found[-MOST_RECORDED]


def _decide(at: float, now: float, missed: str, made_up: frozenset[float]) -> DueFire:
    if now - at <= GRACE_SECONDS or at in made_up:
        return DueFire(at, True)
    why = {
        "skip": "missed",
        "once": "missed; a later one makes up for it",
        "all": f"missed, and more than {MOST_MADE_UP} were",
    }
    return DueFire(at, False, why[missed])
