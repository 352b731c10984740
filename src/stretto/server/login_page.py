"""The two small pages of logging in. No script; what they show of others is escaped."""

from html import escape

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stretto</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{more}</head><body>
"""


def login_page(said: str) -> str:
    """Asks for a token; `said`: why."""
    return (
        _HEAD.format(more="")
        + f"""<h1>Stretto</h1>
<p>{escape(said)}</p>
<p>Open the login link that <code>stretto serve</code> printed (<code>stretto serve link</code> prints
a new one), or give your token:</p>
<form method="post" action="/login">
<p><label>Token <input type="password" name="token" autocomplete="current-password" required></label>
<button>Log in</button></p>
</form>
</body></html>
"""
    )


def welcome_page() -> str:
    """Leads on to the console. By a page and not by a redirect: a browser that came here by a link
    elsewhere sends a SameSite=Strict cookie only from the next page on."""
    more = '<meta http-equiv="refresh" content="0; url=/">'
    return _HEAD.format(more=more) + '<p>Logged in. <a href="/">Go on</a></p>\n</body></html>\n'
