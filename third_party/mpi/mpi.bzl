"""An MPI library, where the machine has one. Only xccl-sweep-mpi needs it."""

def _words(context):
    """What the MPI compiler wrapper gives to the compiler; Open MPI's and MPICH's both take -show."""
    wrapper = context.which(context.os.environ.get("MPICC", "mpicc"))
    if not wrapper:
        return []
    shown = context.execute([wrapper, "-show"])
    return shown.stdout.strip().split(" ") if shown.return_code == 0 else []

def _impl(context):
    context.path(context.attr.packages)  # looked for again when packages change
    words = _words(context)
    folders = [word[2:] for word in words if word.startswith("-I")]
    found = [folder for folder in folders if context.path(folder + "/mpi.h").exists]
    context.file("defs.bzl", "HAVE_MPI = %s\n" % bool(found))
    build = "package(default_visibility = [\"//visibility:public\"])\n"
    if found:
        includes = []
        for number, folder in enumerate(folders):
            if context.path(folder).exists:
                context.symlink(folder, "include%d" % number)
                includes.append("include%d" % number)
        link = [word for word in words if word.startswith("-L") or word.startswith("-l") or word.startswith("-Wl,")]
        link += ["-Wl,-rpath," + word[2:] for word in words if word.startswith("-L")]
        # Neither library's C++ classes are wanted, which the MPI standard has removed.
        build += ("cc_library(name = \"mpi\", hdrs = glob([i + \"/**/*.h\" for i in %r]), includes = %r, " +
                  "linkopts = %r, defines = [\"OMPI_SKIP_MPICXX\", \"MPICH_SKIP_MPICXX\"])\n") % (includes, includes, link)
    else:
        build += "cc_library(name = \"mpi\")\n"
    context.file("BUILD.bazel", build)

mpi_library = repository_rule(
    implementation = _impl,
    attrs = {"packages": attr.label(allow_single_file = True, mandatory = True)},
    environ = ["MPICC", "PATH"],
    local = True,
)
