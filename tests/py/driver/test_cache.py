"""Kernels kept on disk: found again, by everything they are made from, and made anew if their file is damaged."""

import fcntl
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

import xgpu
from xgpu.cli.main import main
from xgpu.driver import cache
from xgpu.driver.cache import Cache, CachedKernel, kernel_cache, key_of
from xgpu.errors import InvalidInput
from xgpu.target.nvptx import cubin

needs_ptxas = pytest.mark.skipif(cubin.find_ptxas() is None, reason="ptxas is not installed")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XGPU_CACHE")
    monkeypatch.setenv("XGPU_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def compiled(**options: object) -> xgpu.Compiled:
    return xgpu.compile(lambda x: x * 2 + 1, "f32[1000]", **options)


def ran_llvm(program: xgpu.Compiled) -> bool:
    assert ".entry lambda_fusion_0" in program.kernels[0].ptx
    return "LLVM to PTX" in dict(program.timings)


def forget() -> None:
    """Forget what this process has in memory, as a new one would."""
    cache._cache_in.cache_clear()


def test_found_again_without_running_a_pass(folder: Path) -> None:
    first = compiled()
    assert ran_llvm(first)
    assert len(list(folder.iterdir())) == 1
    forget()
    second = compiled()
    assert not ran_llvm(second)
    assert [name for name, _ in second.timings][-3:] == ["plan", "schedule", "emit"]
    assert second.kernels[0].ptx == first.kernels[0].ptx
    assert second.ir("lowered") == first.ir("lowered")


def test_equal_kernels_of_one_program_are_compiled_once(folder: Path) -> None:
    program = xgpu.compile(lambda x, y: (x * 2 + 1, (y * 2 + 1).sum(), y.T), "f32[1000]", "f32[1000,64]")
    other = xgpu.compile(lambda y: y.T, "f32[1000,64]")
    assert all(kernel.ptx.count(f".entry {kernel.name}(") == 1 for kernel in (*program.kernels, *other.kernels))
    transposes = [k for k in (*program.kernels, *other.kernels) if k.emitter == "transpose"]
    assert len(transposes) == 2
    assert transposes[0].name != transposes[1].name
    kinds = len({kernel.ptx.replace(kernel.name, "") for kernel in (*program.kernels, *other.kernels)})
    assert len(list(folder.iterdir())) == kinds < len(program.kernels) + len(other.kernels)


def test_everything_that_matters_is_in_the_key(folder: Path) -> None:
    compiled().ir("ptx")
    compiled(target="sm_80").ir("ptx")
    compiled(options=xgpu.Options(opt_level=1)).ir("ptx")
    xgpu.compile(lambda x: x * 2 + 3, "f32[1000]").ir("ptx")
    xgpu.compile(lambda x: x * 2 + 1, "f32[1001]").ir("ptx")
    assert len(list(folder.iterdir())) == 5


_INFINITE = '{"ptx": "1", "shared_bytes": Infinity, "checksum": ""}'


@pytest.mark.parametrize("damage", ["", "{}", "[1]", "\0\0", "[" * 100_000, _INFINITE, "cut", "other text"])
def test_a_damaged_file_is_made_anew(folder: Path, damage: str) -> None:
    expected = compiled().kernels[0].ptx
    (file,) = folder.iterdir()
    whole = file.read_text()
    changed = json.dumps(json.loads(whole) | {"ptx": "// nothing"}) if damage == "other text" else damage
    file.write_text(whole[:-20] if damage == "cut" else changed)
    forget()
    again = compiled()
    assert ran_llvm(again)
    assert again.kernels[0].ptx == expected
    assert file.read_text() == whole


@pytest.mark.parametrize("thing", ["directory", "pipe", "link to nothing", "link to itself"])
def test_what_is_no_file_is_no_kernel(folder: Path, thing: str) -> None:
    compiled().ir("ptx")
    (file,) = folder.iterdir()
    file.unlink()
    if thing == "directory":
        file.mkdir()
    elif thing == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("nowhere" if thing == "link to nothing" else file)
    forget()
    assert ran_llvm(compiled())
    assert file.is_file() or thing == "directory"


@needs_ptxas
def test_machine_code_is_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = compiled().kernels[0].machine_code
    assert code is not None and code.startswith(b"\x7fELF")
    with monkeypatch.context() as patched:
        patched.setattr(cubin, "assemble", lambda *given: pytest.fail("assembled again"))
        assert compiled().kernels[0].machine_code == code
    monkeypatch.setattr(cubin, "ptxas_identity", lambda: "another one")
    monkeypatch.setattr(cubin, "assemble", lambda *given: SimpleNamespace(cubin=b"of another"))
    assert compiled().kernels[0].machine_code == b"of another"


@needs_ptxas
def test_machine_code_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_compiler", lambda: pytest.fail("a key was made"))
    code = compiled().kernels[0].machine_code
    assert code is not None and code.startswith(b"\x7fELF")


@needs_ptxas
@pytest.mark.parametrize("code", ["", "AAAA AAAA", "AAA", "\n", None, 3])
def test_damaged_machine_code_is_made_anew(folder: Path, code: object) -> None:
    kernel = compiled().kernels[0]
    expected = kernel.machine_code
    key = key_of(cubin.ptxas_identity() or "", kernel.ptx, kernel.device.name)
    (path,) = folder.glob(f"{key}.*.json")
    fields = json.loads(path.read_text()) | {"code": code}
    del fields["checksum"]
    path.write_text(json.dumps({**fields, "checksum": cache._checksum(key, fields)}))
    forget()
    assert compiled().kernels[0].machine_code == expected


def test_a_file_under_the_name_of_another_kernel_is_not_that_kernel(folder: Path) -> None:
    expected = compiled().kernels[0].ptx
    (file,) = folder.iterdir()
    xgpu.compile(lambda x: x * 3, "f32[1000]").ir("ptx")
    (other,) = set(folder.iterdir()) - {file}
    file.write_bytes(other.read_bytes())
    forget()
    assert compiled().kernels[0].ptx == expected


def test_a_file_that_others_could_have_written_is_not_believed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled().ir("ptx")
    (file,) = folder.iterdir()
    assert not file.stat().st_mode & 0o022
    file.chmod(0o664)
    forget()
    assert ran_llvm(compiled())
    forget()
    assert not ran_llvm(compiled())
    # Another user finds nothing, and keeps a kernel of their own beside it. Root's is everybody's.
    monkeypatch.setattr(cache, "_ROOT", -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    forget()
    assert kernel_cache().get(file.name.partition(".")[0]) is None
    monkeypatch.setattr(cache, "_ROOT", file.stat().st_uid)
    assert kernel_cache().get(file.name.partition(".")[0]) is not None
    assert kernel_cache().entries() == []


def test_a_folder_that_is_read_only_has_kernels_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    compiled().ir("ptx")
    monkeypatch.setattr(os, "utime", refuse)
    forget()
    assert not ran_llvm(compiled())


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XGPU_CACHE")
    monkeypatch.delenv("XGPU_CACHE_DIR", raising=False)
    (tmp_path / "xgpu").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert ran_llvm(compiled())
    assert not ran_llvm(compiled())


@pytest.mark.parametrize("within", ["", "/kernels", "/more/kernels"])
def test_a_file_in_the_place_of_a_folder_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], within: str
) -> None:
    monkeypatch.delenv("XGPU_CACHE")
    (tmp_path / "file").write_text("")
    given = f"{tmp_path / 'file'}{within}"
    monkeypatch.setenv("XGPU_CACHE_DIR", given)
    message = f"XGPU_CACHE_DIR={given}: expected a folder, but {tmp_path / 'file'} is a file"
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)}$"):
        compiled().ir("ptx")
    assert main(["cache"]) == 1
    assert capsys.readouterr().err == f"xgpu: error: {message}\n"
    monkeypatch.setenv("XGPU_CACHE", "off")
    assert kernel_cache().folder is None


def test_the_least_recently_used_are_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 2500)
    kernels = Cache(folder, CachedKernel)
    folder.mkdir()
    # What is not the cache's stays, and what a process that ended was writing goes.
    others = [folder / name for name in ("package.json", "0.json", f"{'0' * 64}.txt", f".{'0' * 64}.tmp")]
    for other in others:
        other.write_text("x" * 5000)
    unfinished = folder / f".{'0' * 64}.{os.geteuid()}.json.0123.tmp"
    unfinished.write_text("x")
    os.utime(unfinished, (0, 0))
    (folder / f"{'0' * 64}.{os.geteuid()}.json").mkdir()
    others.append(folder / f"{'0' * 64}.{os.geteuid()}.json")
    for number in range(4):
        kernels.put(f"{number}" * 64, CachedKernel("x" * 900, number))
        for path in folder.glob(f"{number}{number}*.json"):
            if path.is_file():
                os.utime(path, (number, number))
    assert [path.name[0] for path, _ in kernels.entries()] == ["2", "3"]
    assert sorted(folder.iterdir()) == sorted([*others, *(path for path, _ in kernels.entries())])
    assert kernels.clear() == 2
    assert sorted(folder.iterdir()) == sorted(others)


def test_the_folder_is_not_looked_through_for_each_entry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may have many thousand entries, and a program many kernels."""
    looked = 0
    entries = Cache.entries

    def counting(kept: Cache[CachedKernel]) -> list[tuple[Path, int]]:
        nonlocal looked
        looked += 1
        return entries(kept)

    monkeypatch.setattr(Cache, "entries", counting)
    monkeypatch.setattr(cache, "MOST_BYTES", 64_000)
    kernels, sizes = Cache(folder, CachedKernel), []
    for number in range(200):
        kernels.put(f"{number:064}", CachedKernel("x" * 900, number))
        sizes.append(sum(size for _, size in entries(kernels)))
    assert 1 < looked < 100
    assert max(sizes) <= 64_000 + sizes[0]
    assert sizes[-1] > 50_000


def test_threads_and_processes_may_share_a_folder(folder: Path) -> None:
    code = "import xgpu; print(len(xgpu.compile(lambda x: x * 2 + 1, 'f32[1000]').kernels[0].ptx))"
    with ThreadPoolExecutor(3) as pool:
        done = list(
            pool.map(
                lambda _: subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True),
                range(3),
            )
        )
    assert len({result.stdout for result in done}) == 1
    assert [path.suffix for path in folder.iterdir()] == [".json"]


def test_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled().ir("ptx")
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.startswith(f"{folder}: 1 entries, ")
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"{folder}: 1 entries removed\n"
    assert kernel_cache().entries() == []


@pytest.mark.parametrize("variable", ["XGPU_CACHE", "XGPU_CACHE_DIR"])
@pytest.mark.parametrize("word", ["off", "0", "No", "FALSE"])
def test_words_that_turn_it_off(monkeypatch: pytest.MonkeyPatch, variable: str, word: str) -> None:
    monkeypatch.delenv("XGPU_CACHE")
    monkeypatch.setenv(variable, word)
    assert kernel_cache().folder is None


@pytest.mark.parametrize("word", ["", "on", "1", "Yes", "TRUE"])
def test_words_that_leave_it_on(folder: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("XGPU_CACHE", word)
    assert kernel_cache().folder == folder


def test_other_words_are_errors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XGPU_CACHE", "maybe")
    with pytest.raises(InvalidInput, match="XGPU_CACHE=maybe: expected on or off; XGPU_CACHE_DIR names a folder"):
        compiled().ir("ptx")


def test_home_in_the_folder_s_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XGPU_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XGPU_CACHE_DIR", "~/kernels")
    assert kernel_cache().folder == tmp_path / "kernels"
    monkeypatch.delenv("XGPU_CACHE_DIR")
    for home in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert kernel_cache().folder == tmp_path / ".cache" / "xgpu"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert kernel_cache().folder == tmp_path / "caches" / "xgpu"


def test_one_process_at_a_time(tmp_path: Path) -> None:
    alone = Cache(tmp_path / "new" / "kernels", CachedKernel).alone
    with (
        alone(),
        (tmp_path / "new" / "kernels" / f".{os.geteuid()}.lock").open() as lock,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with alone():
        pass


def test_where_nothing_can_be_locked_all_are_let_in(tmp_path: Path) -> None:
    (tmp_path / f".{os.geteuid()}.lock").symlink_to(tmp_path / "elsewhere")
    for folder in (None, tmp_path, Path("/proc/none")):
        with Cache(folder, CachedKernel).alone(), Cache(folder, CachedKernel).alone():
            pass
    assert not (tmp_path / "elsewhere").exists()


def test_off(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XGPU_CACHE", "off")
    assert kernel_cache().folder is None
    assert all(ran_llvm(compiled()) for _ in range(2))
    assert main(["cache"]) == 0
    assert capsys.readouterr().out == "nothing is kept: XGPU_CACHE or XGPU_CACHE_DIR turns it off\n"


_LOWERED = """
import sys
import jax, jax.numpy as jnp, xgpu
for name in sys.argv[1:]:
    xgpu.jit(getattr(jnp, name)).trace(jnp.ones(40)).lower(lowering_platforms=("cuda",))
@xgpu.jit
def function(x):
    return jnp.sort(jnp.sin(x) @ x.T).sum(1), jnp.tan(x)
print(jax.jit(function).trace(jnp.ones((300, 400))).lower(lowering_platforms=("cuda",)).as_text())
"""


def test_programs_are_the_same_text_in_every_process() -> None:
    """JAX keeps executables by the text of programs, PTX and all, whatever was compiled before."""
    texts = [
        subprocess.run([sys.executable, "-c", _LOWERED, *names], capture_output=True, text=True, check=True).stdout
        for names in ((), ("cos", "tan"))
    ]
    assert texts[0] == texts[1]
    assert texts[0].count("__gpu$xla.gpu.ptx") == 2


def test_keys_are_made_from_sources_behind_symbolic_links_too(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "linked").symlink_to(tmp_path / "elsewhere")
    files = {Path("__init__.py"), Path("linked/part.py"), Path("linked/inner/pass.py")}
    for file in files:
        (tmp_path / "package" / file).touch()
    found = cache._sources([tmp_path / "package" / "__init__.py"])
    assert {path.relative_to(tmp_path / "package") for path in found} == files


def test_keys_are_made_from_every_module_of_the_compiler() -> None:
    sources = {
        path.resolve() for path in cache._sources(Path(each.__file__) for each in (xgpu, xgpu.dialects, xgpu.passes))
    }
    parts = [name for name in sys.modules if name.startswith("xgpu.") and not name.startswith("xgpu.tools")]
    assert len(parts) > 200
    assert {Path(sys.modules[name].__file__).resolve() for name in parts} - sources == set()
