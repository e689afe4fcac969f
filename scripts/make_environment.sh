#!/bin/sh
# Makes .venv with ekphory (editable) and all that its tests use. `make` calls it with:
#   EXTRAS       comma-separated extras of pyproject.toml; empty for the product alone
#   PYTHON       the interpreter to build on; empty takes the first suitable one on PATH
#   TORCH        what to install as torch before the rest; empty for none
#   TORCH_INDEX  an index that has its CPU build; empty for pip's own
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
    echo "ekphory needs Python 3.11, 3.12 or 3.13 with its venv module; none among: $candidates" >&2
    echo "Install one (on Debian and Ubuntu: apt install python3 python3-venv)," >&2
    echo "or name it: make test PYTHON=/path/to/python3.12" >&2
    exit 1
}

# An environment that was moved would import the checkout it came from.
was_moved() {
    [ -f .venv/installed-product ] && [ "$(cat .venv/installed-product)" != "$PWD" ]
}

install() {
    .venv/bin/python -m pip install --quiet --no-compile "$@"
}

# On all cores, which pip does on one. What cannot be compiled is never imported: packages bring
# templates and files of other Pythons along.
compile_all() {
    .venv/bin/python -m compileall -qq -j 0 .venv/lib || true
}

if was_moved || ! .venv/bin/python -c "$suitable" >/dev/null 2>&1; then
    python=$(first_suitable_python)
    echo "Making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi

if [ -n "${TORCH:-}" ]; then
    # Alone and without its dependencies, so that an index out of reach costs seconds.
    install --no-deps --timeout 20 --retries 2 ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$TORCH"
fi

if [ -z "$EXTRAS" ]; then
    echo "Installing ekphory into .venv"
    install --editable .
else
    echo "Installing ekphory, its lab and what its tests use into .venv"
    install --editable ".[$EXTRAS]" --editable "lab${TORCH:+[train]}"
fi
compile_all
