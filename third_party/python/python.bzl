"""Python's headers, where the machine has them. Only the Python package needs them."""

def _impl(context):
    context.path(context.attr.packages)  # looked for again when packages change

    # Debian's interpreter, whatever else comes first in PATH: its packages have numpy and the headers.
    script = "import sysconfig; print(sysconfig.get_paths()['include']); print(sysconfig.get_config_var('EXT_SUFFIX'))"
    shown = context.execute(["/usr/bin/python3", "-c", script])
    lines = shown.stdout.strip().split("\n")
    found = (shown.return_code == 0 and len(lines) == 2 and context.path(lines[0] + "/Python.h").exists)
    context.file("defs.bzl", "HAVE_PYTHON = %s\n" % found)
    build = "package(default_visibility = [\"//visibility:public\"])\n"
    if found:
        context.symlink(lines[0], "include")

        # Symbols of the interpreter are found when it loads a module.
        build += "cc_library(name = \"python\", hdrs = glob([\"include/**/*.h\"]), includes = [\"include\"])\n"
    else:
        build += "cc_library(name = \"python\")\n"
    context.file("BUILD.bazel", build)

python_headers = repository_rule(
    implementation = _impl,
    attrs = {"packages": attr.label(allow_single_file = True, mandatory = True)},
    environ = ["PATH"],
    local = True,
)
