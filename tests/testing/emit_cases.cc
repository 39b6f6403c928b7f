// emit_cases RANKS prints host code of all KernelCases(RANKS) and a list of them; emit_cases groups prints
// that of GroupCases().
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "codegen/emit.h"
#include "tests/testing/group_cases.h"
#include "tests/testing/kernel_cases.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool groups = std::string(argv[1]) == "groups";
  const int32_t ranks = groups ? 0 : std::atoi(argv[1]);
  const std::vector<xccl::testing::KernelCase> cases =
      groups ? xccl::testing::GroupCases() : xccl::testing::KernelCases(ranks);
  for (size_t i = 0; i < cases.size(); ++i) {
    xccl::EmitOptions options;
    options.target = xccl::EmitTarget::kHost;
    options.symbol = xccl::testing::KernelSymbol(ranks, i);
    options.title = cases[i].name;
    const xccl::StatusOr<std::string> text = xccl::Emit(cases[i].program, cases[i].collective, options);
    if (!text.ok()) {
      std::fprintf(stderr, "%s: %s\n", cases[i].name.c_str(), text.status().message().c_str());
      return 1;
    }
    std::printf("%s\n", text->c_str());
  }
  std::printf(
      "namespace xccl::device {\nextern const HostKernel* const kKernels[];\nextern const int "
      "kNumKernels;\n");
  std::printf("const int kNumKernels = %zu;\nconst HostKernel* const kKernels[] = {\n", cases.size());
  for (size_t i = 0; i < cases.size(); ++i)
    std::printf("    &%s,\n", xccl::testing::KernelSymbol(ranks, i).c_str());
  std::printf("};\n}  // namespace xccl::device\n");
  return 0;
}
