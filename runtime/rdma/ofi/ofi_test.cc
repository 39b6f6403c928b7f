#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/rdma/ofi/ofi_transport.h"
#include "runtime/rdma/ofi/signal.h"
#include "runtime/rdma/ofi/transport.h"
#include "runtime/transport/testing/messages.h"

namespace xccl::ofi {
namespace {

TEST(OfiSignal, MarksHaveTheCellAndAsManyRandomBitsAsFit) {
  struct Case {
    int32_t cell, cells;
    size_t data_bytes;
    uint64_t mark;
  };
  constexpr uint64_t kRandom = ~uint64_t{0};
  const Case cases[] = {
      {0, 1, 8, 0xfffffffffffff000},
      {1, 2, 8, 0xfffffffffffff000},
      {0, 2, 8, 0xffffffffffffe000},
      {5, 6, 4, 0xffffd000},  // EFA's
      {1997, 1998, 8, 0xfffffffffffcd000},
      {(1 << 20) - 1, 1 << 20, 4, 0xfffff000},
      {7, 1 << 20, 4, 0x7000},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.cell);
    EXPECT_EQ(MarkOf(one.cell, one.cells, one.data_bytes, kRandom), one.mark);
    for (const uint64_t counter : {0, 1, 4095, 4097}) {
      const uint64_t data = Encode(one.mark, counter);
      EXPECT_EQ(CellOf(data, one.cells), one.cell);
      EXPECT_TRUE(HasMark(data, one.mark));
      EXPECT_FALSE(HasMark(data ^ 0x1000, one.mark));
      EXPECT_EQ(Unwrap(data, counter), counter);
    }
  }
}

TEST(OfiSignal, UnwrapsNearWhatIsKnown) {
  EXPECT_EQ(Unwrap(5, 0), 5U);
  EXPECT_EQ(Unwrap(1, 4095), 4097U);     // round the end of 12 bits
  EXPECT_EQ(Unwrap(4095, 4097), 4095U);  // a late one
  EXPECT_EQ(Unwrap(0, 8192), 8192U);
  EXPECT_EQ(Unwrap(4095, 1), 4095U);  // none is below 0
}

// Ranks, each a host, as threads of this process over loopback.
class Network {
 public:
  Network(Wiring wiring, int32_t num_slots, std::string provider)
      : wiring_(std::move(wiring)),
        num_slots_(num_slots),
        provider_(std::move(provider)),
        hosts_(static_cast<size_t>(wiring_.ranks)),
        blobs_(static_cast<size_t>(wiring_.ranks)),
        meet_(wiring_.ranks) {
    std::iota(hosts_.begin(), hosts_.end(), 0);
  }

  // Connects one rank and plays its part.
  template <typename Part>
  auto RunRank(Rank rank, const Part& part) -> decltype(part(std::declval<Transport&>())) {
    NetworkMemory memory;
    memory.layout = NetworkLayoutOf(wiring_, hosts_, num_slots_, rank);
    XCCL_ASSIGN_OR_RETURN(const HostMemory slots, HostMemory::Create(memory.layout.SlotsBytes()));
    XCCL_ASSIGN_OR_RETURN(const HostMemory cells, HostMemory::Create(memory.layout.CellsBytes()));
    memory.slots = slots.data();
    memory.cells = reinterpret_cast<ConnectionCell*>(cells.data());
    NetworkOptions options;
    options.provider = provider_;
    options.address = "127.0.0.1";
    options.all_gather = [&, rank](std::string_view mine) -> StatusOr<std::vector<std::string>> {
      blobs_[rank.index()] = mine;
      meet_.arrive_and_wait();
      return blobs_;
    };
    XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<Transport> transport, Connect(memory, options));
    auto result = part(*transport);
    Meet();
    return result;
  }

  // Runs one rank, and returns what it received.
  StatusOr<Carried> RunRank(Rank rank, uint64_t messages) {
    return RunRank(rank, [&](Transport& transport) {
      return Carry(wiring_, hosts_, transport, rank, messages, std::chrono::milliseconds(20000));
    });
  }

  // Waits for all ranks.
  void Meet() { meet_.arrive_and_wait(); }

 private:
  const Wiring wiring_;
  const int32_t num_slots_;
  const std::string provider_;
  std::vector<int32_t> hosts_;
  std::vector<std::string> blobs_;
  std::barrier<> meet_;
};

void CheckCarries(const Wiring& wiring, int32_t slots, uint64_t messages) {
  if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
  // The best of TCP's, and the one that every libfabric has.
  for (const std::string provider : {"", "tcp;ofi_rxm"}) {
    SCOPED_TRACE(provider);
    Network network(wiring, slots, provider);
    std::vector<int64_t> wrong(static_cast<size_t>(wiring.ranks), -1);
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < wiring.ranks; ++r)
      threads.emplace_back([&, r] {
        const StatusOr<Carried> carried = network.RunRank(Rank(r), messages);
        EXPECT_TRUE(carried.ok()) << carried.status().message();
        if (carried.ok()) wrong[static_cast<size_t>(r)] = carried->wrong;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int64_t>(wrong.size(), 0));
  }
}

TEST(Ofi, CarriesMessagesBetweenAllPairs) { CheckCarries(AllPairs(3, 2, 65536), 4, 500); }

TEST(Ofi, OneSlotIsEnough) { CheckCarries(AllPairs(2, 1, 65536), 1, 200); }

// As many as a rank of a thousand has, each with a key of its own.
TEST(Ofi, ThousandsOfConnections) { CheckCarries(AllPairs(2, 1000, 128), 2, 3); }

// A sender fills the socket and then leaves. Messages that were flushed arrive without it.
TEST(Ofi, FlushedMessagesArriveWithoutTheSender) {
  if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
  constexpr int32_t kSlots = 4000;
  // Eleven with their headers fill a segment of loopback: a full socket takes no part of the next.
  constexpr int64_t kBytes = 5944;
  const Wiring wiring = AllPairs(2, 1, kBytes);
  constexpr int32_t kConnection = 0;
  ASSERT_EQ(wiring.connections[kConnection].src, Rank(0));
  for (const std::string provider : {"", "tcp;ofi_rxm"}) {
    SCOPED_TRACE(provider);
    Network network(wiring, kSlots, provider);
    uint64_t flushed = 0, arrived = 0;
    constexpr int kLongMs = 20'000, kShortMs = 200;
    const auto until = [](Transport& transport, int most_ms, auto done) {
      for (int ms = 0; ms < most_ms; ++ms) {
        while (true) {
          const StatusOr<bool> moved = transport.Progress();
          EXPECT_TRUE(moved.ok()) << moved.status().message();
          if (done()) return true;
          if (!moved.ok() || !*moved) break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return false;
    };
    const auto send = [&](Transport& transport) -> StatusOr<bool> {
      const auto is_flushed = [&] { return transport.Flushed(); };
      // The first one connects, for which the receiver is needed.
      transport.Put(kConnection, kBytes);
      EXPECT_TRUE(until(transport, kLongMs, is_flushed));
      network.Meet();
      for (flushed = 1; flushed + 1 < kSlots; ++flushed) {
        transport.Put(kConnection, kBytes);
        if (!until(transport, kShortMs, is_flushed)) break;
      }
      network.Meet();
      network.Meet();
      return until(transport, kLongMs, is_flushed);
    };
    const auto receive = [&](Transport& transport) -> StatusOr<bool> {
      const ConnectionEnd end = transport.At(kConnection);
      EXPECT_TRUE(until(transport, kLongMs, [&] { return end.head->load() == 1; }));
      network.Meet();
      network.Meet();
      until(transport, kShortMs, [&] { return end.head->load() >= flushed; });
      arrived = end.head->load();
      network.Meet();
      return until(transport, kLongMs, [&] { return end.head->load() >= flushed; });
    };
    std::thread sender([&] { EXPECT_TRUE(network.RunRank(Rank(0), send).value()); });
    EXPECT_TRUE(network.RunRank(Rank(1), receive).value());
    sender.join();
    EXPECT_GE(arrived, flushed);
  }
}

// Most slots are given back together.
TEST(Ofi, ManySlots) { CheckCarries(AllPairs(2, 1, 65536), 64, 1000); }

TEST(Ofi, GoesOverSeveralRails) {
  Wiring wiring = AllPairs(2, 2, 65536);
  wiring.rails = {{0, 1}, {1, 0}, {1, 1}, {0, 0}};
  CheckCarries(wiring, 2, 300);
}

// A thread of the provider's would take a core from a rank at each message.
TEST(Ofi, ADeviceOfNetTakesNoThread) {
  if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
  StatusOr<const Library*> library = LoadLibrary();
  NetworkOptions options;
  options.address = "127.0.0.1";
  options.provider = "net";
  const StatusOr<std::vector<Info>> devices = FindDevices(**library, options, 1);
  if (!devices.ok()) GTEST_SKIP() << devices.status().message();
  if (devices->front()->fabric_attr->prov_version < FI_VERSION(117, 0))
    GTEST_SKIP() << "libfabric before 1.17";
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const auto before = threads();
  const StatusOr<Rail> rail = OpenRail(**library, *devices->front(), 64);
  ASSERT_TRUE(rail.ok()) << rail.status().message();
  EXPECT_GE(rail->file, 0);
  EXPECT_EQ(threads(), before);
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
