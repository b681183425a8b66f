#!/bin/sh
# Install the real counterparts of the tests, pinned in package.json and requirements*.txt here,
# into .counterparts/ at the project's root. What is there already is left alone; what cannot be
# installed leaves its reason in .counterparts/why/NAME, which the tests print when they skip.
# Always exits 0: a missing counterpart skips tests, it does not fail them.
#
#   .counterparts/node/NAME/node_modules   one npm package each ("/" in NAME written as "+")
#   .counterparts/python                   a virtual environment with the Python packages
#   .counterparts/a2a                      one of its own for those of requirements-a2a.txt
#   .counterparts/programs                 other Pythons and tmuxes: see debian.sh
#
# PYTHON chooses the Python of the virtual environment (3.10 or newer; default python3).
set -u
here=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$here/../.." && pwd)/.counterparts
mkdir -p "$target/node" "$target/why"

failed() { # NAME LOG: keep the last words of the log as the reason
    { printf 'could not be installed: '; grep -v '^ *$' "$2" | tail -n 3 | tr '\n' ' '; } >"$target/why/$1"
    echo "counterparts: $1 $(cat "$target/why/$1")"
}

npm_package() { # NAME VERSION
    name=$(echo "$1" | tr / +)
    folder=$target/node/$name
    if [ "$(cat "$folder/version" 2>/dev/null)" = "$2" ]; then
        return
    fi
    rm -rf "$folder" && mkdir -p "$folder"
    node -e '
        const {allowScripts} = require(process.argv[1]);
        console.log(JSON.stringify({private: true, allowScripts}))' "$here/package.json" >"$folder/package.json"
    if (cd "$folder" && npm install --no-package-lock --no-fund --no-audit --loglevel=error "$1@$2") >"$folder/log" 2>&1 </dev/null; then
        echo "$2" >"$folder/version"
        rm -f "$target/why/$name"
        echo "counterparts: installed $1 $2"
    else
        failed "$name" "$folder/log"
    fi
}

python_packages() { # NAME FILE
    folder=$target/$1
    if cmp -s "$here/$2" "$folder/requirements.txt"; then
        return
    fi
    rm -rf "$folder" && mkdir -p "$folder"
    if { "${PYTHON:-python3}" -m venv "$folder" &&
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/$2"; } >"$folder/log" 2>&1 </dev/null; then
        cp "$here/$2" "$folder/requirements.txt"
        rm -f "$target/why/$1"
        echo "counterparts: installed $(tr '\n' ' ' <"$here/$2")"
    else
        failed "$1" "$folder/log"
    fi
}

# All at once: they mostly wait for the network.
python_packages a2a requirements-a2a.txt &
{
    python_packages python requirements.txt
    sh "$here/debian.sh" # with that Python
} &
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    echo "could not be installed: node and npm are not on PATH" >"$target/why/npm"
    echo "counterparts: npm packages $(cat "$target/why/npm")"
else
    rm -f "$target/why/npm"
    node -p 'Object.entries(require(process.argv[1]).dependencies).map(pair => pair.join(" ")).join("\n")' "$here/package.json" |
        {
            while read -r package version; do npm_package "$package" "$version" & done
            wait
        }
fi
wait
exit 0
