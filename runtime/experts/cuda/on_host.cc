#include "runtime/experts/cuda/on_host.h"

#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "runtime/experts/cuda/kernel.h"

namespace xccl::dispatch {
namespace {

struct BlockOnHost {
  device::ExpertShared shared = {};
  device::HostTeam team;
  explicit BlockOnHost(device::HostShape of) : team(of.threads, of.lanes, &shared) {}
};

void RunBlock(const device::ExpertArgs& args, int32_t block, DataType type) {
  if (type == DataType::kFloat)
    device::RunExpertBlock<float>(args, block);
  else if (type == DataType::kHalf)
    device::RunExpertBlock<device::Half>(args, block);
  else
    device::RunExpertBlock<device::Bfloat16>(args, block);
}

// Runs all blocks of a launch under the calling thread's host_guard; returns when all are done.
void RunLaunch(const device::ExpertArgs& args, DataType type, device::HostShape shape) {
  std::deque<BlockOnHost> blocks;
  std::vector<std::thread> threads;
  const device::HostGuard guard = device::host_guard;
  for (int32_t b = 0; b < args.blocks; ++b) {
    device::HostTeam* const team = &blocks.emplace_back(shape).team;
    for (int32_t t = 0; t < shape.threads; ++t)
      threads.emplace_back([&args, guard, team, type, b, t] {
        device::host_guard = guard;
        device::host_place = {team, t};
        try {
          RunBlock(args, b, type);
        } catch (const device::HostKilled&) {
          team->Kill();
        }
      });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void AddExpertKernel(cuda::FakeDriver& driver, DataType type, device::HostShape shape,
                     const std::string& image) {
  device::KernelInfo info;
  info.threads = device::kExpertThreads;
  driver.AddGlobal("xccl_kernel_info", &info, sizeof info);
  driver.AddKernel(
      "xccl_kernel", sizeof(device::ExpertArgs),
      [type, shape](const cuda::FakeDriver::Launch& launch) {
        device::ExpertArgs args;
        std::memcpy(static_cast<void*>(&args), launch.parameter, sizeof args);
        device::host_guard = {cuda::FakeDriver::Allows, launch.device};
        RunLaunch(args, type, shape);
      },
      image);
}

}  // namespace xccl::dispatch
