#!/usr/bin/env bash
# Run `identify` on the programs of twenty packages and on the image processors of transformers, and
# write data/identify/real.csv, data/identify/processors.csv and docs/real-preprocessing.md:
#     scripts/identify shipped
# The first run makes an environment on top of .venv: .venv-shipped, with the versions in
# requirements/shipped.txt and without their dependencies, because some would bring another torch
# or OpenCV. It takes 3 GB beside .venv, most of it TensorFlow; a run takes half an hour on one core.
set -euo pipefail
source "$(dirname "$0")/../run.sh"
source "$(dirname "$0")/../../environment" dev
cd "$root"

make_layer shipped
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TF_CPP_MIN_LOG_LEVEL=3
tables=()
for kind in real processors; do
    step "$kind"
    "$layer/bin/python" -m scripts.commands.identify.programs "$kind" --out "data/identify/$kind.csv"
    tables+=("data/identify/$kind.csv")
done
"$layer/bin/python" -m scripts.commands.identify.programs page "${tables[@]}" --out docs/real-preprocessing.md
