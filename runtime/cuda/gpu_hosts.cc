#include "runtime/cuda/gpu_hosts.h"

#include "runtime/bootstrap/bootstrap.h"

namespace xccl {

cuda::OtherHosts OtherHostsOf(LaunchedGroup& group, std::chrono::nanoseconds time_limit) {
  Bootstrap* const ranks = &group.bootstrap();
  cuda::OtherHosts hosts;
  hosts.host_of = ranks->hosts();
  hosts.all_gather = [ranks, time_limit](std::string_view mine) {
    return ranks->AllGather(mine, time_limit);
  };
  hosts.agree_on_network = [&group] { return group.AgreeOnNetwork().status(); };
  hosts.reaches = [&group](const NetworkMemory& memory) { return group.ReachesSlots(memory); };
  hosts.connect = [&group](const NetworkMemory& memory) { return group.ConnectNetwork(memory); };
  hosts.barrier = [ranks, time_limit] { return ranks->Barrier(time_limit); };
  hosts.failure = [ranks] { return ranks->Failure(); };
  hosts.fail = [&group](const Status& reason) { group.Fail(reason); };
  hosts.note_progress = [ranks] { ranks->NoteProgress(); };
  return hosts;
}

}  // namespace xccl
