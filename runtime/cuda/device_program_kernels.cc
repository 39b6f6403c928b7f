// Chooses the kernel that runs a program: its own, or the interpreter kernel, which reads the program from a
// table. The two order a rank's instructions in different blocks, so ranks must agree before anything is laid
// out. Loads kernels.
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

StatusOr<Kernel> DeviceProgram::LoadKernel(const DeviceState& device, const DeviceCall& call) const {
  const KernelImages& images = interpreted_ ? options_.interpreter : images_;
  XCCL_ASSIGN_OR_RETURN(const std::string image, images(call.type, call.op, device.gpu->properties().arch));
  XCCL_ASSIGN_OR_RETURN(Kernel kernel, Kernel::Load(device.gpu, image, name_));
  const device::KernelInfo& info = kernel.info();
  const bool same_program = interpreted_ ? info.ranks == 0
                                         : info.ranks == program_.ranks.size() &&
                                               info.blocks_per_rank == form_.blocks_per_rank &&
                                               info.slots == program_.slots;
  if (!same_program || static_cast<int32_t>(info.protocol) != static_cast<int32_t>(program_.protocol) ||
      static_cast<int32_t>(info.type) != static_cast<int32_t>(call.type) ||
      static_cast<int32_t>(info.op) != static_cast<int32_t>(call.op) ||
      (threads_ != 0 && info.threads != threads_))
    return InvalidInput(
        fmt::format("{}: the kernel is for {} ranks of {} blocks and {} slots; expected {} ranks of {} "
                    "blocks and {} slots: "
                    "compile it from this plan",
                    name_, info.ranks, info.blocks_per_rank, info.slots, program_.ranks.size(),
                    form_.blocks_per_rank, program_.slots));
  return kernel;
}

// On all devices: a rank that launches before the others leaves nothing to be loaded beside its kernel.
Status DeviceProgram::LoadKernels(const DeviceCall& call) {
  const std::lock_guard loading(load_mutex_);
  const std::pair key{call.type, call.op};
  for (const auto& [id, device] : devices_) {
    const Kernel* kernel = nullptr;
    {
      const std::lock_guard lock(device->mutex);
      if (const auto at = device->kernels.find(key); at != device->kernels.end()) kernel = &at->second;
    }
    if (kernel == nullptr) {
      XCCL_ASSIGN_OR_RETURN(Kernel loaded, LoadKernel(*device, call));
      const std::lock_guard lock(device->mutex);
      kernel = &device->kernels.emplace(key, std::move(loaded)).first->second;
    }
    if (layouts_.empty()) continue;  // the number of instances is not known yet
    const int32_t blocks = RankBlocks() * device->ranks;
    XCCL_RETURN_IF_ERROR(share_->reservation.Raise(id, device->gpu->properties().multiprocessors,
                                                   kernel->MultiprocessorsFor(blocks), blocks, name_));
  }
  return OkStatus();
}

StatusOr<const Kernel*> DeviceProgram::KernelFor(DeviceState& device, const DeviceCall& call) {
  const std::pair key{call.type, call.op};
  for (int32_t attempt = 0;; ++attempt) {
    {
      const std::lock_guard lock(device.mutex);
      if (const auto at = device.kernels.find(key); at != device.kernels.end()) return &at->second;
    }
    XCCL_CHECK(attempt == 0);
    XCCL_RETURN_IF_ERROR(LoadKernels(call));
  }
}

}  // namespace xccl::cuda
