// Checks of the C API on this machine's GPUs, for tools/gpu_check: cuda_api CHECK BOOKS, or --list.
#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/standard_streams.h"
#include "runtime/c_api/testing/gpu_checks.h"
#include "runtime/cuda/driver.h"

namespace xccl {
namespace {

int Main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const std::string_view name : c_api::GpuCheckNames()) fmt::print("{}\n", name);
    return 0;
  }
  if (argc != 3) {
    PrintError("usage: cuda_api CHECK BOOKS | --list\n");
    return 2;
  }
  const StatusOr<const cuda::Driver*> driver = cuda::LoadDriver();
  if (!driver.ok()) {
    fmt::print("skipped: {}\n", driver.status().message());
    return 0;
  }
  const Status status = c_api::RunGpuCheck(argv[1], **driver, {.books = argv[2]});
  if (status.ok()) return 0;
  PrintError(fmt::format("cuda_api: {}\n", status.message()));
  return 1;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(argc, argv); }
