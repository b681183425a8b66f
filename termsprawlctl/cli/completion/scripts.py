"""What each shell is told to do: ask this program for the words, and how to show them.

Each line of an answer is `WORD<tab>DESCRIPTION`, or `:files` or `:folders` where the shell
itself knows best. A word that ends in `=` is completed without a blank behind it.
"""

from __future__ import annotations

BASH = r"""# bash completion for termsprawlctl: source <(termsprawlctl completion bash)
_termsprawlctl() {
    local program=${COMP_WORDS[0]} rest=${COMP_LINE:0:COMP_POINT} words=() at=-1 i part
    # Bash may split words at = and : (COMP_WORDBREAKS); put them together again.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        part=${COMP_WORDS[i]}
        if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then
            words[++at]=
            rest=${rest#"${rest%%[![:space:]]*}"}
        fi
        [[ $rest == "$part"* ]] || part=$rest
        words[at]+=$part
        rest=${rest#"$part"}
    done
    local current=${words[at]} breaks= prefix= word
    # Only what stands behind the last break is replaced.
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'
    [[ -n $breaks ]] && prefix=${current%"${current##*["$breaks"]}"}
    program=${program/#~\//$HOME/}
    type -- "$program" >/dev/null 2>&1 || program=termsprawlctl
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        case $word in
            :files | :folders)
                local kind=-f
                [[ $word == :folders ]] && kind=-d
                while IFS= read -r part; do COMPREPLY+=("$part"); done < <(compgen "$kind" -- "${current#"$prefix"}")
                type compopt >/dev/null 2>&1 && compopt -o filenames
                ;;
            *) COMPREPLY+=("${word#"$prefix"}") ;;
        esac
    done < <("$program" completion --candidates -- "${words[@]:1}" 2>/dev/null </dev/null)
    if [[ ${COMPREPLY[0]-} == *= ]] && type compopt >/dev/null 2>&1; then compopt -o nospace; fi
}
complete -F _termsprawlctl termsprawlctl
"""

ZSH = r"""#compdef termsprawlctl
# zsh completion for termsprawlctl: source <(termsprawlctl completion zsh)
_termsprawlctl() {
    local -a lines whole open
    local line word
    local program=${(Q)words[1]/#\~\//$HOME/}
    (( $+commands[$program] )) || [[ -x $program ]] || program=termsprawlctl
    lines=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
    lines=("${(@f)$($program completion --candidates -- "${(@)lines}" 2>/dev/null </dev/null)}")
    for line in $lines; do
        word=${line%%$'\t'*}
        case $word in
            (:files) compset -P '*='; _files; return ;;
            (:folders) compset -P '*='; _files -/; return ;;
            (*=) open+=("${word//:/\\:}:${line#*$'\t'}") ;;
            (*) whole+=("${word//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (( $#open )) && _describe -t fields field open -S ''
    (( $#whole )) && _describe -t words word whole
}
if [[ $funcstack[1] == _termsprawlctl ]]; then
    _termsprawlctl "$@"
else
    compdef _termsprawlctl termsprawlctl
fi
"""

FISH = r"""# fish completion for termsprawlctl: termsprawlctl completion fish | source
function __termsprawlctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    type -q -- $program; or set program termsprawlctl
    set -e words[1]
    # A file may stand behind NAME= or --option=.
    set -l prefix (string match -r '^[^/]*=' -- "$current"; or echo)
    set -l path (string sub -s (math (string length -- "$prefix") + 1) -- "$current")
    for line in ($program completion --candidates -- $words "$current" 2>/dev/null </dev/null)
        switch $line
            case ':files*'
                string join \n -- $prefix(__fish_complete_path $path)
            case ':folders*'
                string join \n -- $prefix(__fish_complete_directories $path)
            case '*'
                echo $line
        end
    end
end
complete -c termsprawlctl -f -a '(__termsprawlctl_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
