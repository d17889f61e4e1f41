"""The native library of this process: importing this module opens it.

If it cannot be used, `LIBRARY` is None and `REFUSAL` says why, after one warning; then the
reference is used on the CPU. These are constants of a module because Dynamo executes imports like
Python, while it would trace a function. Nothing imports this module before the first call on CPU
tensors. Forks keep their parent's library, which has no state except the choice of kernels.
"""

from __future__ import annotations

from warpkit.core.caller_warnings import warn
from warpkit.engine.cpu.library import PATH, LibraryError, NativeLibrary, open_file

LIBRARY: NativeLibrary | None = None
REFUSAL: str | None = None

try:
    LIBRARY = open_file(PATH)
except LibraryError as error:
    REFUSAL = str(error)
    warn(f"warpkit: {REFUSAL}; on the CPU the slow reference is used", RuntimeWarning)
