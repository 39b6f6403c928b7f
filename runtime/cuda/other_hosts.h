// The other processes of a communicator whose ranks are processes, perhaps of several hosts, as one process
// reaches them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/program.h"
#include "runtime/host/exchange.h"
#include "runtime/transport/network.h"
#include "runtime/transport/transport.h"

namespace xccl::cuda {

// All ranks of a communicator that is on several hosts, as this process, which is one rank, reaches them. Any
// thread may call failure, fail and note_progress; all ranks call the other functions in one order.
struct OtherHosts {
  std::vector<int32_t> host_of;  // by rank
  std::function<StatusOr<std::vector<std::string>>(std::string_view mine)> all_gather;
  std::function<Status()> agree_on_network;  // comes before the next two
  // Whether the network's device can be given these slots, which are a GPU's. Only this rank calls it.
  std::function<bool(const NetworkMemory& memory)> reaches;
  std::function<StatusOr<std::unique_ptr<Transport>>(const NetworkMemory& memory)> connect;
  std::function<Status()> barrier;
  std::function<std::optional<Status>()> failure;
  std::function<void(const Status& reason)> fail;  // told to all ranks
  // An error of this rank, for which the others would wait.
  void Tell(const Status& status, Rank own) const;
  std::function<void()> note_progress;
};

// True if some connection is between ranks of different hosts.
bool CrossesHosts(const Program& program, const std::vector<int32_t>& host_of);
// Checks a program that crosses hosts. Errors: kInvalidInput "NAME: protocol ll between hosts; expected
// simple", "NAME: a multicast group has ranks 0 and 4 of different hosts; expected one host".
Status CheckBetweenHosts(const Program& program, const std::vector<int32_t>& host_of,
                         const std::string& name);

// The exchange between the processes of this rank's host; `name` as SocketExchange's, of the whole
// communicator.
StatusOr<Exchange> MeetOnHost(const std::string& name, Rank rank, const OtherHosts& hosts,
                              std::chrono::nanoseconds time_limit);
// This rank's place among the ranks of its host.
int32_t LocalRankOf(Rank rank, const std::vector<int32_t>& host_of);

}  // namespace xccl::cuda
