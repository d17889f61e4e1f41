"""Record results of the installed OpenCV: data/golden/opencv-<version>.npz for warps, and
geometry-opencv-<version>.npz for its other geometric functions.

Needs only opencv-python and numpy, on a CPU with AVX-512, with IPP off. The arrays of warps are
named by their index in the list of tests/support/opencv_cases.py; "<n>-avx2" is the same case on a
CPU without AVX-512, if its result differs. The cases of tests/support/opencv_geometry_cases.py have
names. The repository's files come from opencv-python-headless 4.14.0.94 and 5.0.0.93.

    scripts/record golden
    scripts/record golden --ipp    # resize-ipp-avx2.npz alone, on any CPU with AVX2
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.support.opencv_cases import GOLDEN, call_cv2, cases, vector_case
from tests.support.opencv_geometry_cases import GEOMETRY, answers, calls
from tests.support.resize_cases import avx2_calls
from tests.support.resize_cases import call_cv2 as resize_by_cv2

ROOT = Path(__file__).parents[3]
WITHOUT = {"OPENCV_CPU_DISABLE": "AVX512-SKX"}


def record(narrow: bool) -> tuple[str, dict[str, np.ndarray]]:
    """The version of OpenCV and its results; narrow: only of the cases that depend on the CPU."""
    import cv2

    cv2.setNumThreads(1)
    cv2.ipp.setUseIPP(False)
    if "*AVX512-SKX" not in cv2.getCPUFeaturesLine():
        raise SystemExit("needs a CPU with AVX-512")
    name = "{}-avx2" if narrow else "{}"
    return cv2.__version__, {
        name.format(n): call_cv2(cv2, case)
        for n, case in enumerate(cases())
        if vector_case(case) or not narrow
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--avx2", action="store_true", help="write the AVX2 cases to stdout")
    parser.add_argument("--ipp", action="store_true", help="only record IPP's resizes with AVX2")
    options = parser.parse_args()
    if options.ipp:
        record_ipp()
        return
    if options.avx2:
        _, arrays = record(narrow=True)
        np.savez(sys.stdout.buffer, **arrays)
        return
    version, arrays = record(narrow=False)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    path = GOLDEN / f"opencv-{version}.npz"
    if version.startswith("4"):
        part = path.with_suffix(".part.npz")
        command = [sys.executable, __file__, "--avx2"]
        with part.open("wb") as file:
            subprocess.run(command, env={**os.environ, **WITHOUT}, stdout=file, check=True)
        with np.load(part) as narrow:
            arrays.update(narrow)
        part.unlink()
    np.savez_compressed(path, **arrays)
    print(f"{path.relative_to(ROOT)}: {len(arrays)} results, {path.stat().st_size} bytes")
    record_geometry(version)


def record_ipp() -> None:
    """Record the resizes that IPP computes in different orders with AVX2 and AVX-512."""
    os.environ["OPENCV_IPP"] = "avx2"  # read when OpenCV is imported
    import cv2

    cv2.ipp.setUseIPP(True)
    if "AVX2" not in cv2.ipp.getIppVersion():
        raise SystemExit("needs an OpenCV with IPP, and a CPU with AVX2")
    arrays = {str(n): resize_by_cv2(cv2, call) for n, call in enumerate(avx2_calls())}
    path = GOLDEN / "resize-ipp-avx2.npz"
    np.savez_compressed(path, **arrays)
    print(f"{path.relative_to(ROOT)}: {len(arrays)} results, {path.stat().st_size} bytes")


def record_geometry(version: str) -> None:
    """Record the calls by name; several arrays of one call are "<name>/0", "<name>/1"."""
    import cv2

    arrays = {
        f"{call[0]}/{n}": array for call in calls(cv2) for n, array in enumerate(answers(cv2, call))
    }
    path = Path(GEOMETRY.format(version))
    np.savez_compressed(path, **arrays)
    print(f"{path.relative_to(ROOT)}: {len(arrays)} results, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
