"""What is kept of chats: turns, what the model replied, what it called, what a person decided.

In: a SQLite file in the user's home. Out: KeptTurns and KeptCalls. All that a turn needs to go on after a
crash is written here before it has its effect: a reply before its calls are made, a call and the id of
the run that it starts before that run starts.
"""

import asyncio
import hmac
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, cast

from msgspec import convert, to_builtins

from stretto.config.database import open_database, transaction
from stretto.config.home import user_secret
from stretto.ports.model import ModelReply, RequestedCall, TokenCounts
from stretto.problems.errors import StrettoError
from stretto.recipe.model import Budget
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import RunId

# open: it has not ended, whether or not a process is at it.
TurnStatus: TypeAlias = Literal["open", "waiting", "complete", "failed", "cancelled"]
TurnKind: TypeAlias = Literal["lead", "workflow"]
_T = TypeVar("_T")
_FILE = "chats.db"
# One script a version: never change one that was released.
_MIGRATIONS = (
    """
    CREATE TABLE chats (
        id TEXT PRIMARY KEY,
        at REAL NOT NULL,
        project TEXT NOT NULL,
        model TEXT,
        permission TEXT,
        budget TEXT NOT NULL
    ) STRICT;
    CREATE TABLE turns (
        chat TEXT NOT NULL REFERENCES chats (id),
        number INTEGER NOT NULL, -- from 1, per chat
        run_id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        said TEXT NOT NULL,
        request TEXT NOT NULL, -- of a workflow: its name and inputs
        status TEXT NOT NULL,
        answer TEXT NOT NULL DEFAULT '',
        error TEXT NOT NULL DEFAULT '',
        usage TEXT NOT NULL DEFAULT '{}', -- with that of the runs it started
        agents INTEGER NOT NULL DEFAULT 0,
        at REAL NOT NULL,
        ended_at REAL,
        PRIMARY KEY (chat, number)
    ) STRICT;
    CREATE TABLE replies (
        run_id TEXT NOT NULL,
        number INTEGER NOT NULL, -- from 0, per turn
        reply TEXT NOT NULL,
        PRIMARY KEY (run_id, number)
    ) STRICT;
    CREATE TABLE calls (
        key TEXT PRIMARY KEY,
        turn TEXT NOT NULL, -- the turn's run
        place INTEGER NOT NULL,
        tool TEXT NOT NULL,
        arguments TEXT NOT NULL,
        run_id TEXT NOT NULL, -- of the run that it starts, or empty
        result TEXT, -- null: it has not ended
        is_ok INTEGER NOT NULL DEFAULT 0,
        usage TEXT NOT NULL DEFAULT '{}',
        agents INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX calls_of_turns ON calls (turn, place);
    CREATE INDEX calls_by_run ON calls (run_id);
    CREATE TABLE questions (
        key TEXT PRIMARY KEY, -- of the call
        turn TEXT NOT NULL,
        digest TEXT NOT NULL, -- of what would happen
        shown TEXT NOT NULL,
        verdict TEXT NOT NULL DEFAULT '', -- approved or rejected
        by TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        seal TEXT NOT NULL DEFAULT ''
    ) STRICT
    """,
    "ALTER TABLE chats ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
)


@dataclass(frozen=True, slots=True)
class KeptChat:
    id: str
    at: float
    project: str
    model: str | None
    permission: str | None
    budget: Budget
    owner: str = ""  # who began it, where that is not the user at a terminal


@dataclass(frozen=True, slots=True)
class KeptTurn:
    chat: str
    number: int  # from 1
    run_id: RunId
    kind: TurnKind
    said: str  # by the person
    request: Mapping[str, Json]
    status: TurnStatus
    answer: str
    error: str
    usage: Usage
    agents: int
    at: float
    ended_at: float | None

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None


@dataclass(frozen=True, slots=True)
class KeptCall:
    key: str
    turn: str
    place: int
    tool: str
    arguments: Mapping[str, Json]
    run_id: RunId  # empty: it starts no run
    result: str | None  # None: it has not ended
    is_ok: bool
    usage: Usage
    agents: int


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """What a person must decide before a call is carried out. It counts for one digest."""

    key: str
    turn: str
    digest: str
    shown: str
    verdict: str = ""  # approved, rejected; empty: nobody has decided
    by: str = ""
    reason: str = ""
    seal: str = ""

    @property
    def token(self) -> str:
        """What a person names who decides: it stands for the call and its content."""
        return sha256(f"{self.key} {self.digest}".encode()).hexdigest()[:12]


class ChatBusy(StrettoError):
    """Another process says something in the chat at the same moment."""

    kind = "conflict"
    exit_code = 5

    def __init__(self, chat: str) -> None:
        super().__init__(
            f"another process is at work on a message in chat {chat}: yours was not sent",
            hint=f"wait until its turn has ended (stretto chat --resume {chat}), or begin a chat of your own",
        )


class ChatStore:
    """The chats of one user. For one thread at a time."""

    def __init__(self, db: sqlite3.Connection, secret: Callable[[], bytes]) -> None:
        self._db = db
        self._secret = secret

    def add_chat(self, chat: KeptChat) -> None:
        """Raises ChatBusy where another process was quicker."""
        budget = json.dumps(to_builtins(chat.budget))
        row = (chat.id, chat.at, chat.project, chat.model, chat.permission, budget, chat.owner)
        with _refuse_busy_chat(chat.id):
            self._change("INSERT INTO chats VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def change_chat(self, chat: KeptChat) -> None:
        row = (chat.model, chat.permission, json.dumps(to_builtins(chat.budget)), chat.id)
        self._change("UPDATE chats SET model = ?, permission = ?, budget = ? WHERE id = ?", row)

    def chats(self) -> list[KeptChat]:
        """Newest first: the one that was spoken to last."""
        last = "(SELECT coalesce(max(turns.at), chats.at) FROM turns WHERE turns.chat = chats.id)"
        rows = self._db.execute(f"SELECT * FROM chats ORDER BY {last} DESC, id DESC")
        return [_chat(row) for row in rows]

    def add_turn(self, turn: KeptTurn) -> None:
        """Raises ChatBusy where another process was quicker."""
        row = (
            turn.chat, turn.number, turn.run_id, turn.kind, turn.said,
            json.dumps(dict(turn.request)), turn.status, turn.at,
        )  # fmt: skip
        names = "chat, number, run_id, kind, said, request, status, at"
        with _refuse_busy_chat(turn.chat):
            self._change(f"INSERT INTO turns ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def change_turn(self, turn: KeptTurn) -> None:
        usage = json.dumps(to_builtins(turn.usage))
        row = (
            turn.status, turn.answer, turn.error, usage, turn.agents, turn.ended_at, turn.run_id,
        )  # fmt: skip
        names = "status = ?, answer = ?, error = ?, usage = ?, agents = ?, ended_at = ?"
        self._change(f"UPDATE turns SET {names} WHERE run_id = ?", row)

    def remove_turn(self, run_id: str) -> None:
        self._change("DELETE FROM turns WHERE run_id = ?", (run_id,))

    def turns(self, chat: str) -> list[KeptTurn]:
        found = "SELECT * FROM turns WHERE chat = ? ORDER BY number"
        return [_turn(row) for row in self._db.execute(found, (chat,))]

    def turn_of(self, run_id: str) -> KeptTurn | None:
        """The turn that is this run, or that started it."""
        row = self._db.execute(
            "SELECT turns.* FROM turns WHERE run_id = ? OR run_id IN "
            "(SELECT turn FROM calls WHERE run_id = ?)",
            (run_id, run_id),
        ).fetchone()
        return None if row is None else _turn(row)

    def reply(self, run_id: str, number: int) -> ModelReply | None:
        found = "SELECT reply FROM replies WHERE run_id = ? AND number = ?"
        row = self._db.execute(found, (run_id, number)).fetchone()
        return None if row is None else _read_reply(json.loads(row[0]))

    def keep_reply(self, run_id: str, number: int, reply: ModelReply) -> None:
        row = (run_id, number, json.dumps(_written_reply(reply)))
        self._change("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", row)

    def call(self, key: str) -> KeptCall | None:
        row = self._db.execute("SELECT * FROM calls WHERE key = ?", (key,)).fetchone()
        return None if row is None else _call(row)

    def call_of(self, run_id: str) -> KeptCall | None:
        """The call that started this run."""
        row = self._db.execute("SELECT * FROM calls WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else _call(row)

    def calls(self, turn: str) -> list[KeptCall]:
        found = "SELECT * FROM calls WHERE turn = ? ORDER BY place"
        return [_call(row) for row in self._db.execute(found, (turn,))]

    def begin_call(self, call: KeptCall) -> None:
        row = (
            call.key, call.turn, call.place, call.tool, json.dumps(dict(call.arguments)), call.run_id,
        )  # fmt: skip
        names = "key, turn, place, tool, arguments, run_id"
        self._change(f"INSERT OR IGNORE INTO calls ({names}) VALUES (?, ?, ?, ?, ?, ?)", row)

    def end_call(self, key: str, result: str, is_ok: bool, usage: Usage, agents: int) -> None:
        row = (result, is_ok, json.dumps(to_builtins(usage)), agents, key)
        names = "result = ?, is_ok = ?, usage = ?, agents = ?"
        self._change(f"UPDATE calls SET {names} WHERE key = ?", row)

    def note_spent(self, key: str, usage: Usage, agents: int) -> None:
        """Of a call that has no result."""
        row = (json.dumps(to_builtins(usage)), agents, key)
        self._change("UPDATE calls SET usage = ?, agents = ? WHERE key = ?", row)

    def ask(self, question: CallQuestion) -> None:
        """Replaces what was asked about this call before, and the decision about that. A decision about
        the same content stays: somebody may have given it at this moment."""
        row = (question.key, question.turn, question.digest, question.shown)
        names = "key, turn, digest, shown"
        with transaction(self._db, "the chat"):
            if self.decision(question.key, question.digest) is None:
                sql = f"INSERT OR REPLACE INTO questions ({names}) VALUES (?, ?, ?, ?)"
                self._db.execute(sql, row)

    def decide(self, question: CallQuestion) -> bool:
        """False: somebody else was quicker, and what they said stands."""
        row = (
            question.verdict, question.by, question.reason, self._mac(question),
            question.key, question.digest,
        )  # fmt: skip
        names = "verdict = ?, by = ?, reason = ?, seal = ?"
        undecided = "key = ? AND digest = ? AND verdict = ''"
        return self._change(f"UPDATE questions SET {names} WHERE {undecided}", row) > 0

    def decision(self, key: str, digest: str) -> CallQuestion | None:
        """What a person decided about exactly this call with exactly this content."""
        row = self._db.execute(
            "SELECT * FROM questions WHERE key = ? AND digest = ?", (key, digest)
        ).fetchone()
        found = None if row is None else CallQuestion(*row)
        if found is None or not found.verdict:
            return None
        return found if hmac.compare_digest(found.seal, self._mac(found)) else None

    def questions(self, turn: str) -> list[CallQuestion]:
        """The questions that nobody has decided."""
        return [each for each in self.all_questions(turn) if not each.verdict]

    def all_questions(self, turn: str) -> list[CallQuestion]:
        found = "SELECT * FROM questions WHERE turn = ? ORDER BY rowid"
        return [CallQuestion(*row) for row in self._db.execute(found, (turn,))]

    def _mac(self, question: CallQuestion) -> str:
        covered = [question.key, question.turn, question.digest, question.verdict, question.by]
        text = json.dumps([*covered, question.reason])
        return hmac.new(self._secret(), text.encode(), sha256).hexdigest()

    def _change(self, statement: str, row: tuple[object, ...]) -> int:
        """How many rows it changed."""
        with transaction(self._db, "the chat"):
            return self._db.execute(statement, row).rowcount


class ChatFile:
    """The chats of one user, from any thread."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def is_there(self) -> bool:
        return (self._home / _FILE).exists()

    def use_now(self, work: Callable[[ChatStore], _T]) -> _T:
        """Raises StrettoError where the file cannot be used."""
        with _open_chats(self._home / _FILE, lambda: user_secret(self._home)) as store:
            return work(store)

    async def use(self, work: Callable[[ChatStore], _T]) -> _T:
        return await asyncio.to_thread(self.use_now, work)


@contextmanager
def _open_chats(file: Path, secret: Callable[[], bytes]) -> Iterator[ChatStore]:
    hint = "keep a copy of it, then move it away: runs stay, what was said in chats is lost"
    db = open_database(file, _MIGRATIONS, hint)
    try:
        yield ChatStore(db, secret)
    finally:
        db.close()


@contextmanager
def _refuse_busy_chat(chat: str) -> Iterator[None]:
    """A row that is there already is another process's, and no fault of the file."""
    try:
        yield
    except StrettoError as error:
        code = getattr(error.__cause__, "sqlite_errorcode", None)
        if code in (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY):
            raise ChatBusy(chat) from error
        raise


def _chat(row: tuple[Any, ...]) -> KeptChat:
    values = list(row)
    values[5] = Budget(**json.loads(row[5]))
    return KeptChat(*values)


def _turn(row: tuple[Any, ...]) -> KeptTurn:
    values = list(row)
    values[5] = json.loads(row[5])
    values[9] = convert(json.loads(row[9]), Usage)
    return KeptTurn(*values)


def _call(row: tuple[Any, ...]) -> KeptCall:
    values = list(row)
    values[4] = json.loads(row[4])
    values[7] = bool(row[7])
    values[8] = convert(json.loads(row[8]), Usage)
    return KeptCall(*values)


def _written_reply(reply: ModelReply) -> dict[str, Json]:
    # Thoughts in a provider's own form are left out: only the process that got them can use them.
    used = reply.tokens
    return {
        "text": reply.text,
        "calls": [[each.id, each.tool, each.text] for each in reply.calls],
        "tokens": None if used is None else list(asdict(used).values()),
        "finish": reply.finish,
    }


def _read_reply(written: Mapping[str, Any]) -> ModelReply:
    used = written["tokens"]
    return ModelReply(
        written["text"],
        tuple(RequestedCall(*each) for each in written["calls"]),
        None if used is None else TokenCounts(*used),
        cast(Any, written["finish"]),
    )
