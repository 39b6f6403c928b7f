#include "runtime/cuda/test_kernel.h"

#include <cstring>
#include <memory>
#include <vector>

#include "base/status.h"
#include "ir/kernel/kernel_form.h"
#include "runtime/device_values.h"
#include "runtime/kernel_table.h"

namespace xccl::cuda {
namespace {

void Add(FakeDriver& driver, const device::KernelInfo& info,
         std::function<void(device::LaunchArgs& args)> run) {
  driver.AddGlobal("xccl_kernel_info", &info, sizeof info);
  driver.AddKernel("xccl_kernel", sizeof(device::LaunchArgs),
                   [run = std::move(run)](const FakeDriver::Launch& launch) {
                     device::LaunchArgs args;
                     std::memcpy(&args, launch.parameter, sizeof args);
                     device::host_guard = {FakeDriver::Allows, launch.device};
                     run(args);
                   });
}

}  // namespace

void AddHostKernel(FakeDriver& driver, const device::HostKernel* kernel, DataType type, ReduceOp op,
                   Protocol protocol, const std::function<void(const device::LaunchArgs&)>& check,
                   device::HostShape shape) {
  device::KernelInfo info = kernel != nullptr ? kernel->info : device::KernelInfo();
  info.threads = kernel != nullptr ? 256 : 384;
  info.type = ToDevice(type);
  info.op = ToDevice(op);
  info.protocol = ToDevice(protocol);
  Add(driver, info, [kernel, info, check, shape](device::LaunchArgs& args) {
    if (check) check(args);
    RunOnHost(kernel != nullptr ? *kernel : device::InterpreterOnHost(args.table, args.instances), args,
              info.type, info.op, info.protocol, shape);
  });
}

void AddTestKernel(FakeDriver& driver, const Program& program, const Collective& collective,
                   device::HostShape shape) {
  const StatusOr<KernelForm> form = MakeKernelForm(program, collective, /*merge=*/false);
  XCCL_CHECK(form.ok());
  StatusOr<std::vector<int32_t>> words = KernelTable(program, *form);
  XCCL_CHECK(words.ok());
  const auto table = std::make_shared<const std::vector<int32_t>>(*std::move(words));
  device::KernelInfo info;
  info.ranks = program.ranks.size();
  info.blocks_per_rank = form->blocks_per_rank;
  info.threads = 256;
  info.slots = program.slots;
  info.instances = program.instances;
  Add(driver, info, [table, shape](device::LaunchArgs& args) {
    args.table = table->data();
    args.direct = 0;
    RunOnHost(device::InterpreterOnHost(args.table, args.instances), args, device::Type::kFloat,
              device::Operator::kSum, device::Protocol::kSimple, shape);
  });
}

}  // namespace xccl::cuda
