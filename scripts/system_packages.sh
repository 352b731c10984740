#!/bin/sh
# Install Debian packages that some tests use, where that is allowed; otherwise those tests are
# skipped and say why. Never fails: a test run needs none of them.
for package in "$@"; do
    if dpkg -s "$package" >/dev/null 2>&1; then
        continue
    fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "not installed, its tests are skipped: $package"
        continue
    fi
    [ -n "$updated" ] || apt-get update -qq >/dev/null 2>&1
    updated=yes
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
        >/dev/null 2>&1 || echo "could not be installed, its tests are skipped: $package"
done
exit 0
