#!/usr/bin/env bash
# Run quick tests under other versions of torch, numpy, OpenCV and the rest:
#     scripts/test versions [--help] [oldest] [middle] [newest] [-- ARGUMENTS OF PYTEST]
# The default is all three. The first run makes an environment for each, .venv-oldest and so on, which
# takes minutes and up to 8 GB, most of it torch. requirements/ has the versions of the oldest and
# the middle set; the newest are those of the day, not those of the lock. Prints the sets that failed, and exits with 1 if there are any.
set -euo pipefail
source "$(dirname "$0")/../run.sh"

quick=( # together they cover every backend, arithmetic, public package and command
    tests/house/test_rules.py tests/gradients/test_gradients.py tests/warp/test_gradient_orders.py
    tests/engine/definitions/test_antialias.py tests/warp/test_compile.py
    tests/engine/cpu/test_warp.py tests/engine/cpu/test_bounds.py
    tests/engine/arithmetic/test_arithmetic.py
    tests/engine/triton/test_warp.py tests/geometry/test_geometry.py
    tests/indexing/test_indexing.py tests/indexing/test_gradients.py tests/patches/test_paste.py
    tests/patches/test_transform_gradients.py tests/attacks/test_expectation.py
    tests/nn/test_layers.py tests/distributed/test_distributed.py tests/opencv/test_face.py
    tests/validation/test_validation.py tests/transforms/test_transforms.py tests/cli/test_warp.py
    tests/cli/test_files.py tests/cli/test_demo.py
    tests/resize/test_resize.py tests/camera/test_points.py tests/flow/test_fields.py
    tests/alignment/test_bad_data.py tests/opencv/test_recorded_geometry.py
    tests/transforms/test_fused.py tests/attacks/test_pipeline.py
)
# tests of every rule on every backend take as long as all the rest; tests of single cases replace them
except="test_first_order_both_modes or test_second_order"

shown="torch|torchvision|numpy|opencv-python-headless|pillow"

sets=()
while [ $# -gt 0 ]; do
    case $1 in
        --help) print_help; exit ;;
        --) shift; break ;;
        oldest | middle | newest) sets+=("$1") ;;
        *) echo "versions: the sets are oldest, middle and newest, got '$1'" >&2; exit 2 ;;
    esac
    shift
done
[ ${#sets[@]} -gt 0 ] || sets=(oldest middle newest)

failed=()
for set in "${sets[@]}"; do
    pythons=
    # numpy 1.26 has no wheels for later Pythons
    [ "$set" != oldest ] || pythons="python3.10 python3.11 python3.12 python3"
    status=0
    # in a subshell, and not in a condition, where bash would continue after an error
    set +e
    (
        set -e
        source "$(dirname "$0")/../../environment" dev "$set"
        cd "$root"
        step "pytest: $set"
        "$python" -m pip freeze | grep -iE "^($shown)=="
        OMP_NUM_THREADS=1 "$python" -m pytest --numprocesses auto --quiet "${quick[@]}" \
            -k "not ($except)" "$@"
    )
    status=$?
    set -e
    [ "$status" -eq 0 ] || failed+=("$set")
done

if [ ${#failed[@]} -gt 0 ]; then
    printf '\nversions: failed: %s\n' "${failed[*]}" >&2
    exit 1
fi
printf '\nversions: passed: %s\n' "${sets[*]}"
