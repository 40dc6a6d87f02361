"""The one thing about the build that pyproject.toml cannot say: wheels are without the developers' tools."""

from setuptools import setup
from setuptools.command.build_py import build_py

DEVELOPERS = "xgpu.tools"


class BuildWithoutTools(build_py):
    """Copies all packages but the developers' tools into a wheel; an editable installation has those too."""

    def run(self):
        """Copy the packages."""
        if not self.editable_mode:
            self.packages = [name for name in self.packages if not f"{name}.".startswith(f"{DEVELOPERS}.")]
        super().run()


setup(cmdclass={"build_py": BuildWithoutTools})
