"""Programs and modules with the libraries that they need, made to run with any glibc from 2.31 on. x86-64 Linux alone.

The libraries go beside them under names of their own, so that no library of the same name gets in the way. What a newer glibc gave
their symbols, an older one has under another version, or tools/glibc.c has it: references to versions above 2.31 lose the version.
"""

import pathlib
import re
import shutil
import struct
import subprocess

OLDEST = (2, 31)
# Part of every system that has this glibc, or of the driver of a device.
SYSTEM = re.compile(r"(linux-vdso|ld-linux-x86-64|libc|libm|libpthread|libdl|librt)\.so")
SHIM = "libxccl-glibc.so"


class Failed(Exception):
    """A tool that failed, with what it said."""


def ran(*command):
    try:
        ended = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    except FileNotFoundError:
        raise Failed(f"no {command[0]}; hint: apt install {'patchelf' if command[0] == 'patchelf' else 'gcc binutils'}") from None
    if ended.returncode != 0:
        raise Failed(f"{command[0]} ended with {ended.returncode}: {ended.stderr.strip() or ended.stdout.strip()}")
    return ended.stdout


def libraries_of(files):
    """The libraries that files load, by the name that they load them by, but for the system's."""
    found = {}
    for file in files:
        for line in ran("ldd", file).splitlines():
            name, _, rest = line.strip().partition(" => ")
            if SYSTEM.match(name.split("/")[-1]) or not rest:
                continue
            if not rest.startswith("/"):
                raise Failed(f"{file}: {name} is not found")
            found[name] = pathlib.Path(rest.split(" (")[0]).resolve()
    return found


def licence_of(library):
    """The package that has a library, and its licence."""
    for path in (library, pathlib.Path("/", *library.parts[2:])):  # in /usr, or in / as packages from before the merge say
        ended = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True)
        if ended.returncode == 0:
            package = ended.stdout.split(":")[0]
            return package, pathlib.Path(f"/usr/share/doc/{package}/copyright").read_bytes()
    raise Failed(f"{library}: no package has it, so its licence is not known")


def own_name(name):
    return name.replace(".so", "-xccl.so", 1)


def make(folder, files, shim_source):
    """Copies files, by their path in the folder, and puts their libraries into its folder lib. The licences by package."""
    libraries = libraries_of(files.values())
    copies = {folder / name: source for name, source in files.items()}
    copies.update({folder / "lib" / own_name(name): source for name, source in libraries.items()})
    (folder / "lib").mkdir(parents=True)
    for copy, source in copies.items():
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, copy)
        copy.chmod(0o755)
        ran("strip", "--strip-unneeded", copy)
        renamed = [word for name in libraries for word in ("--replace-needed", name, own_name(name))]
        in_lib = copy.parent == folder / "lib"
        where = "$ORIGIN" if in_lib else f"$ORIGIN/{'../' * (len(copy.relative_to(folder).parts) - 1)}lib"
        changes = [["--set-soname", copy.name]] if in_lib else []
        changes += [renamed, ["--add-needed", SHIM], ["--force-rpath", "--set-rpath", where]]
        for change in changes:  # one a call: patchelf 0.14 mixes up the texts of several
            ran("patchelf", *change, copy)
    shim = folder / "lib" / SHIM
    old_parts = ["-Wl,--no-as-needed", "-l:libpthread.so.0", "-l:libdl.so.2"]  # parts of libc from 2.34 on
    ran("gcc", "-O2", "-shared", "-fPIC", "-s", f"-Wl,-soname,{SHIM}", "-o", shim, shim_source, *old_parts)
    for file in [*copies, shim]:
        file.write_bytes(without_new_versions(file.read_bytes()))
    return dict(licence_of(library) for library in libraries.values())


def is_new(version):
    numbers = re.fullmatch(rb"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) > OLDEST


def sections_of(data):
    """The sections of a file of ELF by their type: where they begin, the number of another one, entries, bytes."""
    table, (size, count) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<4xI16xQQII", data, table + number * size) for number in range(count)]
    found = {kind: (begin, link, entries, length) for kind, begin, length, link, entries in headers}
    return found, [header[1] for header in headers]


def needed_versions(data, sections, begins):
    """The versions of libraries' symbols that a file needs: where each stands, and its name."""
    need, texts, libraries, _ = sections[0x6FFFFFFE]  # .gnu.version_r
    for _ in range(libraries):
        _, versions, _, first, following = struct.unpack_from("<HHIII", data, need)
        at = need + first
        for _ in range(versions):
            name, after = struct.unpack_from("<8xII", data, at)
            start = begins[texts] + name
            yield at, bytes(data[start : data.index(0, start)])
            at += after
        need += following


def without_new_versions(data):
    """A file of ELF whose references to versions above the oldest are to any version."""
    data = bytearray(data)
    sections, begins = sections_of(data)
    if not {0x6FFFFFFE, 0x6FFFFFFF} <= sections.keys():
        return bytes(data)
    versions = list(needed_versions(data, sections, begins))
    base = next((at for at, name in versions if name == b"GLIBC_2.2.5"), None)  # all parts of the C library have it
    new = {}
    for at, name in versions:
        if is_new(name):
            new[struct.unpack_from("<6xH", data, at)[0]] = at
    if new and base is None:
        raise Failed("a file needs new versions of the C library's symbols alone")
    for at in new.values():  # the entry stays, for the first version, with its hash and its name
        data[at : at + 4], data[at + 8 : at + 12] = data[base : base + 4], data[base + 8 : base + 12]
    begin, _, _, length = sections[0x6FFFFFFF]  # .gnu.version: a number a symbol
    for at in range(begin, begin + length, 2):
        if struct.unpack_from("<H", data, at)[0] & 0x7FFF in new:
            struct.pack_into("<H", data, at, 1)  # any version
    return bytes(data)
