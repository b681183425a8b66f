"""The built file's start: the program's modules out of bytecode for the Python that runs it, others from their source.

build.py puts this text into the file, with the bytecode after it; the file's first lines and its __main__.py execute
it with `file` open at its end. Every Python since 2.7 has to be able to parse it. It is compiled at each start: short.
"""

# ruff: noqa: E402, F821, S102, S302
import sys


class Bytecode:
    """Finds the modules that build.py has compiled for this Python: a group at a time, code by module.

    `archive` is the path of the file; `source` the same, or a descriptor's path once base/program.py has pinned it.
    """

    def __init__(self, archive, carried, groups):
        self.archive = self.source = archive
        self.carried = carried  # the versions, as a text
        self._groups, self._modules = groups, {}

    def _read(self, at, size):
        with open(self.source, "rb") as file:
            file.seek(at)
            self._modules.update(loads(decompress(file.read(size))))

    def find_spec(self, name, _path=None, _target=None):
        if not name.startswith("termsprawlctl"):
            return None
        while name not in self._modules and self._groups:
            self._read(*self._groups.pop(0))
        if name not in self._modules:
            return None
        path = self.archive + "/" + self._modules[name][0]
        spec = ModuleSpec(name, self, origin=path, is_package=path.endswith("/__init__.py"))
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(path[: -len("/__init__.py")])
        return spec

    def create_module(self, _spec):
        return None

    def exec_module(self, module):
        code = loads(self._modules[module.__name__][1])
        _fix_co_filename(code, module.__file__)
        exec(code, module.__dict__)

    def get_data(self, name):
        return zipimporter(self.source).get_data(name)

    def get_source(self, name):
        return zipimporter(self.source).get_source(name)


# Version to (magic number of its bytecode, sizes of its groups), in the order in which they follow.
VERSIONS = ()

# Not isolated, the program starts over before it loads anything that PYTHONPATH could replace.
if sys.version_info >= (3, 9) and sys.flags.isolated and sys.implementation.name == "cpython":
    import os
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import MAGIC_NUMBER
    from _imp import _fix_co_filename
    from marshal import loads
    from zipimport import zipimporter

    archive = os.path.abspath(sys.argv[0])
    at, groups = file.tell(), []
    for _version, magic, sizes in VERSIONS:
        for size in sizes:
            if magic == MAGIC_NUMBER[0] + 256 * MAGIC_NUMBER[1]:
                groups.append((at, size))
            at += size
    try:
        from zlib import decompress

        sys.meta_path.insert(0, Bytecode(archive, " ".join(row[0] for row in VERSIONS), groups))
    except ImportError:
        pass  # the program says what it needs
    # At the end: Python's own modules are looked for first, and the archive's directory is read for none of them.
    if sys.path[:1] == [sys.argv[0]]:
        del sys.path[0]
    sys.path.append(archive)
elif sys.path[:1] != [sys.argv[0]]:
    sys.path.insert(0, sys.argv[0])
file.close()

from termsprawlctl.__main__ import main

main()
