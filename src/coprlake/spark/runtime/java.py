"""Finds the Java that Spark runs on and checks its version."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from coprlake.errors import UsageError

OLDEST: Final = 17
_ADVICE: Final = (
    "install one (Debian, Ubuntu: `apt install default-jre-headless`; Fedora: `dnf install java-21-openjdk-headless`; "
    "macOS: `brew install openjdk@21`) and set JAVA_HOME if it is not on the PATH; "
    "`--engine local` works without Java"
)


def java_executable() -> str:
    """The Java program that Spark will start: that of JAVA_HOME, otherwise the first on the PATH.

    Raises:
        UsageError: there is no Java, or it is too old; says what to install.
    """
    return _checked(os.environ.get("JAVA_HOME"), os.environ.get("PATH"))


@cache
def _checked(home: str | None, path: str | None) -> str:
    if home:
        program = str(Path(home) / "bin" / "java")
        if not os.access(program, os.X_OK):
            raise UsageError(f"JAVA_HOME is {home}, which has no bin/java; correct it, or {_ADVICE}")
    else:
        found = shutil.which("java", path=path)
        if found is None:
            raise UsageError(f"Spark needs Java {OLDEST} or newer, but none was found; {_ADVICE}")
        program = found
    version = java_version(program)
    if version < OLDEST:
        raise UsageError(f"Spark needs Java {OLDEST} or newer; {program} is Java {version}; {_ADVICE}")
    return program


def java_version(program: str) -> int:
    """The major version of a Java program: 8, 11, 17, ..."""
    try:
        told = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except OSError as error:
        raise UsageError(f"{program}: cannot be started ({error.strerror}); {_ADVICE}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found is None:
        raise UsageError(f"{program} -version says {told.strip()[:80]!r}, which is not a Java version; {_ADVICE}")
    return int(found[1])
