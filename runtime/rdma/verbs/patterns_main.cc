// Carries messages over verbs devices in three patterns, ring, star and all to all, over as many rails as are
// named, and checks every byte. Every rank counts as a host of its own.
//
//   verbs_patterns RANK RANKS ADDRESS PORT MESSAGES SECONDS [DEVICE...]
//
// Rank 0 listens at the address. Exit status 0: nothing was wrong.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "runtime/host/host_memory.h"
#include "runtime/host/owned_file.h"
#include "runtime/rdma/verbs/transport.h"
#include "runtime/transport/network.h"
#include "runtime/transport/testing/messages.h"

namespace xccl {
namespace {

struct Flags {
  Rank rank;
  int32_t ranks = 0;
  std::string address;
  int32_t port = 0;
  uint64_t messages = 0;
  std::chrono::seconds limit{30};
  std::vector<std::string> devices;
};

bool SendAll(int file, const std::string& bytes) {
  return send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

StatusOr<std::string> ReceiveAll(int file, size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t at = 0; at < bytes;) {
    const ssize_t got = recv(file, text.data() + at, bytes - at, 0);
    if (got <= 0) return PeerEnded("a rank has closed its socket");
    at += static_cast<size_t>(got);
  }
  return text;
}

Status SendText(int file, const std::string& text) {
  const uint64_t bytes = text.size();
  const bool sent = SendAll(file, std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text);
  return sent ? OkStatus() : PeerEnded("a rank has closed its socket");
}

StatusOr<std::string> ReceiveText(int file) {
  XCCL_ASSIGN_OR_RETURN(const std::string length, ReceiveAll(file, sizeof(uint64_t)));
  return ReceiveAll(file, *reinterpret_cast<const uint64_t*>(length.data()));
}

// A meeting of all ranks at rank 0: blobs go to it, and all of them come back.
class Meeting {
 public:
  static StatusOr<Meeting> Join(const Flags& flags) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(flags.port));
    inet_pton(AF_INET, flags.address.c_str(), &at.sin_addr);
    const auto* address = reinterpret_cast<const sockaddr*>(&at);
    Meeting meeting(flags);
    if (flags.rank == Rank(0)) {
      OwnedFile listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const int yes = 1;
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (bind(listener.get(), address, sizeof at) != 0 || listen(listener.get(), flags.ranks) != 0)
        return SystemError("cannot listen");
      for (int32_t r = 1; r < flags.ranks; ++r) {
        OwnedFile file(accept(listener.get(), nullptr, nullptr));
        XCCL_ASSIGN_OR_RETURN(const std::string rank, ReceiveText(file.get()));
        meeting.files_[static_cast<size_t>(std::stoi(rank))] = std::move(file);
      }
      return meeting;
    }
    for (int tries = 0; tries < 300; ++tries) {
      OwnedFile file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(file.get(), address, sizeof at) == 0) {
        XCCL_RETURN_IF_ERROR(SendText(file.get(), std::to_string(flags.rank.value)));
        meeting.files_[0] = std::move(file);
        return meeting;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return LimitReached("rank 0 does not listen");
  }

  StatusOr<std::vector<std::string>> AllGather(std::string_view mine) {
    std::vector<std::string> all(files_.size());
    all[rank_.index()] = mine;
    if (rank_ != Rank(0)) XCCL_RETURN_IF_ERROR(SendText(files_[0].get(), std::string(mine)));
    for (size_t r = 0; r < all.size(); ++r) {
      if (r == rank_.index() && rank_ == Rank(0)) continue;
      XCCL_ASSIGN_OR_RETURN(all[r], ReceiveText(files_[rank_ == Rank(0) ? r : 0].get()));
    }
    for (size_t to = 1; to < all.size() && rank_ == Rank(0); ++to)
      for (const std::string& text : all) XCCL_RETURN_IF_ERROR(SendText(files_[to].get(), text));
    return all;
  }

 private:
  explicit Meeting(const Flags& flags) : rank_(flags.rank), files_(static_cast<size_t>(flags.ranks)) {}
  Rank rank_;
  std::vector<OwnedFile> files_;  // rank 0: of all others; others: of rank 0
};

StatusOr<Carried> Run(const Flags& flags, Wiring wiring, Meeting& meeting) {
  std::vector<int32_t> hosts(static_cast<size_t>(flags.ranks));
  std::iota(hosts.begin(), hosts.end(), 0);
  // Each channel has its own rail.
  const auto count = std::max<int32_t>(1, static_cast<int32_t>(flags.devices.size()));
  for (const ConnectionKey& key : wiring.connections)
    wiring.rails.push_back({key.channel % count, key.channel % count});
  NetworkMemory memory;
  memory.layout = NetworkLayoutOf(wiring, hosts, 4, flags.rank);
  XCCL_ASSIGN_OR_RETURN(const HostMemory slots, HostMemory::Create(memory.layout.SlotsBytes()));
  XCCL_ASSIGN_OR_RETURN(const HostMemory cells, HostMemory::Create(memory.layout.CellsBytes()));
  memory.slots = slots.data();
  memory.cells = cells.As<ConnectionCell>(memory.layout.connections.size()).data();
  NetworkOptions options;
  options.devices = flags.devices;
  options.time_limit = flags.limit;
  options.all_gather = [&](std::string_view mine) { return meeting.AllGather(mine); };
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<Transport> transport, verbs::Connect(memory, options));
  XCCL_ASSIGN_OR_RETURN(const Carried carried,
                        Carry(wiring, hosts, *transport, flags.rank, flags.messages, flags.limit));
  // A device that is closed answers nobody any more.
  XCCL_ASSIGN_OR_RETURN([[maybe_unused]] const auto all, meeting.AllGather(""));
  return carried;
}

Status RunAll(const Flags& flags) {
  constexpr int64_t kSlotBytes = 16 << 10;
  XCCL_ASSIGN_OR_RETURN(Meeting meeting, Meeting::Join(flags));
  const struct {
    const char* name;
    Wiring wiring;
  } patterns[] = {{"ring", RingOf(flags.ranks, 2, kSlotBytes)},
                  {"star", StarOf(flags.ranks, 2, kSlotBytes)},
                  {"alltoall", AllPairs(flags.ranks, 2, kSlotBytes)}};
  for (const auto& [name, wiring] : patterns) {
    XCCL_ASSIGN_OR_RETURN(const Carried carried, Run(flags, wiring, meeting));
    std::cout << fmt::format("rank {}: {}: {} messages, {} wrong, slept {} times\n", flags.rank.value, name,
                             carried.messages, carried.wrong, carried.slept)
              << std::flush;
    if (carried.wrong > 0) return InvalidInput(fmt::format("{}: {} wrong bytes", name, carried.wrong));
  }
  return OkStatus();
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) {
  if (argc < 7) {
    std::cerr << "usage: verbs_patterns RANK RANKS ADDRESS PORT MESSAGES SECONDS [DEVICE...]\n";
    return 2;
  }
  xccl::Flags flags;
  flags.rank = xccl::Rank(std::atoi(argv[1]));
  flags.ranks = std::atoi(argv[2]);
  flags.address = argv[3];
  flags.port = std::atoi(argv[4]);
  flags.messages = static_cast<uint64_t>(std::atoll(argv[5]));
  flags.limit = std::chrono::seconds(std::atoi(argv[6]));
  flags.devices.assign(argv + 7, argv + argc);
  const xccl::Status status = RunAll(flags);
  if (!status.ok()) std::cerr << fmt::format("rank {}: {}\n", flags.rank.value, status.message());
  return xccl::ExitCode(status.code());
}
