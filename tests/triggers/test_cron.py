"""When schedules fire: every moment once and none lost, whatever is done to the clock."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from stretto.problems.errors import InvalidUsage
from stretto.triggers.cron import (
    MOST_MADE_UP,
    MOST_RECORDED,
    CronSchedule,
    due,
    in_words,
    next_fires,
)

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC")
# A day on which each zone sets its clock, forward and back; Kolkata and UTC never do.
CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-10-04", "2026-04-05"),
    "Asia/Kolkata": ("2026-03-29", "2026-10-25"),
    "UTC": ("2026-03-29", "2026-10-25"),
}
CRONS = (
    "30 2 * * *",
    "0 2 * * *",
    "15 1,2,3 * * *",
    "0 * * * *",
    "*/10 * * * *",
    "45 */2 * * *",
    "0 0 * * SUN",
)
MOMENTS = st.floats(1_770_000_000, 1_800_000_000)


def moment(written: str, zone: str) -> float:
    return datetime.fromisoformat(written).replace(tzinfo=ZoneInfo(zone)).timestamp()


def shown(schedule: CronSchedule, after: str, count: int) -> list[str]:
    start = moment(after, schedule.zone)
    zone = ZoneInfo(schedule.zone)
    found = islice(next_fires(schedule, start), count)
    return [datetime.fromtimestamp(at, zone).strftime("%d %H:%M%z") for at in found]


def test_a_time_that_the_clock_skips_fires_when_it_has_moved_on() -> None:
    nightly = CronSchedule("30 2 * * *", "Europe/Berlin")
    assert shown(nightly, "2026-03-28T12:00", 2) == ["29 03:00+0200", "30 02:30+0200"]
    often = CronSchedule("*/20 * * * *", "Europe/Berlin")
    assert shown(often, "2026-03-29T01:30", 3) == [
        "29 01:40+0100",
        "29 03:00+0200",
        "29 03:20+0200",
    ]
    # Lord Howe moves by half an hour.
    assert shown(CronSchedule("10 2 * * *", "Australia/Lord_Howe"), "2026-10-03T12:00", 1) == [
        "04 02:30+1100"
    ]


def test_a_time_that_the_clock_shows_twice_fires_once_unless_every_hour_does() -> None:
    nightly = CronSchedule("30 2 * * *", "Europe/Berlin")
    assert shown(nightly, "2026-10-24T12:00", 2) == ["25 02:30+0200", "26 02:30+0100"]
    every_second = CronSchedule("0 */2 * * *", "Europe/Berlin")
    assert shown(every_second, "2026-10-25T00:30", 2) == ["25 02:00+0200", "25 04:00+0100"]
    hourly = CronSchedule("0 * * * *", "Europe/Berlin")
    assert shown(hourly, "2026-10-25T01:30", 3) == [
        "25 02:00+0200",
        "25 02:00+0100",
        "25 03:00+0100",
    ]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRONS)
def test_around_a_change_of_the_clock_every_wall_time_fires_exactly_once(
    cron: str, zone: str
) -> None:
    """Against what a person would do: look at each minute of real time, at the clock on the wall."""
    for day in CHANGES[zone]:
        start = moment(f"{day}T00:00", zone) - 86_400 * 2
        end = start + 86_400 * 4
        schedule = CronSchedule(cron, zone)
        assert list(takewhile(lambda at: at <= end, next_fires(schedule, start))) == by_hand(  # noqa: B023
            schedule, start, end
        )


def by_hand(schedule: CronSchedule, start: float, end: float) -> list[float]:
    from cronsim import CronSim

    zone = ZoneInfo(schedule.zone)
    spec = CronSim(schedule.cron, datetime(2026, 1, 1))
    is_hourly = len(spec.hours) == 24

    def fits(wall: datetime) -> bool:
        return (
            wall.minute in spec.minutes and wall.hour in spec.hours and spec.match_day(wall.date())
        )

    found: list[float] = []
    done: set[datetime] = set()
    last = datetime.fromtimestamp(start, UTC).astimezone(zone).replace(tzinfo=None)
    at = start
    while at + 60 <= end:
        at += 60
        wall = datetime.fromtimestamp(at, UTC).astimezone(zone).replace(tzinfo=None)
        # All minutes that the wall clock has passed since the last look.
        passed = [
            last + timedelta(minutes=n)
            for n in range(1, int((wall - last).total_seconds() // 60) + 1)
        ]
        passed = passed if wall > last else [wall]
        wanted = [each for each in passed if fits(each)]
        if wanted and (is_hourly or not set(wanted) <= done):
            found.append(at)
        done |= set(wanted)
        last = wall
    return found


@settings(max_examples=60, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    cron=st.sampled_from(CRONS),
    start=MOMENTS,
    jumps=st.lists(st.floats(-30_000, 200_000), min_size=1, max_size=12),
    missed=st.sampled_from(["skip", "once", "all"]),
)
def test_whatever_the_clock_does_nothing_fires_twice_and_nothing_is_lost(
    zone: str, cron: str, start: float, jumps: list[float], missed: str
) -> None:
    """The clock is looked at after jumps forward (a laptop that slept) and back (somebody set it)."""
    schedule = CronSchedule(cron, zone)
    on_record: dict[float, bool] = {}  # as the store keeps them: once by their moment
    now = decided = latest = start
    for jump in jumps:
        now += jump
        found = due(schedule, missed, decided, now)
        decided = found.until
        latest = max(latest, now)
        fresh = [each for each in found.fires if each.at not in on_record]
        assert len(fresh) == len({each.at for each in fresh})
        on_record |= {each.at: each.is_run for each in fresh}
    expected = list(takewhile(lambda at: at <= latest, next_fires(schedule, start)))
    # The clock may have been set back to before the start: those count too.
    assert set(expected) <= set(on_record)
    assert all(at <= latest for at in on_record)


def test_missed_fires_follow_the_policy() -> None:
    hourly = CronSchedule("0 * * * *")
    start = moment("2026-06-01T00:30", "UTC")
    now = start + 86_400 * 3  # three days asleep: 72 fires, the last one half an hour ago

    def ran(missed: str) -> list[float]:
        return [each.at for each in due(hourly, missed, start, now).fires if each.is_run]

    every = due(hourly, "skip", start, now).fires
    assert len(every) == 72
    assert (ran("skip"), ran("once"), ran("all")) == (
        [],
        [every[-1].at],
        [each.at for each in every[-MOST_MADE_UP:]],
    )
    assert all(each.why for each in every)
    # On time, or late by less than a minute, is not missed.
    assert [each.is_run for each in due(hourly, "skip", start, start + 30 * 60 + 59).fires] == [
        True
    ]


def test_a_year_without_a_server_is_bounded() -> None:
    often = CronSchedule("* * * * *", "Europe/Berlin")
    found = due(often, "once", 1_770_000_000, 1_770_000_030 + 86_400 * 365).fires
    assert len(found) == MOST_RECORDED
    assert "all before it" in found[0].why
    assert [each.is_run for each in found[-2:]] == [False, True]  # the one on time makes up for all


@pytest.mark.parametrize(
    "cron", ["", "x", "* * * *", "* * * * * *", "61 * * * *", "0 0 31 2 *", "@dialy", "0 " * 300]
)
def test_what_is_no_cron_expression_is_refused(cron: str) -> None:
    with pytest.raises(InvalidUsage):
        CronSchedule(cron).check()


@pytest.mark.parametrize(
    "zone", ["", "Europe/Berlim", "../etc/passwd", "/etc/localtime", "\0", "x" * 5000]
)
def test_what_is_no_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidUsage):
        CronSchedule("@daily", zone).check()


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("30 2 * * *", "every day at 02:30"),
        ("@weekly", "at 00:00 on Sunday"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:59 from Monday to Friday"),
        ("0 9,17 * * mon", "at 09:00 and 17:00 on Monday"),
        ("5 */6 * * *", "at 05 minutes past every 6 hours"),
        ("0 0 1,15 1 *", "at 00:00 on day 1 and 15 of the month in January"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday"),
        ("0 0 L * *", "at 00:00 on the last day of the month"),
        ("1-59/2 * * * *", "at the times of 1-59/2 * * * *"),
        ("0 0 * * 5#2", "at the times of 0 0 * * 5#2"),
    ],
)
def test_a_schedule_is_said_in_words(cron: str, words: str) -> None:
    assert in_words(CronSchedule(cron).check().cron) == words


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("*/7 * * * *", "at the times of */7 * * * *"),
        ("*/7 9-17 * * *", "at the times of */7 9-17 * * *"),
        ("*/25 * * * *", "at 00, 25 and 50 minutes past every hour"),
        ("0 */7 * * *", "every day at 00:00, 07:00, 14:00 and 21:00"),
        ("*/15 */5 * * *", "at the times of */15 */5 * * *"),
    ],
)
def test_a_step_that_does_not_divide_its_hour_or_day_is_not_said_as_a_pace(
    cron: str, words: str
) -> None:
    assert in_words(CronSchedule(cron).check().cron) == words


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("0 0 30 2 *", "would never fire"),
        ("0 0 31 4,6 *", "would never fire"),
        ("0 0 32 * *", "is no cron expression: Bad day-of-month"),
        ("0 0 32 2 *", "is no cron expression: Bad day-of-month"),
        ("0 0 30 13 *", "is no cron expression: Bad month"),
    ],
)
def test_a_day_that_no_month_has_is_told_from_one_that_is_badly_written(
    cron: str, said: str
) -> None:
    with pytest.raises(InvalidUsage, match=said):
        CronSchedule(cron).check()
