#!/bin/sh
# Runs as root while the container is built, with the options as variables.
# Copy dist/termsprawlctl beside this file, or set `url` and `sha256`.
set -eu

prefix=${PREFIX:-/usr/local}
here=$(cd "$(dirname "$0")" && pwd)

missing=
for program in python3 tmux; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
if [ -n "$missing" ]; then
    apt-get update
    # shellcheck disable=SC2086 - words
    apt-get install -y --no-install-recommends $missing
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "${URL:-}" ]; then
    [ -n "${SHA256:-}" ] || { echo "a download needs the option sha256" >&2; exit 1; }
    python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' "$URL" "$scratch/termsprawlctl"
else
    cp "$here/termsprawlctl" "$scratch/termsprawlctl"
fi
if [ -n "${SHA256:-}" ]; then
    echo "$SHA256  $scratch/termsprawlctl" | sha256sum -c - >&2
fi
mkdir -p "$prefix/bin"
install -m 755 "$scratch/termsprawlctl" "$prefix/bin/termsprawlctl"
"$prefix/bin/termsprawlctl" --version
