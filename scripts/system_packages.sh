#!/bin/sh
# Install Debian packages that some tests use, where that is allowed; otherwise those tests are
# skipped and say why. `a|b`: b, where a cannot be had. Never fails: a test run needs none of them.
install() {
    dpkg -s "$1" >/dev/null 2>&1 && return
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        return 1
    fi
    [ -n "$updated" ] || apt-get update -qq >/dev/null 2>&1
    updated=yes
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1
}

for wanted in "$@"; do
    for package in $(echo "$wanted" | tr '|' ' '); do
        install "$package" && continue 2
    done
    echo "could not be installed, its tests are skipped: $wanted"
done
exit 0
