"""Which commands a filter lets through, and what cannot be smuggled past it."""

import pytest

from stretto.adapters.tools.commands import why_forbidden
from stretto.toolnames.filters import CommandFilter, read_listed


def filters(*texts: str) -> list[CommandFilter]:
    (bash,) = read_listed(f"Bash({text})" for text in texts)
    assert bash.fault is None
    return [each for each in bash.filters if isinstance(each, CommandFilter)]


GIT = filters("git diff:*", "git log:*", "npm run test:*", "ls")


@pytest.mark.parametrize(
    "command",
    [
        "git diff",
        "git diff --stat HEAD~1 -- 'a b.py'",
        "  git   log -5 ",
        "git diff && git log",
        "git diff | git log; ls",
        "git log\ngit diff\n",
        "git diff 2>&1",
        'git log --format="%H %s" --grep "a && b; c"',
        "git log # a comment; rm -rf /",
        "g'i't di\"ff\"",
        "npm run test -- --watch=false",
        "git log --since=1.day HEAD@{1}..main *.py '{a,b}' {}",
    ],
)
def test_a_command_whose_parts_all_match_may_run(command: str) -> None:
    assert why_forbidden(command, GIT) is None


@pytest.mark.parametrize(
    "word", ["{--output=x,HEAD}", "{{a},--output=x}", "{'--output=a b',x}", "a{1..9}"]
)
def test_braces_that_become_several_words_are_not_plain(word: str) -> None:
    assert "braces" in str(why_forbidden(f"git diff {word}", GIT))


@pytest.mark.parametrize(
    "command",
    [
        "git",
        "git push",
        "git difftool",
        "git -c core.pager=id diff",
        "rm -rf .",
        "ls -l",
        "git diff; rm -rf .",
        "git diff && rm x",
        "git diff || rm x",
        "git diff | sh",
        "git diff & rm x",
        "git diff\nrm x",
        "git diff $(rm x)",
        "git diff `rm x`",
        'git diff "$(rm x)"',
        'git diff "`rm x`"',
        "git diff <(rm x)",
        "git diff > out",
        "git diff >> out",
        "git diff 2> out",
        "git diff &> out",
        "git diff >& out",
        "git diff < /etc/passwd",
        "git diff << EOF\nx\nEOF",
        "git diff ${x@P}",
        "git diff $HOME",
        "git diff $'\\x3b' rm",
        "(git diff; rm x)",
        "{ git diff; }",
        "git() { rm x; }",
        "X=1 git diff",
        "! git diff",
        "if git diff; then rm x; fi",
        "env git diff",
        "exec git diff",
        "gi? diff",
        "git\\\ndiff",
        "git diff 'unclosed",
        'git diff "unclosed',
        "git diff \\",
        "git diff \x00",
        "git diff \r rm",
        "",
        "   ",
        "# nothing",
        "\\git\\ diff",
    ],
)  # fmt: skip
def test_everything_else_is_refused_with_what_may_run(command: str) -> None:
    why = why_forbidden(command, GIT)
    assert why is not None
    assert "You may run: git diff:*, git log:*, npm run test:*, ls" in why


def allowed(command: str, *written: str) -> bool:
    return why_forbidden(command, filters(*written)) is None


@pytest.mark.parametrize(
    ("written", "command"),
    [
        ("git diff:*", "git diff --output=src/a.py"),
        ("git diff:*", "git diff --output src/a.py"),
        ("git diff:*", "git diff --outp=src/a.py"),
        ("git diff:*", "git diff HEAD~1 --ext-diff"),
        ("git diff:*", "git diff --ext"),
        ("git log:*", "git log -p --textconv"),
        ("git log:*", "git log --stat '--output=x'"),
        ("git log:*", 'git log "--out"put=x'),
        ("git:*", "git -c core.fsmonitor=x status"),
        ("git:*", "git -ccore.fsmonitor=x status"),
        ("git:*", "git --exec-path=. status"),
        ("git:*", "git --git-dir=evil log"),
        ("git:*", "git -C evil status"),
        ("git:*", "git config core.pager x"),
        ("git:*", "git submodule foreach ls"),
        ("git:*", "git bisect run ls"),
        ("git grep:*", "git grep -Ols x"),
        ("git grep:*", "git grep --open-files-in-pager=ls x"),
        ("git fetch:*", "git fetch --upload-pack=ls ."),
        ("git ls-remote:*", "git ls-remote --upload-pa=ls ."),
        ("git archive:*", "git archive -o x HEAD"),
        ("git rebase:*", "git rebase -x ls HEAD"),
        ("find:*", "find . -name x -exec ls {} +"),
        ("find:*", "find . -delete"),
        ("find:*", "find . -fprint x"),
        ("find:*", "find . -fprintf x %p"),
        ("find:*", "find . -okdir ls"),
        ("sed:*", "sed -i s/a/b/ f"),
        ("sed:*", "sed -i.bak s/a/b/ f"),
        ("sed:*", "sed -ni p f"),
        ("sed:*", "sed --in-pl s/a/b/ f"),
        ("sed:*", "sed 'w out' f"),
        ("sed:*", "sed 's/a/b/w out' f"),
        ("sed:*", "sed 's/a/ls/e' f"),
        ("sed:*", "sed '1e ls' f"),
        ("sed:*", "sed -n -e p -e '$e ls' f"),
        ("sed:*", "sed -ne 'w out' f"),
        ("sed:*", "sed -f script f"),
        ("sed:*", "sed -l 1p 'w out' f"),
        ("sed:*", "sed -nl 1p 'w out' f"),
        ("sed:*", "sed --line-l 1p 'w out' f"),
        ("sort:*", "sort f -o f"),
        ("sort:*", "sort -uof f"),
        ("sort:*", "sort --outp=f f"),
        ("sort:*", "sort --compress-program=ls f"),
        ("tar:*", "tar xf a.tar --to-command=ls"),
        ("tar:*", "tar cf a.tar . --checkpoint=1 --checkpoint-action=exec=ls"),
        ("tar:*", "tar -I ls -xf a.tar"),
        ("rg:*", "rg --pre ls x"),
        ("rg:*", "rg --pre=ls x"),
        ("awk:*", "awk 'BEGIN { system(\"ls\") }'"),
        ("awk:*", "awk '{ print > \"out\" }' f"),
        ("awk:*", "awk '{ print | \"sh\" }' f"),
        ("awk:*", "awk -f script f"),
        ("uniq:*", "uniq in out"),
        ("curl:*", "curl -o out http://x"),
        ("curl:*", "curl -sLo out http://x"),
        ("tree:*", "tree -o out"),
        ("dd:*", "dd if=a of=b"),
        ("split:*", "split --filter=ls f"),
        ("/usr/bin/sort:*", "/usr/bin/sort -o f f"),
        ("sed:*", "sed --expr='1w out'"),
        ("sed:*", "sed --expression '1w out'"),
        ("sed:*", "sed -ne1wx f"),
        ("sed:*", "sed -Ene'1w out' f"),
        ("find:*", "find -- . -delete"),
        ("timeout 60 git diff:*", "timeout 60 git diff --output=x"),
        ("env LANG=C sort:*", "env LANG=C sort -o f f"),
        ("nice:*", "nice -n 5 git diff --output=x"),
        ("xargs sed:*", "xargs sed -i s/a/b/"),
        ("nice timeout 5 find:*", "nice timeout 5 find . -delete"),
        ("shuf:*", "shuf -of f"),
        ("xxd:*", "xxd -r in out"),
    ],
)  # fmt: skip
def test_an_option_that_writes_or_starts_something_is_refused(written: str, command: str) -> None:
    assert not allowed(command, written)
    assert allowed(command, written, "*")


@pytest.mark.parametrize(
    ("written", "command"),
    [
        ("git diff:*", "git diff --stat HEAD~1 -- src/output"),
        ("git diff:*", "git diff --text -c --output-indicator-new=x"),
        ("git diff:*", "git diff -- --output=x"),
        ("git log:*", "git log --oneline -n 5 --format=%H -c"),
        ("git ls-files:*", "git ls-files -o --exclude-standard"),
        ("git:*", "git --no-pager diff --cached"),
        ("find:*", "find src -name '*.py' -newer a -print0"),
        ("sed:*", "sed -n 1,20p f"),
        ("sed:*", "sed 's/write/e/g; 3d' f"),
        ("sed:*", "sed -e '/we/!d' -e 's|a|b|2p' f"),
        ("sed:*", "sed -E -n '$p' f"),
        ("sort:*", "sort -u -k2,2n f"),
        ("tar:*", "tar -tzf a.tar"),
        ("rg:*", "rg --pretty --pre-glob x -n y"),
        ("awk:*", "awk -F: '{ print $1 }' f"),
        ("uniq:*", "sort f | uniq -c"),
        ("curl:*", "curl -sS http://x"),
        ("pytest:*", "pytest -x -o addopts= tests"),
    ],
)
def test_what_only_shows_something_is_let_through(written: str, command: str) -> None:
    assert allowed(command, written, "sort f")


@pytest.mark.parametrize(
    ("written", "command"),
    [
        ("git diff --output=x:*", "git diff --output=x HEAD"),
        ("sed -i:*", "sed -i s/a/b/ f"),
        ("find . -delete", "find . -delete"),
        ("git config:*", "git config user.name"),
        ("git submodule foreach:*", "git submodule foreach ls"),
    ],
)
def test_an_option_that_the_filter_names_is_meant(written: str, command: str) -> None:
    assert allowed(command, written)
