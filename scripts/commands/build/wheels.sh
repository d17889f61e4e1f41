#!/usr/bin/env bash
# Build the wheels for Linux (x86-64, aarch64), macOS (arm64) and Windows (x86-64), into dist/:
#     scripts/build wheels [--help] [TARGET ...]
# A target is a processor and a system: x86_64 or aarch64, and linux, macos or windows. One zig
# compiles for all of them. The first wheel for Windows compiles its C library, too; this takes a
# minute, and build/zig keeps the result.
set -euo pipefail

cd "$(dirname "$0")/../../.."
[ $# -gt 0 ] || set -- x86_64-linux aarch64-linux aarch64-macos x86_64-windows

# one environment for all wheels: unpacking zig for each takes longer than compiling
python=build/wheels/bin/python
pip="$python -m pip --disable-pip-version-check --quiet"
[ -x "$python" ] || python3 -m venv build/wheels
$pip install $(sed -n '/^requires = \[/,/^\]/s/^ *"\([^;"]*\).*/\1/p' pyproject.toml)

export ZIG_GLOBAL_CACHE_DIR=$PWD/build/zig
for target in "$@"; do
    WARPKIT_TARGET=$target $pip wheel --no-build-isolation --no-deps --wheel-dir dist .
done
for wheel in dist/*.whl; do
    echo "$(basename "$wheel"): $(($(stat -c %s "$wheel") / 1000)) kB"
    # a pure wheel has no library: the target is unknown, or the sources did not compile
    "$python" -m zipfile --list "$wheel" | awk '/libwarpkit/ { print "    " $1 ": " $NF " bytes"; n++ }
        /libwarpkit.txt/ { n = 0 } END { exit !n }'
done
