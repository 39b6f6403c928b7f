// Chooses the kernel that runs a program: its own, or the interpreter kernel, which reads the program from a
// table. The two order a rank's instructions in different blocks, so ranks must agree before anything is laid
// out.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "runtime/cuda/device_program.h"
#include "runtime/cuda/device_program_state.h"
#include "runtime/kernel_table.h"

namespace xccl::cuda {
namespace {

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Status DeviceProgram::ChooseKernel(const DeviceCall& first) {
  XCCL_ASSIGN_OR_RETURN(form_, MakeKernelForm(program_, collective_));
  std::string reason = options_.no_kernel;
  bool mine = images_ == nullptr;
  if (!mine) {
    const int32_t arch = devices_.begin()->second->gpu->properties().arch;
    Status made = images_(first.type, first.op, arch).status();
    if (!made.ok() && !options_.interpreter) return made;
    mine = !made.ok();
    reason = FirstLine(made.message());
  } else if (!options_.interpreter) {
    return InvalidInput(fmt::format("{}: {}; hint: xccl-synth emit BOOK --to cuda", name_, reason));
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all, TellAll(mine ? "interpreter" : "kernel"));
  for (const std::string& other : all) interpreted_ = interpreted_ || other == "interpreter";
  if (!interpreted_) return OkStatus();
  if (!mine) reason = "another process cannot compile its kernel";
  notice_ = fmt::format("{}: runs on the interpreter kernel: {}", name_, reason);
  return Interpret();
}

Status DeviceProgram::Interpret() {
  XCCL_ASSIGN_OR_RETURN(form_, MakeKernelForm(program_, collective_, /*merge=*/false));
  XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> table, KernelTable(program_, form_));
  const size_t bytes = table.size() * sizeof(int32_t);
  for (auto& [id, device] : devices_) {
    XCCL_ASSIGN_OR_RETURN(device->table, DeviceMemory::Create(device->gpu, bytes, Sharing::kLegacy, {},
                                                              name_ + ": the interpreter kernel's table"));
    XCCL_RETURN_IF_ERROR(ConstantTables::Write(device->gpu, device->table.address(), table.data(), bytes));
  }
  return OkStatus();
}

}  // namespace xccl::cuda
