"""Which values of an environment are secrets. In: names and values. Out: values, by their names.

A value is known by the name of its variable, by the credentials of a URL in it, by the form of a
well-known kind of token, or because nothing but a random text looks like it. Many a variable holds
more than one thing (headers, options, a connection string, JSON), so its parts are looked at as
well. What is a path, a word, a number or an id is none: replacing those would spoil honest text.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import log2
from string import ascii_letters, digits
from urllib.parse import parse_qsl, unquote

_NAMES = re.compile(
    r"KEY(?!BOARD|MAP)|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(^|_)CREDS?(_|$)|AUTH(?!OR(?!I))"
    r"|COOKIE|DSN|(^|_)PRIVATE|CANARY|BEARER|(^|_)JWT|WEBHOOK|SIGNATURE|CONN(ECTION)?_?STR"
    r"|_PWD|(^|_)PAT(_|$)|(^|_)PASS(_|$)|(^|_)PW(_|$)|(^|_)SALT(_|$)|(^|_)OTP(_|$)|(^|_)SIG$",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"(sk|pk|rk)[-_][\w-]{16,}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeprs]-[\w-]{10,}|A(KI|SI)A[A-Z0-9]{16}|AIza[\w-]{30,}|hf_\w{20,}|npm_\w{30,}"
    r"|pypi-[\w-]{30,}|SG\.[\w-]{16,}\.[\w-]{16,}|do[opr]_v1_\w{32,}|ey[\w-]{10,}\.ey[\w-]{10,}\.[\w-]*"
    r"|(shp(at|ca|pa|ss)_|dapi|sbp_|rubygems_)[0-9a-f]{32,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}"
)
# Their values are as random as a token, and people need to read them.
_PLAIN_NAMES = re.compile(
    r"SHA|COMMIT|HASH|DIGEST|VERSION|(^|_)ID$|UUID|COLORS|(^|_)DIR$|PATH|HOST|USER_AGENT|^_$",
    re.IGNORECASE,
)
# Such a variable says where a secret is, or of what kind, unless the value itself looks like one.
_ABOUT_A_SECRET = re.compile(
    r"(^|_)(UR[LI]S?|DOMAINS?|HOST|PORT|ENDPOINT|ISSUER|AUDIENCE|REALM|FILE|DIR|PATH|NAME|TYPE|METHOD"
    r"|HEADER|PREFIX|BACKEND|PROVIDER|PLUGIN|MODE|ALGORITHM|FORMAT|REGION|SCOPES?|PARALLELISM"
    r"|EXPIR(ES|Y|ATION)|TTL|TIMEOUT)$|^GIT_CONFIG_KEY_\d+$",
    re.IGNORECASE,
)
_IS_ALL_SECRET = re.compile(r"WEBHOOK|DSN|CANARY", re.IGNORECASE)  # also as a URL
# `token=…`, `X-Api-Key: …`, `"api_key": "…"`, `-Dtoken=…`, `Authorization: Bearer …`
# Each word is looked at once, from its start: a value may be a single word of 100,000 letters.
_LABELLED = re.compile(
    r"""(?<![\w.-])[\d.-]*+([^\W\d][\w.-]*+)["']?\s*(?:=|:(?!/))\s*["']?(?!:|//)"""
    r"""((?:(?i:Bearer|Basic|Token)\s+)?[^\s"',;&?#]+)"""
)
_BASIC = re.compile(r"\bBasic\s+([A-Za-z0-9+/]{8,}={0,2})", re.IGNORECASE)
_BETWEEN_PARTS = re.compile(r"""\\[nrt]|[\s"'`,;:&|<>(){}\[\]=@/?#$]+""")
_RANDOM = re.compile(r"[A-Za-z0-9+/=_.~-]{20,}")
_SHORTEST_TOKEN = 20
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_NO_PASSWORDS = frozenset({"x-oauth-basic", "api_token"})  # beside a token as user
_ADDRESS_ENDS = re.compile(r"""[\s"'`<>]""")
_OF_A_SCHEME = ascii_letters + digits + "+.-"
_HOST_ENDS = re.compile(r"[/?#]")
_HOST_AND_PORT = re.compile(r"\[.*|[^:]*:\d*")
_PATH = re.compile(r"(?:~[\w.-]*)?/[^\s:+=]*|[A-Za-z]:[\\/][^\s]*")
_BETWEEN_FOLDERS = re.compile(r"^[A-Za-z]:|^~|[\\/]+")
_WORD = r"(?:[A-Za-z][a-z]+(?:[A-Z][a-z]+)*\d*|\d+)"
_WORDS = re.compile(rf"[._]?{_WORD}(?:[-_.]{_WORD})*")
_SHORTEST = 8
_SHORTEST_WORD = 12  # of a value that is letters alone, or digits alone
_RANDOM_BITS = 3.9  # of each letter; words and names have less


def secret_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Each secret, and the variable that holds it."""
    return {
        value: name
        for name, written in environ.items()
        for value in _values(name, written)
        if is_telling(value)
    }


def is_telling(value: str) -> bool:
    """Whether to find it in a text means that somebody has put the secret there."""
    if len(value) < _SHORTEST:
        return False
    return len(value) >= _SHORTEST_WORD or not (value.isalpha() or value.isdecimal())


def _values(name: str, written: str) -> Iterator[str]:
    value = written.strip().strip("\"'")
    credentials = tuple(_credentials(value)) if "://" in value else ()
    yield from credentials
    if _is_named_so(name, value) or _is_token(name, value):
        yield value
        yield from _items(value)
    if not _is_path(value):
        yield from _parts(name, value)


def _is_token(name: str, value: str) -> bool:
    return _TOKEN.fullmatch(value) is not None or _looks_random(name, value)


def _is_named_so(name: str, value: str) -> bool:
    if not _NAMES.search(name) or _is_path_of_words(name, value):
        return False
    return _IS_ALL_SECRET.search(name) is not None or not _ABOUT_A_SECRET.search(name)


def _items(value: str) -> Iterator[str]:
    """`Bearer …`, or several keys with commas between them."""
    for item in re.split(r"[,\s]+", value):
        if item != value and re.fullmatch(r"[\w+/.~-]+=*", item) and re.search(r"\d", item):
            yield item


def _parts(name: str, value: str) -> Iterator[str]:
    for basic in _BASIC.findall(value):
        yield basic
        try:
            yield b64decode(basic).decode().partition(":")[2]
        except (NotBase64, ValueError):
            continue
    for label, part in _LABELLED.findall(value):
        if _is_named_so(label.replace("-", "_"), part) or label.lower() == "pwd":
            yield part
            yield from _items(part)
    yield from (part for part in _BETWEEN_PARTS.split(value) if _is_token(name, part))


def _is_jumbled(value: str) -> bool:
    """Not a name in code, such as `readUtf8LinesOfFile`, in which letters of a kind keep together and
    a capital is followed by small ones."""
    kinds = [
        "0" if each.isdigit() else "A" if each.isupper() else "a"
        for each in value
        if each.isalnum()
    ]
    changes = sum(pair[0] != pair[1] and pair != ("A", "a") for pair in pairwise(kinds))
    return 10 * changes >= 3 * len(kinds)


def _credentials(value: str) -> Iterator[str]:
    """Of `scheme://user:password@host/?token=…`, wherever it stands: the password, the token, and
    all that follows the scheme. A user may be a token as well."""
    for address in _addresses(value):
        user, colon, password = _user_of(address).partition(":")
        query = address.partition("?")[2].partition("#")[0]
        found = [part for name, part in parse_qsl(query) if _NAMES.search(name)]
        if password and password not in _NO_PASSWORDS:
            found += [password, unquote(password), f"{user}:{password}"]
        if _TOKEN.fullmatch(user) or _is_token_as_user(user):
            found += [user, f"{user}{colon}{password}"]
        yield from (*found, address) if found else ()


def _addresses(value: str) -> Iterator[str]:
    """What follows each `scheme://`, up to a blank, a quote or the next."""
    pieces = value.split("://")
    for number, piece in enumerate(pieces[1:], start=2):
        address = _ADDRESS_ENDS.split(piece, maxsplit=1)[0]
        if address == piece and number < len(pieces):
            address = address.rstrip(_OF_A_SCHEME)
        yield address.rstrip(",;|")


def _user_of(address: str) -> str:
    """`user:password`; empty without. A password may hold a `/`, `?` or `#` that nobody escaped."""
    host = _HOST_ENDS.split(address, maxsplit=1)[0]
    if "@" in host:
        return host.rpartition("@")[0]
    may_go_on = ":" in host and not _HOST_AND_PORT.fullmatch(host)
    return address.rpartition("@")[0] if may_go_on else ""


def _is_token_as_user(user: str) -> bool:
    """Hexadecimal, or small letters and digits. `web2print-service-account` is a name."""
    if _UUID.fullmatch(user):
        return True
    if len(user) < _SHORTEST_TOKEN or not user.isalnum() or user.isdecimal() or user.isalpha():
        return False
    changes = sum(one.isdigit() != other.isdigit() for one, other in pairwise(user))
    return _WORDS.fullmatch(user) is None and 6 * changes >= len(user)


def _looks_random(name: str, value: str) -> bool:
    if _PLAIN_NAMES.search(name) or not _RANDOM.fullmatch(value):
        return False
    has_all = any(map(str.isupper, value)) and any(map(str.islower, value))
    if not has_all or not any(map(str.isdigit, value)) or _is_path(value):
        return False
    # More than two dots make it a name: a host, a version, a module.
    return value.count(".") <= 2 and _bits(value) >= _RANDOM_BITS and _is_jumbled(value)


def _bits(value: str) -> float:
    shares = [value.count(letter) / len(value) for letter in set(value)]
    return -sum(share * log2(share) for share in shares)


def _is_path(value: str) -> bool:
    """SSH_AUTH_SOCK and the like say where something is, not what it is."""
    return _PATH.fullmatch(value) is not None


def _is_path_of_words(name: str, value: str) -> bool:
    """A password or a key in base64 may begin with `/` as well, but its parts are no words."""
    if not _is_path(value):
        return False
    folders = [folder for folder in _BETWEEN_FOLDERS.split(value) if folder]
    if any(_is_token(name, folder) for folder in folders):
        return False
    words = sum(_WORDS.fullmatch(folder) is not None for folder in folders)
    return words >= min(2, len(folders))
