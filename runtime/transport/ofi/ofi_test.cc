#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/transport/ofi/ofi_transport.h"
#include "runtime/transport/ofi/transport.h"

namespace xccl::ofi {
namespace {

TEST(OfiSignal, KeepsCellKindAndLowBits) {
  for (const Signal signal : {Signal{0, false, 0}, Signal{1, true, 1}, Signal{(1 << 19) - 1, true, 4095}}) {
    const Signal back = Signal::Decode(signal.Encode());
    EXPECT_EQ(back.cell, signal.cell);
    EXPECT_EQ(back.tail, signal.tail);
    EXPECT_EQ(back.counter, signal.counter);
    EXPECT_LT(signal.Encode(), uint64_t{1} << 32);  // EFA carries 32 bits
  }
}

TEST(OfiSignal, UnwrapsNearWhatIsKnown) {
  EXPECT_EQ(Unwrap(5, 0), 5U);
  EXPECT_EQ(Unwrap(1, 4095), 4097U);     // round the end of 12 bits
  EXPECT_EQ(Unwrap(4095, 4097), 4095U);  // a late one
  EXPECT_EQ(Unwrap(0, 8192), 8192U);
}

// Ranks, each a host, as threads of this process over loopback.
class Network {
 public:
  Network(Wiring wiring, std::vector<Rails> rails, int32_t num_slots)
      : wiring_(std::move(wiring)),
        rails_(std::move(rails)),
        num_slots_(num_slots),
        blobs_(static_cast<size_t>(wiring_.ranks)),
        meet_(wiring_.ranks) {}

  struct End {
    HostMemory slots, cells;
    std::unique_ptr<Transport> transport;
  };

  StatusOr<End> Join(Rank rank) {
    std::vector<int32_t> hosts;
    for (int32_t r = 0; r < wiring_.ranks; ++r) hosts.push_back(r);
    NetworkMemory memory;
    memory.layout = NetworkLayoutOf(wiring_, hosts, rails_, num_slots_, rank);
    End end;
    XCCL_ASSIGN_OR_RETURN(end.slots, HostMemory::Create(memory.layout.SlotsBytes()));
    XCCL_ASSIGN_OR_RETURN(end.cells, HostMemory::Create(memory.layout.CellsBytes()));
    memory.slots = end.slots.data();
    memory.cells = reinterpret_cast<ConnectionCell*>(end.cells.data());
    NetworkOptions options;
    options.provider = "tcp;ofi_rxm";
    options.address = "127.0.0.1";
    options.all_gather = [&, rank](std::string_view mine) -> StatusOr<std::vector<std::string>> {
      blobs_[rank.index()] = mine;
      meet_.arrive_and_wait();
      return blobs_;
    };
    XCCL_ASSIGN_OR_RETURN(end.transport, Connect(memory, options));
    return end;
  }
  void Meet() { meet_.arrive_and_wait(); }
  const Wiring& wiring() const { return wiring_; }

 private:
  const Wiring wiring_;
  const std::vector<Rails> rails_;
  const int32_t num_slots_;
  std::vector<std::string> blobs_;
  std::barrier<> meet_;
};

std::byte Value(int32_t connection, uint64_t message, int64_t at) {
  return static_cast<std::byte>(connection * 31 + static_cast<int64_t>(message) * 7 + at);
}

int64_t BytesOf(uint64_t message, int64_t slot_bytes) {
  constexpr int64_t kSizes[] = {0, 1, 64, 4096, 65536, 17};
  return std::min(slot_bytes, kSizes[message % 6]);
}

// Every connection carries `messages` messages; the number of wrong bytes.
int64_t Carry(const Network& network, Transport& transport, Rank rank, uint64_t messages) {
  const Wiring& wiring = network.wiring();
  int64_t wrong = 0;
  std::vector<uint64_t> put(wiring.connections.size(), 0), taken = put;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (bool all = false; !all || !transport.Flushed();) {
    all = true;
    const bool moved = transport.Progress().value();
    for (size_t c = 0; c < wiring.connections.size(); ++c) {
      const auto connection = static_cast<int32_t>(c);
      if (wiring.connections[c].src == rank && put[c] < messages) {
        all = false;
        const ConnectionEnd end = transport.At(connection);
        if (put[c] - end.tail->load(std::memory_order_acquire) >= end.num_slots) continue;
        std::byte* slot = end.slots + static_cast<int64_t>(put[c] % end.num_slots) * wiring.slot_bytes;
        const int64_t bytes = BytesOf(put[c], wiring.slot_bytes);
        for (int64_t i = 0; i < bytes; ++i) slot[i] = Value(connection, put[c], i);
        transport.Put(connection, bytes);
        ++put[c];
      }
      if (wiring.connections[c].dst == rank && taken[c] < messages) {
        all = false;
        const ConnectionEnd end = transport.At(connection);
        if (end.head->load(std::memory_order_acquire) == taken[c]) continue;
        const std::byte* slot =
            end.slots + static_cast<int64_t>(taken[c] % end.num_slots) * wiring.slot_bytes;
        for (int64_t i = 0; i < BytesOf(taken[c], wiring.slot_bytes); ++i)
          wrong += slot[i] == Value(connection, taken[c], i) ? 0 : 1;
        transport.Take(connection);
        ++taken[c];
      }
    }
    if (std::chrono::steady_clock::now() > until) return -1;
    if (moved || all || !transport.PrepareToSleep()) continue;
    std::vector<pollfd> files;
    for (const int file : transport.files()) files.push_back({file, POLLIN, 0});
    poll(files.data(), files.size(), 5);
  }
  return wrong;
}

void CheckCarries(const Wiring& wiring, const std::vector<Rails>& rails, int32_t slots, uint64_t messages) {
  Network network(wiring, rails, slots);
  std::vector<int64_t> wrong(static_cast<size_t>(wiring.ranks), -2);
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < wiring.ranks; ++r)
    threads.emplace_back([&, r] {
      StatusOr<Network::End> end = network.Join(Rank(r));
      EXPECT_TRUE(end.ok()) << end.status().message();
      if (end.ok()) wrong[static_cast<size_t>(r)] = Carry(network, *end->transport, Rank(r), messages);
      network.Meet();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int64_t>(wrong.size(), 0));
}

Wiring AllPairs(int32_t ranks, int32_t channels) {
  Wiring wiring{.ranks = ranks, .connections = {}, .slots = 2, .slot_bytes = 65536};
  for (int32_t a = 0; a < ranks; ++a)
    for (int32_t b = 0; b < ranks; ++b)
      for (int32_t c = 0; c < channels && a != b; ++c) wiring.connections.push_back({Rank(a), Rank(b), c});
  return wiring;
}

TEST(Ofi, CarriesMessagesBetweenAllPairs) {
  if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
  CheckCarries(AllPairs(3, 2), {}, 4, 500);
}

TEST(Ofi, OneSlotIsEnough) {
  if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
  CheckCarries(AllPairs(2, 1), {}, 1, 200);
}

TEST(Ofi, GoesOverSeveralRails) {
  if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
  const Wiring wiring = AllPairs(2, 2);
  CheckCarries(wiring, {{0, 1}, {1, 0}, {1, 1}, {0, 0}}, 2, 300);
}

TEST(Ofi, NamesTheDeviceThatIsNotThere) {
  if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
  StatusOr<const Library*> library = LoadLibrary();
  NetworkOptions options;
  options.address = "127.0.0.1";
  options.devices = {"eth77"};
  const StatusOr<std::vector<Info>> devices = FindDevices(**library, options, 1);
  ASSERT_FALSE(devices.ok());
  EXPECT_TRUE(devices.status().message().starts_with("network device eth77: not found; found lo"))
      << devices.status().message();
}

}  // namespace
}  // namespace xccl::ofi
