"""An aspect that runs clang-tidy on the sources of the C++ targets it visits, tests left out; results are cached like any action."""

def _clang_tidy_impl(target, ctx):
    if CcInfo not in target or ctx.label.workspace_name != "" or not hasattr(ctx.rule.attr, "srcs"):
        return [OutputGroupInfo(lint = depset())]
    compilation = target[CcInfo].compilation_context
    reports = []
    for source in [f for s in ctx.rule.attr.srcs for f in s.files.to_list()]:
        if source.extension != "cc" or not source.is_source or source.basename.endswith("_test.cc"):
            continue
        report = ctx.actions.declare_file(ctx.label.name + "." + source.basename + ".lint")
        ctx.actions.run(
            executable = ctx.executable._runner,
            arguments = [ctx.file._config.path, source.path, report.path, ctx.bin_dir.path],
            inputs = depset([source, ctx.file._config], transitive = [compilation.headers]),
            outputs = [report],
            tools = [ctx.executable._runner],
            mnemonic = "ClangTidy",
            use_default_shell_env = True,
        )
        reports.append(report)
    return [OutputGroupInfo(lint = depset(reports))]

clang_tidy = aspect(
    implementation = _clang_tidy_impl,
    attrs = {
        "_config": attr.label(default = "//:.clang-tidy", allow_single_file = True),
        "_runner": attr.label(default = "//tools/clang_tidy:clang_tidy.sh", allow_single_file = True, executable = True, cfg = "host"),
    },
)
