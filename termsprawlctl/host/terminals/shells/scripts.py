"""What has to be typed into a shell so that it runs a command and tells how that went.

For each kind of shell two small scripts, which are sourced, not run: the first is
sourced before the command, shows the command and prints a mark, the second after it
and prints the exit status. Both marks are OSC sequences (133, as shells and terminals
use it for commands), which no terminal shows.

The second script is also what a hook of the prompt runs, once, for all that does not
come to the end of the line: Ctrl-C, an unset variable, a failed `${x?}`. dash has no
such hook. Both scripts keep the exit status as they find it, and nothing that they
define is there when the prompt comes back.
"""

from __future__ import annotations

import re
import shlex
from collections import namedtuple

# line: what is typed; before, after: the content of the two scripts.
Scripts = namedtuple("Scripts", "line before after")

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")

_POSIX_LINE = """ . {before};{eval} "$__termsprawl";{{ . {after};}} 2>/dev/null"""
_FISH_LINE = """ source {before};eval $__termsprawl;source {after}"""

_BASH_BEFORE = """\
__termsprawl_status=$?
{{
__termsprawl=$(HISTTIMEFORMAT= builtin history 1)
case $__termsprawl in *{before}*)
    __termsprawl=${{__termsprawl#"${{__termsprawl%%[0-9]*}}"}}
    builtin history -d "${{__termsprawl%%[!0-9]*}}" ;;
esac
__termsprawl_unset=${{PROMPT_COMMAND-yes}}
__termsprawl_hook='{{ . {after};}} 2>/dev/null
'
PROMPT_COMMAND=$__termsprawl_hook${{PROMPT_COMMAND-}}
__termsprawl={command}
case $- in *e*) __termsprawl_status=0 ;; esac
builtin printf %s {shown} >/dev/tty
return "$__termsprawl_status"
}} 2>/dev/null
"""
_BASH_AFTER = """\
__termsprawl_status=$?
case ${{__termsprawl_hook-}} in '') return "$__termsprawl_status" ;; esac
builtin printf '\\033]133;D;%s;{mark}\\033\\\\' "$__termsprawl_status" >/dev/tty
PROMPT_COMMAND=${{PROMPT_COMMAND/"$__termsprawl_hook"/}}
case $PROMPT_COMMAND$__termsprawl_unset in yes) unset PROMPT_COMMAND ;; esac
case $- in *e*) __termsprawl_status=0 ;; esac
builtin eval "unset __termsprawl __termsprawl_hook __termsprawl_unset __termsprawl_status; return $__termsprawl_status"
"""

_ZSH_BEFORE = """\
__termsprawl_status=$?
{{
__termsprawl_hook() {{ {{ . {after}; }} 2>/dev/null; }}
precmd_functions+=(__termsprawl_hook)
__termsprawl={command}
case $- in *e*) __termsprawl_status=0 ;; esac
builtin printf %s {shown} >/dev/tty
return $__termsprawl_status
}} 2>/dev/null
"""
_ZSH_AFTER = """\
__termsprawl_status=$?
(( ${{+__termsprawl}} )) || return $__termsprawl_status
builtin printf '\\033]133;D;%s;{mark}\\033\\\\' $__termsprawl_status >/dev/tty
precmd_functions=("${{(@)precmd_functions:#__termsprawl_hook}}")
(( ${{#precmd_functions}} )) || unset precmd_functions
unfunction __termsprawl_hook
case $- in *e*) __termsprawl_status=0 ;; esac
builtin eval "unset __termsprawl __termsprawl_status; return $__termsprawl_status"
"""

_DASH_BEFORE = """\
__termsprawl_status=$?
{{
__termsprawl={command}
case $- in *e*) __termsprawl_status=0 ;; esac
command printf %s {shown} >/dev/tty
return "$__termsprawl_status"
}} 2>/dev/null
"""
_DASH_AFTER = """\
__termsprawl_status=$?
command printf '\\033]133;D;%s;{mark}\\033\\\\' "$__termsprawl_status" >/dev/tty
case $- in *e*) __termsprawl_status=0 ;; esac
eval "unset __termsprawl __termsprawl_status; return $__termsprawl_status"
"""

_FISH_BEFORE = """\
set -l __termsprawl_status $status
set -g __termsprawl {command}
function __termsprawl_hook --on-event fish_prompt
    source {after}
end
builtin printf %s {shown} >/dev/tty
return $__termsprawl_status
"""
_FISH_AFTER = """\
set -l __termsprawl_status $status
set -q __termsprawl; or return $__termsprawl_status
builtin printf '\\e]133;D;%s;{mark}\\e\\\\' $__termsprawl_status >/dev/tty
set -e __termsprawl
functions -e __termsprawl_hook
return $__termsprawl_status
"""

# kind: (line, script before, script after, what runs the command's text)
_TEMPLATES = {
    # `builtin` passes by a function or an alias that somebody has called eval.
    "bash": (_POSIX_LINE, _BASH_BEFORE, _BASH_AFTER, "builtin eval"),
    "zsh": (_POSIX_LINE, _ZSH_BEFORE, _ZSH_AFTER, "builtin eval"),
    # `command` keeps errors in the text from ending the whole line.
    "dash": (_POSIX_LINE, _DASH_BEFORE, _DASH_AFTER, "command eval"),
    "fish": (_FISH_LINE, _FISH_BEFORE, _FISH_AFTER, "eval"),
}


def begin_mark(run_id: str) -> bytes:
    """What the terminal gets just before the command's own output."""
    return f"\x1b]133;C;{_mark(run_id)}\x1b\\".encode()


def end_mark(run_id: str) -> re.Pattern:
    """Matches what the terminal gets after it; group 1 is the exit status."""
    return re.compile(rb"\x1b\]133;D;([0-9]{1,10});%s\x1b\\" % re.escape(_mark(run_id).encode()))


def scripts(kind: str, run_id: str, command: str, paths: tuple[str, str], first: str) -> Scripts:
    """The scripts that run `command` once in a shell of this kind.

    `paths` are where the two will lie; they need no quoting. `first` is printed before
    everything else.
    """
    line, before, after, evaluate = _TEMPLATES[kind]
    quote = _fish_quote if kind == "fish" else shlex.quote
    shown = first + _shown(command) + "\n" + begin_mark(run_id).decode()
    values = {
        "before": paths[0],
        "after": paths[1],
        "eval": evaluate,
        "mark": _mark(run_id),
        "command": quote(command),
        "shown": quote(shown),
    }
    return Scripts(*(template.format(**values) for template in (line, before, after)))


def _mark(run_id: str) -> str:
    return f"termsprawl={run_id}"


def _shown(command: str) -> str:
    """The command as a shell would echo it: control characters in caret notation."""
    return _CONTROL.sub(lambda match: "^" + chr(ord(match[0]) ^ 64), command)


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
