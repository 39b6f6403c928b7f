"""A source file that a program of this repository writes. Unlike a genrule, it uses the target build of that program
and needs no second build for the host configuration."""

def _generated_impl(ctx):
    out = ctx.actions.declare_file(ctx.attr.out)
    ctx.actions.run_shell(
        outputs = [out],
        tools = [ctx.executable.tool],
        command = "%s %s > %s" % (ctx.executable.tool.path, " ".join(ctx.attr.arguments), out.path),
    )
    return [DefaultInfo(files = depset([out]))]

generated = rule(
    implementation = _generated_impl,
    attrs = {
        "tool": attr.label(executable = True, cfg = "target", mandatory = True),
        "arguments": attr.string_list(),
        "out": attr.string(mandatory = True),
    },
)
