"""How the kernels are compiled: no argument aliases another, compiled code is kept on disk.

Without `noalias` LLVM must assume that storing a result changes the image, and nothing is
vectorised: 5 times slower. Numba can only be told so through a pipeline of one's own, and helpers
need it too.

A kernel is a closure over ints and strings, which Numba's cache tells apart; a closure over a
function would be compiled anew by every process. Helpers are therefore at module level and take
the constants as arguments: they are always inlined, where the constants fold.
"""

from __future__ import annotations

import gc
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zlib import crc32

from numba import njit
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

from warpkit.engine.backends.cpu.runtime.cache_lock import CacheLock
from warpkit.engine.backends.cpu.runtime.resolved_calls import remembering

PASSES = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    RewriteSemanticConstants,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
)
"""Numba's steps that kernels need. The others look for what is in no kernel (closures, generators,
array expressions, `literally`), and take a fifth of the time to find nothing."""


class NoAlias(CompilerBase):
    """`noalias`, the steps of `PASSES`, and no entry from C."""

    library: Any = JITCodeLibrary

    def __init__(self, typingctx: Any, *rest: Any) -> None:
        super().__init__(remembering(typingctx), *rest)

    def define_pipelines(self) -> list[Any]:
        """As the base class has it."""
        state = self.state
        state.flags.noalias = state.flags.no_cfunc_wrapper = True
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        steps = PassManager("kernel")
        for step in PASSES:
            steps.add_pass(step, step.__name__)
        steps.finalize()
        return [steps]

    def compile_extra(self, func: Any) -> Any:
        """As the base class has it; a fifth of the time was garbage collection that found none."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collecting:
                gc.enable()


class Draft(JITCodeLibrary):
    """A helper's code as it is linked into kernels, where it is optimised: not here as well."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class Inlined(NoAlias):
    """For helpers: no machine code and no entry from Python, which nobody calls."""

    library = Draft

    def define_pipelines(self) -> list[Any]:
        """As the base class has it."""
        self.state.flags.no_compile = self.state.flags.no_cpython_wrapper = True
        return super().define_pipelines()

    def compile_extra(self, func: Any) -> Any:
        """As the base class has it."""
        result = super().compile_extra(func)
        # the entry only names the function to its callers: any builtin of its own will do
        entry = [].append
        self.state.targetctx.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry)


class Lightly(JITCodeLibrary):
    """Code optimised by LLVM's first level alone, once: its vectors are vectors already."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        options = {"opt": 1, "loop_vectorize": False, "slp_vectorize": False}
        made = self._codegen._module_pass_manager(**options)
        # a pair since LLVM's new pass manager, which Numba has had since 0.62; the passes before
        passes, *builder = made if isinstance(made, tuple) else (made,)
        passes.run(self._final_module, *builder)


class Written(NoAlias):
    """For kernels of `vector_code`."""

    library = Lightly


ENGINE = Path(__file__).parents[3]
KERNELS = ENGINE / "backends" / "cpu"
CONSTANTS = (
    ENGINE / "arithmetic" / "opencv4_tables.py",
    ENGINE / "arithmetic" / "opencv5.py",
    ENGINE / "sampling" / "layout.py",
    ENGINE / "sampling" / "rounding.py",
    ENGINE / "sampling" / "rules.py",
)
"""The modules outside `KERNELS` whose numbers kernels hold."""


def sources() -> list[Path]:
    """Every file that compiled code is made of; a test looks for one that is missing."""
    return [*sorted(KERNELS.rglob("*.py")), *CONSTANTS]


def _digest() -> int:
    """A number that changes with any source of the kernels.

    Numba's cache looks at the kernel's own file alone. Kernels that hold this number in a cell are
    compiled again when a helper's or a constant's file has changed, or when bounds are checked.
    """
    checked = config.BOUNDSCHECK  # pyright: ignore
    return crc32(b"".join(path.read_bytes() for path in sources()), int(bool(checked)))


DIGEST = _digest()
"""To be captured by every kernel, in a local variable of the function that makes it."""


def inline(function: Callable[..., Any]) -> Any:
    """A helper that disappears into its kernel, where its constant arguments fold."""
    # no references counted: see `kernel`
    options = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}
    return njit(function, pipeline_class=Inlined, **options)


class OneCompiles(FunctionCache):
    """Compiled code on disk, made by one process where several want it at once."""

    _lock: CacheLock | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code, or None where this process is to compile it."""
        found = self._readable(sig, target_context)
        if found is None:
            self._unlock()  # of a compilation that failed
            self._lock = CacheLock(Path(self._cache_path))
            if self._lock.take(repr(self._index_key(sig, target_context.codegen()))):
                found = self._readable(sig, target_context)
        if found is not None:
            self._unlock()
        return found

    def _readable(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # of a file that is no code: it is written again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code, and let the others have it; a full disk keeps none, and stops nothing."""
        if self._lock is not None:
            self._lock.take("index")  # which is read, added to and written
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_of_unkept(self._cache_path, error.strerror or str(error))
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


@cache
def _warn_of_unkept(folder: str, reason: str) -> None:
    text = f"warpkit: compiled kernels cannot be kept in {folder} ({reason}): "
    text += "every process compiles its own. NUMBA_CACHE_DIR names another folder"
    warnings.warn(text, RuntimeWarning, stacklevel=2)


class CacheFile(IndexDataCacheFile):
    """Compiled code on disk, sealed by a digest; what cannot be read counts as nothing.

    A file that was cut or overwritten would raise in every process, or worse, run.
    """

    def save(self, key: Any, data: Any) -> None:
        """As the base class has it, of `data` with its seal."""
        code = self._dump(data)
        super().save(key, (_seal(key, code), code))

    def load(self, key: Any) -> Any:
        """As the base class has it; None where the seal is not that of this key and code."""
        try:
            found: Any = super().load(key)
            seal, code = found
            return pickle.loads(code) if seal == _seal(key, code) else None
        except Exception:  # nothing there, or bytes that are no pickle
            return None

    def _load_index(self) -> dict[Any, Any]:
        try:
            return super()._load_index()
        # of another version of this package, whose classes the index names: Numba reads them before
        # it looks whether the source is the same
        except Exception:
            return {}


def _seal(key: Any, code: bytes) -> bytes:
    return blake2b(repr(key).encode() + code, digest_size=16).digest()


def kernel(
    function: Callable[..., Any], pipeline: Any = NoAlias, makes_arrays: bool = False
) -> Any:
    """A compiled function that releases the interpreter's lock, cached where that is possible.

    makes_arrays: it has memory of its own. References to arrays are counted in such kernels alone:
    the caller keeps what the others work on, and counting took a quarter of compiling.
    """
    options = {"nogil": True, "error_model": "numpy", "pipeline_class": pipeline}
    options["_nrt"] = makes_arrays
    try:
        compiled = njit(function, cache=True, **options)
    except RuntimeError:  # no directory to keep it in can be written to
        return njit(function, **options)
    kept = compiled._cache  # pyright: ignore
    kept.__class__, kept._cache_file.__class__ = OneCompiles, CacheFile
    return compiled
