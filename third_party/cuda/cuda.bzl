"""A CUDA toolkit, where the machine has one: headers for tests, and nvcc. Nothing of the product needs it."""

def _find(context):
    home = context.os.environ.get("CUDA_HOME")
    nvcc = context.which("nvcc")
    roots = [home] if home else []
    if nvcc:
        roots.append(str(context.path(nvcc).realpath.dirname.dirname))
    roots.append("/usr/local/cuda")
    for root in roots:
        if context.path(root + "/include/cuda.h").exists and context.path(root + "/include/nvrtc.h").exists:
            return root
    return None

def _impl(context):
    context.path(context.attr.packages)  # looked for again when packages change
    root = _find(context)
    has_nvcc = bool(root) and context.path(root + "/bin/nvcc").exists
    context.file("defs.bzl", "HAVE_CUDA = %s\nHAVE_NVCC = %s\nCUDA_ROOT = %s\n" %
                             (bool(root), has_nvcc, repr(root)))
    build = "package(default_visibility = [\"//visibility:public\"])\n"
    if root:
        for header in ["cuda.h", "nvrtc.h"]:
            context.symlink(root + "/include/" + header, "include/" + header)
        build += ("cc_library(name = \"headers\", hdrs = [\"include/cuda.h\", \"include/nvrtc.h\"], " +
                  "includes = [\"include\"], defines = [\"XCCL_HAS_CUDA_HEADERS\"])\n")
    else:
        build += "cc_library(name = \"headers\")\n"
    context.file("BUILD.bazel", build)

cuda_toolkit = repository_rule(
    implementation = _impl,
    attrs = {"packages": attr.label(allow_single_file = True, mandatory = True)},
    environ = ["CUDA_HOME", "PATH"],
    local = True,
)
