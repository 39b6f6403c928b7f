"""A fuzz target: NAME_fuzz, which libFuzzer drives (`bazel build --config=fuzz //tests/fuzz:NAME_fuzz`), and NAME_test,
which runs it on the files of corpus/NAME in the ordinary build. Targets may share a source, which else is NAME_fuzz.cc."""

def fuzz_target(name, deps, source = None):
    sources = [source or name + "_fuzz.cc", "fuzz.cc", "fuzz.h"]
    common = ["//base", "//tests:mutate_text"]
    corpus = native.glob(["corpus/" + name + "/*"])
    native.cc_binary(
        name = name + "_fuzz",
        testonly = True,
        srcs = sources,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = common + deps,
    )
    native.cc_test(
        name = name + "_test",
        srcs = sources + ["corpus_test.cc"],
        args = ["$(locations %s)" % file for file in corpus],
        data = corpus,
        deps = common + deps + ["@system//:gtest"],
    )
