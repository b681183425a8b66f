"""What has to be typed into a shell so that it runs a command and tells how that went.

For each kind of shell two small scripts, which are sourced, not run. The first one reads a
word from a fifo, which is how the host knows that it was taken up, and the shell whether it
may go on (latch.py); it then keeps the command in a variable. The second one, sourced after
the command, prints the exit status as an OSC sequence (133, as shells and terminals use it
for commands), which no terminal shows.

The second script is also what a hook of the prompt runs, once, for all that does not come
to the end of the line: Ctrl-C, an unset variable, a failed `${x?}`. Plain POSIX shells have
no such hook, and where the user has made it read-only there is none either: the first
script says so with an empty file. Both scripts keep the exit status as they find it, and
nothing that they define is there when the prompt comes back.

Nothing of ours is found by a name that the user may have changed: a backslash keeps
aliases away, `builtin` and `command` keep functions away.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from ....base.text import ASCII_CONTROLS


@dataclass(frozen=True)
class Scripts:
    """`line` is what is typed; `before` and `after` are the contents of the two scripts."""

    line: str
    before: str
    after: str


@dataclass(frozen=True)
class Files:
    """The paths of the two scripts, the fifo, and the file that says that there is no hook; they need no quoting."""

    before: str
    after: str
    latch: str
    no_hook: str


@dataclass(frozen=True)
class _Dialect:
    line: str
    before: str
    after: str
    printer: str = ""  # of plain POSIX shells: what prints the text behind it, and no newline


_CONTROL = re.compile(f"[{ASCII_CONTROLS}]")
_GO = "go"

_BASH_LINE = """ \\builtin \\. {before};\\builtin \\eval "${{__termsprawl-}}";{{ \\builtin \\. {after};}} 2>/dev/null"""
# Some shells (ksh with a DEBUG trap) lose the status on the way into a script.
_POSIX_LINE = (
    """ \\command . {before};\\command eval "${{__termsprawl-}}";__termsprawl_status=$?;"""
    """{{ \\command . {after};}} 2>/dev/null"""
)
_FISH_LINE = """ builtin source {before};eval $__termsprawl;builtin source {after}"""

_BASH_BEFORE = """\
__termsprawl_status=$?
{{
case $- in *e*) __termsprawl_errexit=0 ;; *) __termsprawl_errexit=$__termsprawl_status ;; esac
__termsprawl=$(HISTTIMEFORMAT= \\builtin \\history 1) || :
case $__termsprawl in *{before}*)
    __termsprawl=${{__termsprawl#"${{__termsprawl%%[0-9]*}}"}}
    \\builtin \\history -d "${{__termsprawl%%[!0-9]*}}" || : ;;
esac
\\builtin \\unset __termsprawl
\\builtin \\read -r __termsprawl_go <{latch} || __termsprawl_go=
if [[ $__termsprawl_go == {go} ]]; then
    __termsprawl={command}
    __termsprawl_unset=${{PROMPT_COMMAND-yes}}
    __termsprawl_flags=$(\\builtin \\declare -p PROMPT_COMMAND) || :
    __termsprawl_flags=${{__termsprawl_flags#declare -}}
    case ${{__termsprawl_flags%% *}} in
        *r*) \\builtin \\: >|{no_hook} ;;
        *)
            __termsprawl_hook='{{ \\builtin \\. {after};}} 2>/dev/null
'
            PROMPT_COMMAND=$__termsprawl_hook${{PROMPT_COMMAND-}} ;;
    esac
fi
\\builtin \\eval "\\unset __termsprawl_go __termsprawl_flags __termsprawl_status __termsprawl_errexit
\\return $__termsprawl_errexit"
}} 2>/dev/null
"""
_BASH_AFTER = """\
__termsprawl_status=$?
case ${{__termsprawl+set}} in '') \\builtin \\eval "\\unset __termsprawl_status; \\return $__termsprawl_status" ;; esac
\\builtin \\printf '\\033]133;D;%s;{mark}\\007' "$__termsprawl_status" >/dev/tty
__termsprawl_flags=$(\\builtin \\declare -p PROMPT_COMMAND) || :
__termsprawl_flags=${{__termsprawl_flags#declare -}}
case ${{__termsprawl_flags%% *}}${{__termsprawl_hook-r}} in
    *r) ;;
    r*|?r*|??r*|???r*) ;;
    *)
        PROMPT_COMMAND=${{PROMPT_COMMAND/"$__termsprawl_hook"/}}
        case $PROMPT_COMMAND$__termsprawl_unset in yes) \\builtin \\unset PROMPT_COMMAND ;; esac ;;
esac
case $- in *e*) __termsprawl_status=0 ;; esac
\\builtin \\eval "\\unset __termsprawl __termsprawl_hook __termsprawl_unset __termsprawl_status __termsprawl_flags
\\return $__termsprawl_status"
"""

_ZSH_BEFORE = """\
__termsprawl_status=$?
{{
\\builtin \\unset __termsprawl
\\builtin \\read -r __termsprawl_go <{latch} || __termsprawl_go=
if [[ $__termsprawl_go == {go} ]]; then
    __termsprawl={command}
    case ${{(t)precmd_functions-}} in
        *readonly*) \\builtin \\: >|{no_hook} ;;
        *)
            __termsprawl_hook() {{ {{ \\builtin \\. {after}; }} 2>/dev/null; }}
            precmd_functions+=(__termsprawl_hook) ;;
    esac
fi
case $- in *e*) __termsprawl_status=0 ;; esac
# The line that is typed has a leading blank: it stays out of the history from now on.
\\builtin \\setopt hist_ignore_space
\\builtin \\eval "\\unset __termsprawl_go __termsprawl_status; \\return $__termsprawl_status"
}} 2>/dev/null
"""
_ZSH_AFTER = """\
__termsprawl_status=$?
(( ${{+__termsprawl}} )) || \\builtin \\eval "\\unset __termsprawl_status; \\return $__termsprawl_status"
\\builtin \\printf '\\033]133;D;%s;{mark}\\007' $__termsprawl_status >/dev/tty
case ${{(t)precmd_functions-}} in
    *readonly*) ;;
    *)
        precmd_functions=("${{(@)precmd_functions:#__termsprawl_hook}}")
        (( ${{#precmd_functions}} )) || \\builtin \\unset precmd_functions ;;
esac
(( ${{+functions[__termsprawl_hook]}} )) && \\builtin \\unfunction __termsprawl_hook
case $- in *e*) __termsprawl_status=0 ;; esac
\\builtin \\eval "\\unset __termsprawl __termsprawl_status; \\return $__termsprawl_status"
"""

_POSIX_BEFORE = """\
__termsprawl_status=$?
{{
\\command unset __termsprawl
\\command read -r __termsprawl_go <{latch} || __termsprawl_go=
case $__termsprawl_go in {go})
    __termsprawl={command} ;;
esac
case $- in *e*) __termsprawl_status=0 ;; esac
\\command eval "unset __termsprawl_go __termsprawl_status; return $__termsprawl_status"
}} 2>/dev/null
"""
_POSIX_AFTER = """\
case ${{__termsprawl+set}} in '') \\command eval "unset __termsprawl_status; return $__termsprawl_status" ;; esac
{printer}"\x1b]133;D;$__termsprawl_status;{mark}\x07" >/dev/tty
case $- in *e*) __termsprawl_status=0 ;; esac
\\command eval "unset __termsprawl __termsprawl_status; return $__termsprawl_status"
"""

_FISH_BEFORE = """\
set -l __termsprawl_status $status
set -e -g __termsprawl
builtin read -l __termsprawl_go <{latch}; or set -l __termsprawl_go ''
if builtin test "$__termsprawl_go" = {go}
    set -g __termsprawl {command}
    function __termsprawl_hook --on-event fish_prompt
        builtin source {after}
    end
end
return $__termsprawl_status
"""
_FISH_AFTER = """\
set -l __termsprawl_status $status
set -q __termsprawl; or return $__termsprawl_status
builtin printf '\\e]133;D;%s;{mark}\\a' $__termsprawl_status >/dev/tty
set -e __termsprawl
functions -e __termsprawl_hook
return $__termsprawl_status
"""

_DIALECTS = {
    "bash": _Dialect(_BASH_LINE, _BASH_BEFORE, _BASH_AFTER),
    "zsh": _Dialect(_BASH_LINE, _ZSH_BEFORE, _ZSH_AFTER),
    "fish": _Dialect(_FISH_LINE, _FISH_BEFORE, _FISH_AFTER),
    # Built in, so that no PATH is needed; and nothing that reads backslashes in the text.
    **dict.fromkeys(
        ("dash", "ksh", "yash"), _Dialect(_POSIX_LINE, _POSIX_BEFORE, _POSIX_AFTER, "\\command printf %s ")
    ),
    "mksh": _Dialect(_POSIX_LINE, _POSIX_BEFORE, _POSIX_AFTER, "\\builtin print -rn -- "),
    "posh": _Dialect(_POSIX_LINE, _POSIX_BEFORE, _POSIX_AFTER, "\\command echo -n "),
}


def begin_mark(run_id: str) -> bytes:
    """What the terminal gets just before the command's own output."""
    return f"\x1b]133;C;{_mark(run_id)}\x07".encode()


def end_mark(run_id: str) -> re.Pattern[bytes]:
    """Matches what the terminal gets after it; group 1 is the exit status."""
    return re.compile(rb"\x1b\]133;D;([0-9]{1,10});%s\x07" % re.escape(_mark(run_id).encode()))


def scripts(kind: str, run_id: str, command: str, files: Files) -> Scripts:
    """The scripts that run `command` once in a shell of this kind."""
    dialect = _DIALECTS[kind]
    values = {
        "before": files.before,
        "after": files.after,
        "latch": files.latch,
        "no_hook": files.no_hook,
        "go": _GO,
        "mark": _mark(run_id),
        "printer": dialect.printer,
        "command": _fish_quote(command) if kind == "fish" else shlex.quote(command),
    }
    return Scripts(dialect.line.format(**values), dialect.before.format(**values), dialect.after.format(**values))


def has_hook(kind: str) -> bool:
    """Whether a shell of this kind runs something of ours before each prompt."""
    return not _DIALECTS[kind].printer


def shown(command: str) -> str:
    """The command as a shell would echo it: control characters in caret notation."""
    return _CONTROL.sub(lambda match: "^" + chr(ord(match[0]) ^ 64), command).replace("\n", "\r\n") + "\r\n"


def _mark(run_id: str) -> str:
    return f"termsprawl={run_id}"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
