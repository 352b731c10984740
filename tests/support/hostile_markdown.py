"""Markdown that tries to run a script, to load something or to leave its place in a page.

`{site}` stands for a web server: nothing may be asked of it.
"""

_RUN = "document.title='hit';fetch('{site}/hit')"

HOSTILE = (
    # Raw HTML.
    f"<script>{_RUN}</script>",
    f"<ScRiPt >{_RUN}</sCrIpT >",
    f"<<script>{_RUN}//<</script>",
    f"text <b onmouseover=\"{_RUN}\">bold</b>",
    f"<img src=x onerror=\"{_RUN}\">",
    "<img src={site}/hit>",
    f"<img/src=x/onerror=\"{_RUN}\">",
    f"<svg onload=\"{_RUN}\"></svg>",
    f"<svg><script>{_RUN}</script></svg>",
    "<svg><image href={site}/hit /></svg>",
    f"<iframe srcdoc=\"<script>{_RUN}</script>\"></iframe>",
    "<iframe src={site}/hit></iframe>",
    "<object data={site}/hit></object>",
    "<embed src={site}/hit>",
    "<link rel=stylesheet href={site}/hit>",
    "<style>@import url({site}/hit); body {{ display: none }}</style>",
    "<base href={site}/>",
    "<meta http-equiv=refresh content=\"0;url={site}/hit\">",
    "<form action={site}/hit><button autofocus>go</button></form>",
    f"<details open ontoggle=\"{_RUN}\">x</details>",
    f"<body onload=\"{_RUN}\">",
    f"<input autofocus onfocus=\"{_RUN}\">",
    f"<video><source onerror=\"{_RUN}\"></video>",
    "<video poster={site}/hit src={site}/hit autoplay></video>",
    "<audio src={site}/hit autoplay></audio>",
    f"<math><mtext></mtext><script>{_RUN}</script></math>",
    "</div></section></main></body></html><h1>gone</h1>",
    "</pre></details><script>document.title='hit'</script>",
    "</style></title></textarea><script>document.title='hit'</script>",
    "<!-- --><script>document.title='hit'</script><!-- -->",
    "<![CDATA[<script>document.title='hit'</script>]]>",
    "<?php echo '<script>document.title=1</script>' ?>",
    "<template><script>document.title='hit'</script></template>",
    # Links.
    f"[click](javascript:{_RUN})",
    "[click](JaVaScRiPt:document.title='hit')",
    "[click](java\nscript:document.title='hit')",
    "[click](java&#10;script:document.title='hit')",
    "[click](&#106;avascript:document.title='hit')",
    "[click](\x01javascript:document.title='hit')",
    "[click](vbscript:msgbox)",
    "[click](data:text/html,<script>document.title='hit'</script>)",
    "[click](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    "[click](file:///etc/passwd)",
    "[click](//evil.test/x)",
    "[click](../../secret.html)",
    "[click](#report)",
    "[click](blob:https://a.test/1)",
    "[click](https:javascript:document.title='hit')",
    "[click](https://a.test/\" onclick=\"document.title='hit')",
    "[click](https://a.test 'title\" onclick=\"document.title=1')",
    "[good-bank.test](https://evil.test/login)",
    "<javascript:document.title='hit'>",
    "<data:text/html,x>",
    "[ref]\n\n[ref]: javascript:document.title='hit'",
    "[a][b]\n\n[b]: data:text/html;base64,PHNjcmlwdD4= \"t\"",
    "[![x](javascript:alert)](javascript:alert)",
    # Images.
    "![x]({site}/hit)",
    "![x]({site}/hit \"title\")",
    "![x]({site}/hit?secret=1){{onerror=alert}}",
    "![x][i]\n\n[i]: {site}/hit",
    "![\"><script>document.title='hit'</script>]({site}/hit)",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    "[![x]({site}/hit)](https://a.test)",
    # What leaves its place.
    "```\n</code></pre><script>document.title='hit'</script>\n```",
    "```html\" onmouseover=\"document.title='hit'\nx\n```",
    "`</code><script>document.title='hit'</script>`",
    "| a |\n|---|\n| <script>document.title='hit'</script> |",
    "# </h1><script>document.title='hit'</script>",
    "> <script>document.title='hit'</script>",
    "1. <script>document.title='hit'</script>",
    "&lt;script&gt;document.title='hit'&lt;/script&gt;",
    "\u202egnp.exe\u202c \u2066x\u2069 \x1b[2J\x00 \ud800",
)  # fmt: skip


def hostile(site: str = "http://site.test") -> list[str]:
    return [
        sample.replace("{site}", site).replace("{{", "{").replace("}}", "}") for sample in HOSTILE
    ]
