// Two ranks over loopback, and a third party that has no more than their addresses: an endpoint of its own in
// a domain of its own. Then ranks whose peer tells counters that cannot be.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "runtime/host/host_memory.h"
#include "runtime/host/parcel.h"
#include "runtime/rdma/ofi/ofi_transport.h"
#include "runtime/rdma/ofi/signal.h"
#include "runtime/rdma/ofi/transport.h"
#include "runtime/transport/network.h"
#include "runtime/transport/testing/messages.h"

namespace xccl::ofi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kSlotBytes = 4096;
constexpr int32_t kSlots = 4;
constexpr auto kLimit = std::chrono::seconds(20);
const std::vector<int32_t> kHosts = {0, 1};

// Until it is true; false: not within the limit.
bool Await(const std::function<bool()>& done) {
  for (const Clock::time_point end = Clock::now() + kLimit; Clock::now() < end; std::this_thread::yield())
    if (done()) return true;
  return done();
}

// The addresses and keys that a rank sends to all ranks, in connect.cc's form.
struct Told {
  std::string address;
  std::vector<uint64_t> keys, marks;  // by cell
};
Told Read(const std::string& blob) {
  ParcelReader reader({.bytes = blob, .files = {}});
  Told told;
  EXPECT_EQ(reader.Number(), 1U);
  told.address = reader.Text();
  static_cast<void>(reader.Number());
  for (uint64_t left = reader.Number(); left > 0 && !reader.broken(); --left) {
    told.keys.push_back(reader.Number());
    told.marks.push_back(reader.Number());
  }
  EXPECT_TRUE(!reader.broken() && reader.AtEnd());
  return told;
}

// Ranks 0 and 1, driven by one thread. Connection 0 is from rank 0 to rank 1, connection 1 the other way.
class Pair {
 public:
  explicit Pair(const std::string& provider) {
    std::barrier meet(2);
    std::array<std::thread, 2> threads;
    for (size_t r = 0; r < 2; ++r) {
      memory_[r].layout = NetworkLayoutOf(wiring_, kHosts, kSlots, Rank(static_cast<int64_t>(r)));
      slots_[r] = *HostMemory::Create(memory_[r].layout.SlotsBytes());
      cells_[r] = *HostMemory::Create(memory_[r].layout.CellsBytes());
      memory_[r].slots = slots_[r].data();
      memory_[r].cells = reinterpret_cast<ConnectionCell*>(cells_[r].data());
      threads[r] = std::thread([&, r] { Connect(r, provider, meet); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Transport& transport(size_t rank) { return *transports_[rank]; }
  ConnectionCell& cell(size_t rank, int32_t connection) { return memory_[rank].cells[connection]; }
  std::string slots(size_t rank) const {
    return {reinterpret_cast<const char*>(slots_[rank].data()),
            static_cast<size_t>(memory_[rank].layout.SlotsBytes())};
  }
  // Counters of both ranks: heads and tails of both connections.
  std::vector<uint64_t> Counters() {
    std::vector<uint64_t> counters;
    for (size_t rank = 0; rank < 2; ++rank)
      for (int32_t c = 0; c < 2; ++c)
        for (const auto* one : {&cell(rank, c).head, &cell(rank, c).tail}) counters.push_back(one->load());
    return counters;
  }
  Told told(size_t rank) const { return Read(blobs_[rank]); }

  // Both ranks go on; what failed, by rank.
  std::string Progress() {
    std::string failures;
    for (const std::unique_ptr<Transport>& one : transports_) {
      const StatusOr<bool> moved = one->Progress();
      if (!moved.ok()) failures += moved.status().message();
    }
    return failures;
  }
  // A message goes over connection 0 and is taken.
  void Exchange() {
    const ConnectionEnd sender = transports_[0]->At(0), receiver = transports_[1]->At(0);
    const uint64_t number = sender.head->load();
    const auto at = static_cast<int64_t>(number % kSlots) * kSlotBytes;
    std::memset(sender.slots + at, static_cast<int>(number + 1), kSlotBytes);
    transports_[0]->Put(0, kSlotBytes);
    EXPECT_TRUE(Await([&] { return !Progress().empty() || receiver.head->load() > number; }));
    EXPECT_EQ(receiver.head->load(), number + 1);
    EXPECT_TRUE(std::all_of(receiver.slots + at, receiver.slots + at + kSlotBytes,
                            [&](std::byte one) { return one == static_cast<std::byte>(number + 1); }));
    transports_[1]->Take(0, false);
    EXPECT_TRUE(Await([&] { return !Progress().empty() || sender.tail->load() > number; }));
    EXPECT_EQ(sender.tail->load(), number + 1);
    EXPECT_EQ(Progress(), "");
  }
  // Until the rank has a failure.
  std::string FailureOf(size_t rank) {
    std::string failure;
    Await([&] {
      for (size_t r = 0; r < 2; ++r) {
        const StatusOr<bool> moved = transports_[r]->Progress();
        if (r == rank) failure = moved.status().message();
      }
      return !failure.empty();
    });
    return failure;
  }

 private:
  void Connect(size_t rank, const std::string& provider, std::barrier<>& meet) {
    NetworkOptions options;
    options.provider = provider;
    options.address = "127.0.0.1";
    options.all_gather = [&, rank](std::string_view mine) -> StatusOr<std::vector<std::string>> {
      blobs_[rank] = mine;
      meet.arrive_and_wait();
      return blobs_;
    };
    StatusOr<std::unique_ptr<Transport>> made = ofi::Connect(memory_[rank], options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    transports_[rank] = *std::move(made);
  }

  const Wiring wiring_ = AllPairs(2, 1, kSlotBytes);
  std::array<HostMemory, 2> slots_, cells_;
  std::array<NetworkMemory, 2> memory_;
  std::vector<std::string> blobs_ = std::vector<std::string>(2);
  std::array<std::unique_ptr<Transport>, 2> transports_;
};

class Stranger {
 public:
  Stranger(const std::string& provider, const std::string& victim) {
    library_ = *LoadLibrary();
    NetworkOptions options;
    options.provider = provider;
    options.address = "127.0.0.1";
    const std::vector<Info> devices = *FindDevices(*library_, options, 1);
    rail_ = *OpenRail(*library_, *devices[0], 256);
    junk_.assign(kSlotBytes, std::byte{0xee});
    memory_ = *Register(*library_, junk_, rail_);
    EXPECT_EQ(fi_av_insert(rail_.addresses.get(), victim.data(), 1, &victim_, 0, nullptr), 1);
  }

  // Each posts one operation, as libfabric's calls do.
  ssize_t Write(size_t bytes, uint64_t address, uint64_t key) {
    return fi_write(rail_.endpoint.get(), junk_.data(), bytes, fi_mr_desc(memory_), victim_, address, key,
                    &context_);
  }
  ssize_t WriteData(size_t bytes, uint64_t key, uint64_t data) {
    return fi_writedata(rail_.endpoint.get(), junk_.data(), bytes, fi_mr_desc(memory_), data, victim_, 0, key,
                        &context_);
  }
  // No place to write to, so no key.
  ssize_t WriteNowhere(size_t bytes, uint64_t data) {
    const iovec from = {junk_.data(), bytes};
    void* description = fi_mr_desc(memory_);
    fi_msg_rma message = {};
    message.msg_iov = &from;
    message.desc = &description;
    message.iov_count = bytes > 0 ? 1 : 0;
    message.addr = victim_;
    message.context = &context_;
    message.data = data;
    return fi_writemsg(rail_.endpoint.get(), &message, FI_REMOTE_CQ_DATA);
  }
  ssize_t SendData(size_t bytes, uint64_t data) {
    return fi_senddata(rail_.endpoint.get(), junk_.data(), bytes, fi_mr_desc(memory_), data, victim_,
                       &context_);
  }

  // True: some operation of the stranger's is over.
  bool Progress() {
    fi_cq_data_entry entry = {};
    const ssize_t count = fi_cq_read(rail_.completions.get(), &entry, 1);
    if (count != -FI_EAVAIL) return count > 0;
    fi_cq_err_entry error = {};
    return fi_cq_readerr(rail_.completions.get(), &error, 0) > 0;
  }

 private:
  const Library* library_ = nullptr;
  std::vector<std::byte> junk_;
  fi_context context_ = {};
  Rail rail_;
  fid_mr* memory_ = nullptr;
  fi_addr_t victim_ = FI_ADDR_UNSPEC;
};

struct Attack {
  std::string name;
  std::function<ssize_t(Stranger&)> post;
};

// With what can be guessed: keys that count up, cells that exist, counters that come next.
std::vector<Attack> Attacks(const Told& victim) {
  std::vector<Attack> attacks;
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}, uint64_t{2}, SystemRandom(), victim.keys[0] + 1}) {
    attacks.push_back({"a write with a key", [=](Stranger& by) { return by.Write(1024, 64, key); }});
    for (const uint64_t cell : {0, 1, 2})
      attacks.push_back({"an empty write with a key and data",
                         [=](Stranger& by) { return by.WriteData(0, key, cell << kCounterBits | 2); }});
    attacks.push_back({"a write with a key and data",
                       [=](Stranger& by) { return by.WriteData(1024, key, 1 << kCounterBits | 2); }});
  }
  for (const uint64_t cell : {0, 1, 2})
    for (const uint64_t data : {cell << kCounterBits | 1, cell << kCounterBits | 2,
                                (SystemRandom() & ~uint64_t{0x3fff}) | cell << kCounterBits | 2}) {
      attacks.push_back({"data to nowhere", [=](Stranger& by) { return by.WriteNowhere(0, data); }});
      attacks.push_back({"a message with data", [=](Stranger& by) { return by.SendData(8, data); }});
    }
  attacks.push_back({"bytes to nowhere", [](Stranger& by) { return by.WriteNowhere(64, 2); }});
  return attacks;
}

// Posts it, and gives it time to do harm: to be over, or what a hundred looks at the network take.
void Commit(const Attack& attack, Stranger& stranger, Pair& pair) {
  bool over = false;
  ssize_t posted = -FI_EAGAIN;
  Await([&] {
    EXPECT_EQ(pair.Progress(), "");
    if (posted == -FI_EAGAIN) posted = attack.post(stranger);
    over = stranger.Progress() || over;
    return posted != -FI_EAGAIN || over;
  });
  for (int looks = 0; looks < 100; ++looks) {
    EXPECT_EQ(pair.Progress(), "");
    stranger.Progress();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

class Strangers : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
    NetworkOptions options;
    options.provider = provider();
    options.address = "127.0.0.1";
    const StatusOr<std::vector<Info>> found = FindDevices(**LoadLibrary(), options, 1);
    if (!found.ok()) GTEST_SKIP() << found.status().message();  // net is of libfabric 1.16 and 1.17 alone
  }
  std::string provider() const { return GetParam(); }
};

TEST_P(Strangers, WithoutKeyAndMarkChangeNothing) {
  Pair pair(provider());
  pair.Exchange();
  for (size_t rank = 0; rank < 2; ++rank) {
    const Told victim = pair.told(rank);
    for (const Attack& attack : Attacks(victim)) {
      SCOPED_TRACE(attack.name);
      const std::vector<uint64_t> counters = pair.Counters();
      const std::string slots = pair.slots(rank);
      {
        Stranger stranger(provider(), victim.address);
        Commit(attack, stranger, pair);
      }
      EXPECT_EQ(pair.Counters(), counters);
      EXPECT_TRUE(pair.slots(rank) == slots);
      pair.Exchange();
      if (HasFailure()) return;
    }
  }
}

// The control: strangers' operations do arrive.
TEST_P(Strangers, WithKeyAndMarkWouldBeBelieved) {
  Pair pair(provider());
  const Told victim = pair.told(1);
  Stranger stranger(provider(), victim.address);
  Commit({"", [&](Stranger& by) { return by.WriteData(1024, victim.keys[0], Encode(victim.marks[0], 1)); }},
         stranger, pair);
  EXPECT_TRUE(Await([&] { return !pair.Progress().empty() || pair.cell(1, 0).head.load() == 1; }));
  EXPECT_EQ(pair.slots(1).substr(0, 1025), std::string(1024, '\xee') + '\0');
}

// Keys reach no further than the slots of their connection.
TEST_P(Strangers, AKeyIsOfOneConnection) {
  Pair pair(provider());
  const Told victim = pair.told(1);
  EXPECT_NE(victim.keys[0], victim.keys[1]);
  const std::string slots = pair.slots(1);
  for (const uint64_t address :
       {uint64_t{kSlots * kSlotBytes}, uint64_t{kSlots * kSlotBytes - 1023}, ~uint64_t{0}}) {
    Stranger stranger(provider(), victim.address);
    Commit({"", [&](Stranger& by) { return by.Write(1024, address, victim.keys[0]); }}, stranger, pair);
    EXPECT_TRUE(pair.slots(1) == slots);
  }
  pair.Exchange();
}

TEST_P(Strangers, FindNoEndpointOnAnotherAddress) {
  const Pair pair(provider());
  sockaddr_in own = {};
  ASSERT_EQ(pair.told(0).address.size(), sizeof own);
  std::memcpy(&own, pair.told(0).address.data(), sizeof own);
  EXPECT_EQ(own.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  // Kernels write the address as a number in the host's order of bytes, the port in the network's.
  const std::string port = fmt::format(":{:04X}", ntohs(own.sin_port));
  const std::string listens = fmt::format("{:08X}{}", own.sin_addr.s_addr, port);
  std::ifstream sockets("/proc/self/net/tcp");
  std::vector<std::string> found;
  for (std::string line, number, local, remote, state; std::getline(sockets, line);)
    if (std::istringstream(line) >> number >> local >> remote >> state && state == "0A" &&
        local.ends_with(port))
      found.push_back(local);
  if (found.empty()) GTEST_SKIP() << "no list of sockets";
  EXPECT_EQ(found, std::vector<std::string>{listens});
}

TEST_P(Strangers, SecretsAreOfOneRun) {
  std::vector<uint64_t> all;
  for (int run = 0; run < 2; ++run) {
    Pair pair(provider());
    for (size_t rank = 0; rank < 2; ++rank) {
      const Told told = pair.told(rank);
      all.insert(all.end(), told.keys.begin(), told.keys.end());
      all.insert(all.end(), told.marks.begin(), told.marks.end());
    }
  }
  std::ranges::sort(all);
  EXPECT_EQ(all.size(), 16U);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  EXPECT_GT(all.front(), uint64_t{1} << 32);  // 64 bits, not a number that counts up
}

// A peer whose signals are impossible, since its own counters are changed before it puts or takes.
TEST_P(Strangers, APeersCountersThatCannotBeAreErrorsThatNameIt) {
  struct Case {
    const char* name;
    bool takes;        // the receiver lies to the sender
    uint64_t put;      // good messages before it
    uint64_t counter;  // the impossible one
    const char* expected;
  };
  const Case cases[] = {
      {"beyond the slots", false, 2, 7,
       "signal of rank 0 over %s: message 7; expected messages 3 to 6, each once"},
      {"far beyond", false, 2, 2049,
       "signal of rank 0 over %s: message 2049; expected messages 3 to 6, each once"},
      {"twice", false, 2, 2, "signal of rank 0 over %s: message 2; expected messages 3 to 6, each once"},
      {"none", false, 0, 0, "signal of rank 0 over %s: message 0; expected messages 1 to 4, each once"},
      {"taken before it was put", true, 2, 3, "signal of rank 1 over %s: 3 messages taken; expected 0 to 2"},
      {"far more taken", true, 9, 1000, "signal of rank 1 over %s: 1000 messages taken; expected 5 to 9"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    Pair pair(provider());
    for (uint64_t i = 0; i < one.put; ++i) pair.Exchange();
    const size_t liar = one.takes ? 1 : 0;
    ConnectionCell& cell = pair.cell(liar, 0);
    (one.takes ? cell.tail : cell.head).store(one.counter - 1);
    if (one.takes) {
      pair.transport(1).Take(0, false);
    } else {
      pair.transport(0).Put(0, 8);
    }
    std::string expected = one.expected;
    expected.replace(expected.find("%s"), 2, provider() + " on lo");
    EXPECT_EQ(pair.FailureOf(1 - liar), expected);
    // A counter that cannot be is not shown.
    const ConnectionCell& kept = pair.cell(1 - liar, 0);
    EXPECT_EQ((one.takes ? kept.tail : kept.head).load(), one.put);
  }
}

// A message that has come, and waits for one before it, cannot come again.
TEST_P(Strangers, AMessageThatWaitsForItsTurnComesOnce) {
  Pair pair(provider());
  ConnectionCell& cell = pair.cell(0, 0);
  for (const uint64_t before : {1, 1}) {
    cell.head.store(before);
    pair.transport(0).Put(0, 8);
  }
  EXPECT_EQ(pair.FailureOf(1),
            "signal of rank 0 over " + provider() + " on lo: message 2; expected messages 1 to 4, each once");
  EXPECT_EQ(pair.cell(1, 0).head.load(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Providers, Strangers, testing::Values("net", "tcp;ofi_rxm"));

// A peer's card that is not one.
TEST(OfiConnect, RefusesWhatIsNoCard) {
  if (const Status found = Available(); !found.ok()) GTEST_SKIP() << found.message();
  const Wiring wiring = AllPairs(2, 1, kSlotBytes);
  NetworkMemory memory;
  memory.layout = NetworkLayoutOf(wiring, kHosts, kSlots, Rank(0));
  const HostMemory slots = *HostMemory::Create(memory.layout.SlotsBytes());
  const HostMemory cells = *HostMemory::Create(memory.layout.CellsBytes());
  memory.slots = slots.data();
  memory.cells = reinterpret_cast<ConnectionCell*>(cells.data());
  const auto card = [](const std::string& address, uint64_t connections) {
    Parcel parcel;
    AppendNumber(parcel, 1);
    AppendText(parcel, address);
    AppendNumber(parcel, 0);
    AppendNumber(parcel, connections);
    for (uint64_t i = 0; i < 2 * connections; ++i) AppendNumber(parcel, i << kCounterBits);
    return parcel.bytes;
  };
  const std::string not_a_card =
      "rank 1: what it tells is not of the libfabric transport; expected the same transport on all ranks";
  const std::pair<std::string, std::string> cases[] = {
      {"", not_a_card},
      {card("1234567890123456", 2) + "x", not_a_card},
      {std::string(8, '\xff'), not_a_card},
      {card("1234567890123456", 0),
       "rank 1: 1 network devices and 0 connections; expected more than 0 and 0: ranks do not agree on "
       "plans"},
      {card("1234567890123456", 2), "tcp;ofi_rxm on lo: the address of rank 1 is refused"},
      {card("short", 2),
       "rank 1: an address or a mark that tcp;ofi_rxm on lo does not take; expected one provider on all "
       "ranks; hint: "
       "--provider"},
  };
  for (const auto& one : cases) {
    NetworkOptions options;
    options.provider = "tcp;ofi_rxm";  // which every libfabric has
    options.address = "127.0.0.1";
    options.all_gather = [&](std::string_view mine) -> StatusOr<std::vector<std::string>> {
      return std::vector<std::string>{std::string(mine), one.first};
    };
    EXPECT_EQ(Connect(memory, options).status().message(), one.second);
  }
}

}  // namespace
}  // namespace xccl::ofi
