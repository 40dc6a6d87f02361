"""Checks the programs of a package before it is written, and says what was proved and what was not."""

from collections.abc import Iterator, Sequence

from xgpu.driver.kernel import ProgramKernel
from xgpu.errors import InvalidInput
from xgpu.interface.api import Compiled
from xgpu.packaging.checks.proofs import Proof, prove, unknown
from xgpu.packaging.checks.running import MOST_TRIPS, run_checked
from xgpu.packaging.program import flow_of
from xgpu.records import dataclass

_PROPERTIES = {
    "bounds": "accesses are in bounds",
    "written": "every element of each output is written once",
    "races": "threads do not race",
    "unwritten": "shared memory is written before it is read",
}


@dataclass(frozen=True)
class Checked:
    """The outcomes for the kernels of a program for one target: the ``proofs``, from maps.

    ``has_run`` says whether the program ran on the host, on random arguments, with every access checked, and without a
    fault. That is done where something is not proved. ``is_cut``: loops ran for their first iterations alone.
    """

    target: str
    proofs: tuple[Proof, ...]
    has_run: bool
    is_cut: bool = False

    def __str__(self) -> str:
        return "\n".join(line for proof in self.proofs for line in self._lines(proof))

    def _lines(self, proof: Proof) -> Iterator[str]:
        proved = [text for name, text in _PROPERTIES.items() if not getattr(proof, name)]
        yield f"  {proof.kernel} ({self.target}): proved: {'; '.join(proved) or 'nothing'}"
        by_reason: dict[str, list[str]] = {}
        for name, text in _PROPERTIES.items():
            for reason in getattr(proof, name):
                by_reason.setdefault(reason, []).append(text)
        for reason, texts in by_reason.items():
            yield f"    not proved: {'; '.join(texts)}: {reason}"
        if not proof.is_complete:
            loops = f", {MOST_TRIPS} iterations of longer loops" if self.is_cut else ""
            yield f"    ran on random arguments with every access checked{loops}: no fault"


def check_program(target: str, program: Compiled) -> Checked:
    """Prove what can be proved of a program's kernels, and run it, sanitized, if anything is left.

    Raises `KernelFault` if that finds a fault.
    """
    proofs = tuple(_proof(kernel) for kernel in program.kernels)
    has_run = not all(proof.is_complete for proof in proofs)
    is_cut = has_run and run_checked(flow_of(program), program.random_inputs())
    return Checked(target, proofs, has_run, is_cut)


def _proof(kernel: ProgramKernel) -> Proof:
    if "tiles" in kernel.modules:
        return unknown(kernel.name, "its blocks work on tiles, and maps do not say when copies and products are done")
    try:
        emitted = kernel.module("emitted")
    except InvalidInput:
        return unknown(kernel.name, "it was given at a level after 'emitted'")
    return prove(kernel.name, emitted, kernel.aliases)


def described(checks: Sequence[Checked]) -> list[dict[str, object]]:
    """Return checks as a manifest has them."""
    return [
        {
            "target": each.target,
            "kernel": proof.kernel,
            "not_proved": {name: list(getattr(proof, name)) for name in _PROPERTIES},
            "ran_with_checks": each.has_run,
            "of_longer_loops": MOST_TRIPS if each.is_cut else None,
        }
        for each in checks
        for proof in each.proofs
    ]
