#!/usr/bin/env bash
# Rebuild the native library in place, after an edit of its sources:
#     scripts/build native [--one-set] [--if-older]
# Uses the Python of .venv, or python3, with or without ziglang; WARPKIT_CXX names another compiler.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
python=$root/.venv/bin/python
[ -x "$python" ] || python=python3
exec "$python" "$root/hatch_build.py" "$@"
