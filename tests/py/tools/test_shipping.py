"""The programs that try packages on a GPU find what is wrong; here they run on packages' host libraries."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.py.packaging.packages import tool
from xgpu.tools.shipping.__main__ import main, run
from xgpu.tools.shipping.build import LANGUAGES

CASES = {"rows_1", "types_0", "rows_0"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("cc", "c++", "cargo"):
        tool(name)
    to = tmp_path_factory.mktemp("shipping")
    assert main(["-o", str(to), "--host", "rows", "types"]) == 0
    return to


def test_results_are_right(folder: Path) -> None:
    lines = run(folder).splitlines()
    assert lines == [f"{case}, {language}: right" for case in sorted(CASES) for language in LANGUAGES]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", sorted(CASES))
def test_another_result_is_wrong(folder: Path, tmp_path: Path, case: str, language: str) -> None:
    for path in (folder / "data" / case).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    *_, last = sorted(tmp_path.glob("result*"))
    wanted = np.fromfile(last)
    wanted[-1] += 1
    wanted.tofile(last)
    done = subprocess.run(
        [folder / "bin" / f"{case}_{language}", tmp_path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "WRONG\n")
    assert f"1 of {wanted.size} elements are wrong" in done.stderr
