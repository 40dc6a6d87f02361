"""The one thing about the build that pyproject.toml cannot say: what users get is without the developers' tools."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DEVELOPERS = "xgpu.tools"


class BuildWithoutTools(build_py):
    """Copies all packages but the developers' tools into a wheel; an editable installation has those too."""

    def finalize_options(self):
        """Leave the tools out where a source distribution has none."""
        super().finalize_options()
        if not Path(self.package_dir[DEVELOPERS]).is_dir():
            self._leave_tools_out()

    def run(self):
        """Copy the packages."""
        if not self.editable_mode:
            self._leave_tools_out()
        super().run()

    def _leave_tools_out(self):
        self.packages = [name for name in self.packages if not f"{name}.".startswith(f"{DEVELOPERS}.")]


setup(cmdclass={"build_py": BuildWithoutTools})
