#!/bin/sh
# Makes .venv with recollect (editable) and all that its tests use. `make` calls it.
#   PYTHON  the interpreter to build on; without it the first suitable one on PATH
#   EXTRAS  comma-separated extras of pyproject.toml
#   The arguments are passed on to `pip install`.
set -eu

suitable='import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
candidates=${PYTHON:-python3 python3.13 python3.12 python3.11}

first_suitable_python() {
    for candidate in $candidates; do
        if "$candidate" -c "$suitable" >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "recollect needs Python 3.11, 3.12 or 3.13 with its venv module; none among: $candidates" >&2
    echo "Install one (on Debian and Ubuntu: apt install python3 python3-venv)," >&2
    echo "or name it: make test PYTHON=/path/to/python3.12" >&2
    exit 1
}

# An environment that was moved would import the checkout it came from.
was_moved() {
    [ -f .venv/installed ] && [ "$(cat .venv/installed)" != "$PWD" ]
}

if was_moved || ! .venv/bin/python -c "$suitable" >/dev/null 2>&1; then
    python=$(first_suitable_python)
    echo "Making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi

.venv/bin/python -m pip install --quiet "$@" --editable ".[$EXTRAS]"
