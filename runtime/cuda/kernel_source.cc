#include "runtime/cuda/kernel_source.h"

#include <fmt/core.h>

#include <utility>

#include "base/files.h"
#include "base/strings.h"
#include "ir/kernel/kernel_names.h"

namespace xccl::cuda {

CompileRequest KernelRequest(const std::string& name, const std::string& source, DataType type, ReduceOp op,
                             int32_t arch) {
  CompileRequest request;
  request.name = name;
  request.source = source;
  request.headers = DeviceHeaders();
  request.options = {"-default-device",  // constexpr functions carry no attribute
                     fmt::format("-DXCCL_TYPE={}", DeviceName(type)),
                     fmt::format("-DXCCL_OPERATOR={}", DeviceName(op))};
  request.arch = arch;
  return request;
}

uint64_t MadeFrom(const std::string& source) {
  std::string all = source;
  for (const SourceFile& header : DeviceHeaders())
    all += fmt::format("\n{} {}\n", header.name, header.text.size()) + header.text;
  return HashOf(all);
}

KernelImages ImagesOfSource(std::string name, std::string source, std::shared_ptr<KernelCache> cache,
                            std::vector<PlanCubin> cubins) {
  const uint64_t made_from = MadeFrom(source);
  return [name = std::move(name), source = std::move(source), cache = std::move(cache),
          cubins = std::move(cubins),
          made_from](DataType type, ReduceOp op, int32_t arch) -> StatusOr<std::string> {
    std::string passed_over;
    for (const PlanCubin& cubin : cubins) {
      if (cubin.arch != arch || cubin.type != type || cubin.op != op) continue;
      StatusOr<std::string> image = ReadFile(cubin.file);
      if (cubin.made_from == made_from && image.ok()) return image;
      passed_over = image.ok() ? cubin.file + ": made from other sources" : image.status().message();
    }
    const StatusOr<const Nvrtc*> nvrtc = LoadNvrtc();
    StatusOr<std::string> image = nvrtc.status();
    if (nvrtc.ok()) image = cache->Get(**nvrtc, KernelRequest(name, source, type, op, arch));
    if (image.ok() || passed_over.empty()) return image;
    return Annotate(image.status(), passed_over);
  };
}

KernelImages ImagesOfInterpreter(const Program& program, std::shared_ptr<KernelCache> cache) {
  return [protocol = program.protocol, groups = !program.groups.empty(), cache = std::move(cache)](
             DataType type, ReduceOp op, int32_t arch) -> StatusOr<std::string> {
    XCCL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, LoadNvrtc());
    CompileRequest request =
        KernelRequest("interpreter", "#include \"device/interpret.cu\"\n", type, op, arch);
    request.options.push_back(fmt::format("-DXCCL_PROTOCOL={}", DeviceName(protocol)));
    if (groups) request.options.emplace_back("-DXCCL_GROUPS=1");
    return cache->Get(*nvrtc, request);
  };
}

}  // namespace xccl::cuda
