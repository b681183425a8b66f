#!/bin/sh
# The main job of termsprawlctl in one minute: a host, a terminal, a command, its output.
# usage: demo.sh /path/to/termsprawlctl
# Everything happens in a temporary directory that is removed at the end.
set -eu

file=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
place=$(mktemp -d)
data=$place/data
project=$place/project
mkdir "$project"
cd "$project"
PATH=$(dirname "$file"):$PATH
# Another session's variable must not lead the demo into somebody else's host.
unset TERMSPRAWL_SESSION_FILE TERMSPRAWL_DATA || true
export PATH
clean_up() {
    termsprawlctl host stop --data "$data" --kill-sessions 2>/dev/null || true
    cd /
    rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n# %s\n' "$*"; }
show() { # print a command as a person would type it, then run it
    printf '$'
    for word in "$@"; do
        case $word in
        *[!A-Za-z0-9_./:=+-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}

say "Start a host: it serves terminals to agents when the app is not available."
printf '$ eval "$(termsprawlctl host start --data %s)"\n' "$data"
eval "$(termsprawlctl host start --data "$data")"

say "Is everything connected?"
show termsprawlctl doctor

say "Open a terminal and keep its id."
printf '$ node=$(termsprawlctl call terminal_open title=demo --field value.nodeId)\n'
node=$(termsprawlctl call terminal_open title=demo --field value.nodeId)
printf '%s\n' "$node"

say "Run a command in it. This returns when it is typed, not when it has finished."
show termsprawlctl call terminal_submit "nodeId=$node" "command=uname -s; echo 6 times 7 is \$((6 * 7))"

say "Read what the terminal shows until the answer is there."
printf '$ termsprawlctl call terminal_read nodeId=%s --field value.output\n' "$node"
tries=0
until output=$(termsprawlctl call terminal_read "nodeId=$node" --field value.output) &&
    case $output in *"7 is 42"*) true ;; *) false ;; esac; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "the output did not come:" "$output" >&2; exit 1; }
    sleep 0.1
done
printf '%s\n' "$output"

say "Stop the host, end its terminals, remove everything."
show termsprawlctl host stop --data "$data" --kill-sessions

say "Done. Next: termsprawlctl --help, or README.md for agents and MCP clients."
