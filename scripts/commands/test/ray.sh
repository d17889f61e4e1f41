#!/usr/bin/env bash
# Run the tests that need Ray, which scripts/test skips; arguments go to pytest:
#     scripts/test ray [--help] [ARGUMENTS OF PYTEST]
# The first run makes .venv-ray with the newest versions that pip finds. That takes minutes and up to
# 8 GB, of which Ray, pyarrow and pandas are half a GB. The tests start and stop a Ray with two workers
# and take two minutes.
set -euo pipefail
source "$(dirname "$0")/../../environment" dev,ray ray
cd "$root"
OMP_NUM_THREADS=1 exec "$python" -m pytest \
    tests/distributed/test_ray.py tests/cli/test_on_ray.py "$@"
