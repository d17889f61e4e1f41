#!/usr/bin/env bash
# Test the examples on models that are published with their weights; arguments go to pytest:
#     scripts/test published [--help] [ARGUMENTS OF PYTEST]
# The first run makes .venv-published, with 50 MB of packages; then .venv-published/bin/python -m
# examples.misread_line runs one.
set -euo pipefail
source "$(dirname "$0")/../run.sh"
source "$(dirname "$0")/../../environment" dev
cd "$root"
make_layer published
OMP_NUM_THREADS=1 exec "$layer/bin/python" -m pytest tests/house/test_published_models.py "$@"
