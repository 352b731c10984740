"""Secrets are found by name, by form and by chance, in every form that programs give them."""

import base64
import html
import json
import random
import string
import time
from itertools import product
from urllib.parse import quote, quote_plus

import pytest

from stretto.text.redaction import MASK, Redactor
from stretto.text.secrets import secret_values

KEY = "sk-Test-4f9aB2c7D1e8+/=x"
OURS = Redactor({"OPENAI_API_KEY": KEY})


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "GH_PAT", "GITHUB_PAT_RELEASE", "DB_PWD", "MYSQL_PWD", "SLACK_WEBHOOK",
        "DISCORD_WEBHOOK_URL", "BEARER", "API_BEARER_VALUE", "SERVICE_JWT", "SMTP_PASS", "DB_PASSWORD",
        "AWS_SECRET_ACCESS_KEY", "NPM_AUTH", "AUTHORIZATION", "SENTRY_DSN", "DB_CONNECTION_STRING",
        "my_token", "GOOGLE_CREDENTIALS", "APP_CREDS", "HASH_SALT", "SIGNATURE", "session_cookie",
    ],
)  # fmt: skip
def test_names_that_say_so(name: str) -> None:
    assert secret_values({name: "plain-words-1"}) == {"plain-words-1": name}


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("DATABASE_URL", "postgres://ada:hunter2secret@db/x", "hunter2secret"),
        ("DATABASE_URL", "postgres://ada:p%40ss%2Fword1@db/x", "p@ss/word1"),
        ("ANYTHING", "https://bob:correct-horse@host:1/", "correct-horse"),
        ("HTTPS_PROXY", "http://u:proxy-pass-1@proxy:3128", "proxy-pass-1"),
        ("FEED", "https://host/x?api_key=abcdef123456&page=2", "abcdef123456"),
        ("HARMLESS", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
        ("HARMLESS", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("STRANGE", "q7Zp0Vx2LmN8sKd4Tb6Yw1Hc", "q7Zp0Vx2LmN8sKd4Tb6Yw1Hc"),
    ],
)  # fmt: skip
def test_values_that_say_so(name: str, value: str, secret: str) -> None:
    assert MASK in Redactor({name: value}).text(f"it is {secret}!")
    assert secret not in Redactor({name: value}).text(f"it is {secret}!")


PART = "Zx7Qp2Lm9Vt4Ks8Rw3Yb"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EXTRA_HEADERS", f"Authorization: Bearer {PART}"), ("OPTS", f"X-Api-Key={PART}; a=1"),
        ("REPO", f"https://{PART}@git.example/a/b"), ("CALLBACK", f"https://h/x#access_token={PART}"),
        ("HOOK", f"https://hooks.example/services/T0/B0/{PART}"), ("SIGNED", f"https://h/x?sig={PART}"),
        ("CONF", json.dumps({"api_key": PART, "user": "x"})), ("JAVA_OPTS", f"-Dtoken={PART} -Xmx1g"),
        ("STORAGE_CONNECTION_STRING", f"Protocol=https;AccountName=x;AccountKey={PART}==;Suffix=a"),
        ("APP_TOKEN", f'"{PART}"'), ("API_KEYS", f"first-key-1,{PART}"), ("APP_AUTH", f"Token {PART}"),
        ("HEADER", "Basic " + base64.b64encode(f"ada:{PART}".encode()).decode()),
        ("SIGNING_KEY", f"-----BEGIN KEY-----\\n{PART}\\n-----END KEY-----"),
        ("SETTINGS", "password: correct-horse-1"), ("NEXTAUTH_URL", f"https://h/?token={PART}"),
    ],
)  # fmt: skip
def test_a_part_of_a_value_is_found_alone(name: str, value: str) -> None:
    part = "correct-horse-1" if "horse" in value else PART
    assert Redactor({name: value}).text(f"it is {part}!") == f"it is {MASK}!"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GOPRIVATE", "github.com/acme/*"), ("NEXTAUTH_URL", "http://localhost:3000"),
        ("AUTH0_DOMAIN", "example.eu.auth0.com"), ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("SSL_KEY_FILE", "certs/server-key.pem"), ("AUTH_PROVIDER", "authentication-service-v2"),
        ("OAUTH_TOKEN_URL", "https://oauth2.example.com/token"), ("API_KEY_HEADER", "X-Api-Key"),
        ("S3_BUCKET", "my-Bucket-2024-Prod-EU1-logs"), ("ROLE", "arn:aws:iam::123456789012:role/Deploy2024"),
        ("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75.0 -Dfile.encoding=UTF8"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:abstract=/tmp/dbus-Ab3dEf9hIj,guid=0123456789abcdef"),
        ("PYTEST_CURRENT_TEST", "tests/test_Auth2Tokens.py::TestLogin2::test_OK[Case1-B2] (call)"),
        ("ITERM_SESSION_ID", "w0t0p0:3F2504E0-4F89-11D3-9A0C-0305E82C3301"),
        ("FZF_DEFAULT_OPTS", "--color=fg:#D8DEE9,bg:#2E3440,hl:#A3BE8C --bind=ctrl-k:up"),
        ("BRANCH", "feature/Add-OAuth2-Login-For-Users"), ("SCRIPT", "node readUtf8LinesOfEveryFile2.mjs"),
    ],
)  # fmt: skip
def test_what_is_said_about_secrets_is_none(name: str, value: str) -> None:
    assert secret_values({name: value}) == {}


HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"


@pytest.mark.parametrize(
    "address",
    [
        f"https://{HEX}@github.com/o/r", f"https://{HEX}:x-oauth-basic@github.com/o/r",
        f"https://{HEX}:@github.com/o/r", f"pip install git+https://{HEX}@github.com/o/r@v1",
        f'{{"remote": "https://{HEX}@github.com/o/r"}}', f"--index-url=https://{HEX}@host/simple",
    ],
)  # fmt: skip
def test_the_user_of_an_address_may_be_a_token(address: str) -> None:
    assert Redactor({"REMOTE": address}).text(f"it is {HEX}!") == f"it is {MASK}!"


@pytest.mark.parametrize(
    "user",
    [
        "kq2x5m3vbd7w6zgh4jtnrcapfyeloisu2k5x7m3vbd7w6zgh4jtn",
        "550e8400-e29b-41d4-a716-446655440000", "shpat_0123456789abcdef0123456789abcdef",
    ],
)  # fmt: skip
def test_a_token_as_user_may_have_other_forms(user: str) -> None:
    assert user in secret_values({"REMOTE": f"https://{user}@dev.azure.com/o/_git/r"})


@pytest.mark.parametrize(
    "address",
    [
        "ssh://git@github.com/o/r", "https://web2print-service-account@host/x", "https://oauth2@host/x",
        "https://some-long-service-account-01@host/x", "docker://nginx@sha256:0123456789abcdef",
        "https://terraformdeployer2024@my-project.iam.gserviceaccount.com", "https://ada:x-oauth-basic@h/",
        "http://localhost:8080/npm/@scope/package", "file://C:/Users/ada@work/x", "http://[::1]:80/a@b",
        "npm://registry:4873/@scope/package", "https://host/@ada:lovelace-1", "https://jenkins-at-123456789012@h",
        "http://[::1/broken?key", "://", "a://b://c",
    ],
)  # fmt: skip
def test_the_user_of_an_address_is_usually_a_name(address: str) -> None:
    assert secret_values({"REMOTE": address}) == {}


@pytest.mark.parametrize(
    "value",
    [
        f"postgresql://app:{PART}/9@db/app", f"postgresql://app:{PART}#9@db/app",
        f"amqp://u:{PART}-other@a,amqp://u:{PART}/9@b", f'{{"db": "mysql://u:{PART}/9@a/b"}}',
        f"jobs=redis://:{PART}/9@a:6379/0;x=1", f"Server=x;Uid=u;Pwd={PART}/9;",
    ],
)  # fmt: skip
def test_a_password_stands_anywhere_in_a_value_and_may_hold_signs(value: str) -> None:
    password = f"{PART}#9" if "#" in value else f"{PART}/9"
    assert password in secret_values({"BROKERS": value})


def test_what_stands_beside_an_address_with_a_password_is_no_secret() -> None:
    given = f"--index https://u:{PART}@host/simple --cache /var/cache/v2 --note line-2-of-it"
    ours = Redactor({"PIP_ARGS": given})
    assert ours.text("/var/cache/v2 line-2-of-it") == "/var/cache/v2 line-2-of-it"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BASIC", "token"])
def test_the_scheme_of_a_header_may_be_written_in_small_letters(scheme: str) -> None:
    credential = "0123456789abcdef0123456789abcdef"
    redactor = Redactor({"GIT_CONFIG_VALUE_0": f"AUTHORIZATION: {scheme} {credential}"})
    assert redactor.text(f"it is {credential}!") == f"it is {MASK}!"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEK0yZ"),
        ("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEK0"),
        ("SLACK_WEBHOOK", f"/api/hooks/{PART}"), ("DB_PASSWORD", "~Xk9!pQ2vLm"),
        ("DB_PASSWORD", "/Summer2024!"), ("DB_PASSWORD", "c:/Xk9!pQ2vLm"),
    ],
)  # fmt: skip
def test_a_secret_may_begin_like_a_path(name: str, value: str) -> None:
    assert value in secret_values({name: value})
    for settings in (f"{name.lower()} = {value}", json.dumps({name.lower(): value})):
        assert value in secret_values({"SETTINGS": settings})


def test_the_frame_of_a_key_is_no_secret() -> None:
    ours = Redactor({"TLS_KEY": f"-----BEGIN PRIVATE KEY-----\n{PART}\n-----END PRIVATE KEY-----"})
    assert ours.text("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "/home/ada/projects"), ("PWD", "/home/ada"), ("OLDPWD", "/srv/www/site"),
        ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"), ("XAUTHORITY", "/home/ada/.Xauthority"),
        ("GIT_AUTHOR_NAME", "Ada Lovelace"), ("KEYBOARD_LAYOUT", "de-nodeadkeys"),
        ("PGPASSWORD", "postgres"), ("DB_PASS", "true"), ("AUTH_TIMEOUT", "86400000"),
        ("GITHUB_SHA", "3f786850e387550fdab836ed7e6dc881de23001b"), ("LANG", "en_US.UTF-8"),
        ("RUN_UUID", "550e8400-e29b-41d4-a716-446655440000"), ("EDITOR", "/usr/bin/vim"),
        ("HOSTNAME", "ip-10-0-0-17.eu-west-1.compute.internal"), ("TERM", "xterm-256color"),
        ("DATABASE_URL", "postgres://localhost/app"), ("NODE_OPTIONS", "--max-old-space-size=4096"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-Ab3dEf9hIj12/agent.1234"), ("AUTH_ROUTE", "/dashboard"),
        ("SSH_AUTH_SOCK", "/private/tmp/com.apple.launchd.Ab3dEf9hIj/Listeners"),
        ("SSH_KEY", "~/.ssh/id_ed25519"), ("TLS_KEY", "/etc/tls/server.key"), ("TLS_KEY", "/server.pem"),
        ("XAUTHORITY", "/run/user/1000/.mutter-Xwaylandauth.A1B2C3"), ("SIGNING_KEY", r"C:\keys\our.pfx"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/keys/my-project-3f2a.json"),
        ("JAVA_OPTS", "-Djavax.net.ssl.keyStore=/etc/ssl/ours.jks"), ("VOLUMES", "secrets:/run/secrets:ro"),
        ("FIREBASE_CREDENTIALS", "/opt/myApp/serverKey.json"),
        ("PYTHON_VERSION", "3.11.7-Alpha-Build-20261117"), ("LESSOPEN", "| /usr/bin/lesspipe %s"),
    ],
)  # fmt: skip
def test_honest_values_are_none(name: str, value: str) -> None:
    assert secret_values({name: value}) == {}


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
@pytest.mark.parametrize("after", ["", "x", "more words"])
def test_base64_of_a_text_that_holds_it(before: str, after: str) -> None:
    raw = f"{before}{KEY}{after}".encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        said = OURS.text(encode(raw).decode())
        assert MASK in said
        assert KEY[4:-4] not in _every_reading(said)


def _every_reading(text: str) -> str:
    read = []
    for piece in text.replace("-", "+").replace("_", "/").split(MASK):
        for skip in range(4):
            part = piece[skip:]
            read.append(base64.b64decode(part[: len(part) // 4 * 4] or "AAAA").decode("latin-1"))
    return " ".join(read)


def test_base64_that_is_broken_into_lines() -> None:
    for padding in range(76):
        wrapped = base64.encodebytes(b"x" * padding + KEY.encode() + b"y" * 40).decode()
        said = OURS.text(wrapped)
        assert MASK in said, padding
        flat = said.replace("\n", "")
        assert KEY[4:-4] not in _every_reading(flat), padding


LONG_KEY = "Zx8Kq2mWv7Lp4Rt9Yb3Nc6Hd1Jf5Gs0Ae2Uo8Iy4Tq7Wp3Xz6Mv9Kb1Lr5Cn"


@pytest.mark.parametrize("line_break", ["\n", "\\n", "\n" + " " * 24])
def test_no_piece_of_a_stream_holds_half_a_secret_broken_into_lines(line_break: str) -> None:
    redactor = Redactor({"A_TOKEN": LONG_KEY})
    encoded = base64.b64encode(LONG_KEY.encode()).decode()
    dumped = "".join(f"\\x{ord(letter):02x}" for letter in LONG_KEY)
    after = " and so on" * 40
    for form, place in product((encoded, LONG_KEY.encode().hex(), dumped), (20, 44, 60)):
        text = f"it is {form[:place]}{line_break}{form[place:]}{after}"
        for cut in range(1, len(text)):
            told = redactor.text(text[: redactor.safe_length(text[:cut])])
            assert form[:8] not in told, (form, place, cut)


def test_lines_without_a_word_do_not_hold_up_a_stream() -> None:
    redactor = Redactor({"A_TOKEN": LONG_KEY})
    assert redactor.safe_length("word" + "\n" * 5_000) > 4_000


@pytest.mark.parametrize(
    "form",
    [
        KEY, KEY.encode().hex(), KEY.encode().hex().upper(), quote(KEY, safe=""), quote(KEY),
        json.dumps({"k": KEY}), repr(KEY), f"Authorization: Bearer {KEY}", f"?key={KEY}&x=1",
    ],
)  # fmt: skip
def test_other_forms(form: str) -> None:
    said = OURS.text(form)
    assert MASK in said
    assert KEY not in said


ODD = "pä\"ss'w<o>r&d/0815+!x 7"
ODD_BYTES = ODD.encode()


@pytest.mark.parametrize(
    "form",
    [
        json.dumps(ODD).replace("/", "\\/"),  # PHP
        json.dumps(ODD, ensure_ascii=False),
        json.dumps(ODD).replace("<", "\\u003c").replace("&", "\\u0026"),  # Go
        json.dumps(ODD).replace('\\"', "\\u0022").replace("+", "\\u002B"),  # .NET
        json.dumps(json.dumps(ODD)), repr(ODD), repr(ODD_BYTES), html.escape(ODD), html.escape(ODD, quote=False),
        quote(ODD), quote(ODD, safe="").lower(), quote(ODD, safe="/+"), quote_plus(ODD),
        ODD.replace("'", "'\\''"), "&#60;".join(ODD.split("<")),
        ODD_BYTES.hex(" "), ODD_BYTES.hex(":").upper(), "".join(f"\\x{byte:02x}" for byte in ODD_BYTES),
        base64.b32encode(ODD_BYTES).decode(),
    ],
)  # fmt: skip
def test_each_encoder_escapes_in_its_own_way(form: str) -> None:
    redactor = Redactor({"DB_PASSWORD": ODD})
    said = redactor.text(f"it is {form}, they say")
    assert MASK in said
    assert "0815" not in said
    assert redactor.named(form) == ("DB_PASSWORD",)
    for cut in range(1, len(form)):
        told = form[: redactor.safe_length(form[:cut])]
        assert "0815" not in told


@pytest.mark.parametrize("before", ["", "user=me|pw=", "50% of "])
def test_the_blanks_of_a_secret_may_be_plus_signs(before: str) -> None:
    redactor = Redactor({"DB_PASSWORD": "correct horse battery staple"})
    text = f"{before}correct+horse+battery+staple"
    assert redactor.text(text) == f"{before}{MASK}"
    assert redactor.named(text) == ("DB_PASSWORD",)


SIGNS = 'x"9\\k"2$w"!q<'


@pytest.mark.parametrize(
    "form",
    [
        json.dumps(SIGNS)[1:-1], html.escape(SIGNS), quote(SIGNS), quote_plus(SIGNS),
    ],
)  # fmt: skip
def test_a_secret_of_signs_is_found_escaped(form: str) -> None:
    redactor = Redactor({"DB_PASSWORD": SIGNS})
    assert redactor.text(f"it is {form}, they say") == f"it is {MASK}, they say"
    assert redactor.named(form) == ("DB_PASSWORD",)


def test_what_is_near_a_secret_is_none() -> None:
    redactor = Redactor({"DB_PASSWORD": ODD})
    for text in (ODD[:-1] + "8", "50% of \\d/0815+ & more", "0a 0b 0c 0d 0e 0f", "C:\\x41\\0815"):
        assert redactor.text(text) == text


def test_a_secret_of_several_lines_is_found_by_each_of_them() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEA99Zx"]
    redactor = Redactor({"PEM_KEY": "\n".join(lines)})
    assert redactor.text(f"> {lines[1]}") == f"> {MASK}"
    assert redactor.text("\n".join(lines)) == f"{lines[0]}\n{MASK}"


def test_a_long_secret_does_not_hold_up_a_stream() -> None:
    redactor = Redactor({"BIG_TOKEN": "aB3" * 1000})
    text = "word " * 200
    assert redactor.safe_length(text) > len(text) - 400
    assert "aB3aB3" not in redactor.text("x " + "aB3" * 1000 + " y")


@pytest.mark.parametrize("length", [96, 97, 100, 103, 192, 193, 1000])
def test_nothing_is_left_of_the_end_of_a_long_secret(length: int) -> None:
    secret = "".join(f"{number * 7919:x}Q" for number in range(1, 300))[:length]
    assert Redactor({"A_TOKEN": secret}).text(f"x {secret} y") == f"x {MASK} y"


def test_a_variable_of_one_long_word_is_looked_through_in_no_time() -> None:
    began = time.process_time()
    for word in ("a" * 16_000, "0a" * 8_000, "-" * 16_000, "0" * 16_000, "é" * 16_000):
        Redactor({"BLOB": word})
    assert time.process_time() - began < 2


@pytest.mark.parametrize("cut", range(1, len(KEY)))
def test_no_piece_of_a_stream_holds_half_a_secret(cut: int) -> None:
    text = f"the key is {KEY} and more"
    at = text.index(KEY) + cut
    told = text[: OURS.safe_length(text[:at])]
    assert KEY[:3] not in told


def test_who_is_named() -> None:
    assert OURS.named(f"x {KEY.encode().hex()} y") == ("OPENAI_API_KEY",)
    assert OURS.named("nothing") == ()
    assert not Redactor({"HOME": "/home/ada"}).has_secrets


def test_no_value_is_lost_where_two_names_are_secrets() -> None:
    redactor = Redactor({"A_TOKEN": "abcdefgh12345", "B_TOKEN": "zyxwvut98765"})
    hidden = redactor.json({"abcdefgh12345": 1, "zyxwvut98765": 2, "[redacted] 2": 3, "plain": 4})
    assert hidden == {MASK: 1, "[redacted] 3": 2, "[redacted] 2": 3, "plain": 4}
    assert redactor.json(hidden) == hidden


def test_any_value_and_any_depth() -> None:
    assert OURS.json({KEY: [KEY, 1, None, {"a": KEY}]}) == {MASK: [MASK, 1, None, {"a": MASK}]}
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert isinstance(OURS.json(deep), str)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("length", [20, 40, 62, 80, 96, 150])
def test_a_secret_in_lines_of_base64_is_found_wherever_they_break(length: int, width: int) -> None:
    letters = random.Random(length).choices(string.ascii_letters + string.digits, k=length)
    secret = "".join(letters)
    redactor = Redactor({"MY_API_KEY": secret})
    for before in range(width):
        plain = f"{'x' * before}{secret}{'y' * 30}".encode()
        coded = base64.b64encode(plain).decode()
        lines = "\n".join(coded[at : at + width] for at in range(0, len(coded), width))
        left = redactor.text(lines).replace("\n", "")
        own = coded[before * 4 // 3 + 2 : (before + length) * 4 // 3 - 2]
        told = [own[at : at + 9] for at in range(len(own) - 9) if own[at : at + 9] in left]
        assert told == [], (before, left)
