"""The native library of this process: importing this module opens it.

Where it cannot be used, `LIBRARY` is None and `REFUSAL` says why, after one warning; on the CPU the
reference serves then. These are constants of a module because Dynamo runs an import as Python does,
while it would trace into a function. Nothing imports this before the first call on CPU tensors.
Forks keep what their parent opened: the library has no state but the choice of kernels.
"""

from __future__ import annotations

from warpkit.core.caller_warnings import warn
from warpkit.engine.backends.cpu.library import PATH, LibraryError, NativeLibrary, open_file

LIBRARY: NativeLibrary | None = None
REFUSAL: str | None = None

try:
    LIBRARY = open_file(PATH)
except LibraryError as error:
    REFUSAL = str(error)
    warn(f"warpkit: {REFUSAL}; on the CPU the slow reference is used", RuntimeWarning)
