#!/bin/sh
# Makes the virtual environment: finds a Python, and installs what is missing of Debian's packages for venv, Java and strace.
set -eu
venv=$1
python=${PYTHON:-python3}

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

command -v "$python" >/dev/null 2>&1 || fail "no $python found; install Python 3.11 or newer, or run: make PYTHON=/path/to/python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old; coprlake needs 3.11 or newer: make PYTHON=/path/to/python"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    command -v apt-get >/dev/null 2>&1 || fail "$python cannot make virtual environments; install its venv package"
    echo "setup: installing python3-venv"
    as_root apt-get update -qq && as_root apt-get install -y -qq python3-venv >/dev/null ||
        fail "could not install python3-venv; install it by hand and try again"
fi

# Spark needs Java; everything else works without.
java_version() { java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1; }
if ! command -v java >/dev/null 2>&1 || [ "$(java_version)" -lt 17 ] 2>/dev/null; then
    advice="install a Java runtime, version 17 or newer: the tests with Spark need it, nothing else does"
    if command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing a Java runtime"
        { as_root apt-get update -qq && as_root apt-get install -y -qq default-jre-headless >/dev/null; } || echo "setup: $advice" >&2
    else
        echo "setup: $advice" >&2
    fi
fi

# The tests of power losses record with strace; everything else works without.
if ! command -v strace >/dev/null 2>&1; then
    advice="install strace: the tests of power losses need it, nothing else does"
    if command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing strace"
        { as_root apt-get update -qq && as_root apt-get install -y -qq strace >/dev/null; } || echo "setup: $advice" >&2
    else
        echo "setup: $advice" >&2
    fi
fi

echo "setup: installing packages into $venv"
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' ||
    fail "packages could not be installed; is there a way to a package index? (pip's own message is above)"

echo "setup: compiling kernels"
"$venv/bin/python" -m coprlake.native.building || echo "setup: kernels are compiled on their first call instead" >&2
