#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/host/host_memory.h"
#include "runtime/rdma/verbs/transport.h"
#include "runtime/rdma/verbs/verbs_transport.h"
#include "runtime/testing/verbs/fake_verbs.h"
#include "runtime/transport/network.h"
#include "runtime/transport/testing/messages.h"

namespace xccl::verbs {
namespace {

constexpr int64_t kSlotBytes = 4096;

std::string Host() {
  std::array<char, 256> name = {};
  EXPECT_EQ(gethostname(name.data(), name.size() - 1), 0);
  return name.data();
}

FakeDevice Device(const std::string& name, const std::string& address) {
  return {.name = name, .gids = {GidBytesOf(address)}};
}

Wiring OneWay() {
  return {.ranks = 2, .connections = {{Rank(0), Rank(1), 0}}, .slots = 2, .slot_bytes = kSlotBytes};
}

// All connections over the same rails.
Wiring Over(Wiring wiring, Rails rails) {
  wiring.rails.assign(wiring.connections.size(), rails);
  return wiring;
}

// Ranks, each a host of its own, as threads of this process.
class Group {
 public:
  Group(const FakeVerbs& fake, Wiring wiring, int32_t num_slots = 2)
      : fake_(fake), wiring_(std::move(wiring)), hosts_(static_cast<size_t>(wiring_.ranks)) {
    std::iota(hosts_.begin(), hosts_.end(), 0);
    for (int32_t r = 0; r < wiring_.ranks; ++r) {
      End end;
      end.memory.layout = NetworkLayoutOf(wiring_, hosts_, num_slots, Rank(r));
      end.slots = *HostMemory::Create(std::max<int64_t>(1, end.memory.layout.SlotsBytes()));
      end.cells = *HostMemory::Create(std::max<int64_t>(1, end.memory.layout.CellsBytes()));
      end.memory.slots = end.slots.data();
      end.memory.cells = end.cells.As<ConnectionCell>(end.memory.layout.connections.size()).data();
      ends_.push_back(std::move(end));
    }
  }

  NetworkMemory& memory(size_t rank) { return ends_[rank].memory; }
  NetworkOptions& options(size_t rank) { return ends_[rank].options; }
  Transport& transport(size_t rank) { return *ends_[rank].transport; }
  const Wiring& wiring() const { return wiring_; }

  // All ranks connect; the messages of their failures, by rank.
  std::vector<std::string> Connect() {
    std::vector<std::string> blobs(ends_.size()), failures(ends_.size());
    std::barrier meet(static_cast<std::ptrdiff_t>(ends_.size()));
    InThreads([&](size_t r) {
      ends_[r].options.all_gather = [&, r](std::string_view mine) -> StatusOr<std::vector<std::string>> {
        blobs[r] = mine;
        meet.arrive_and_wait();
        std::vector<std::string> all = blobs;
        meet.arrive_and_wait();
        return all;
      };
      StatusOr<std::unique_ptr<Transport>> made =
          ConnectOver(&fake_.library(), ends_[r].memory, ends_[r].options);
      if (made.ok()) ends_[r].transport = *std::move(made);
      failures[r] = made.status().message();
    });
    return failures;
  }
  void MustConnect() { EXPECT_EQ(Connect(), std::vector<std::string>(ends_.size(), "")); }
  void Disconnect() {
    for (End& end : ends_) end.transport.reset();
  }

  // All ranks carry messages over all connections; what they carried, in all.
  Carried Carry(uint64_t messages) {
    std::vector<StatusOr<Carried>> each(ends_.size(), Carried{});
    InThreads([&](size_t r) {
      each[r] = xccl::Carry(wiring_, hosts_, *ends_[r].transport, Rank(static_cast<int64_t>(r)), messages,
                            std::chrono::seconds(30));
    });
    Carried sum;
    for (const StatusOr<Carried>& one : each) {
      EXPECT_TRUE(one.ok()) << one.status().message();
      if (!one.ok()) continue;
      sum.messages += one->messages;
      sum.wrong += one->wrong;
    }
    return sum;
  }

 private:
  struct End {
    HostMemory slots, cells;
    NetworkMemory memory;
    NetworkOptions options;
    std::unique_ptr<Transport> transport;
  };
  void InThreads(const std::function<void(size_t)>& work) {
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ends_.size(); ++r) threads.emplace_back(work, r);
    for (std::thread& thread : threads) thread.join();
  }

  const FakeVerbs& fake_;
  const Wiring wiring_;
  std::vector<int32_t> hosts_;
  std::vector<End> ends_;
};

TEST(Verbs, CarriesEveryMessage) {
  struct Case {
    const char* name;
    Wiring wiring;
    int32_t slots;
    int max_qp_wr, max_cqe;
  };
  const Case cases[] = {
      {"one way", OneWay(), 1, 1024, 4096},
      {"ring", RingOf(3, 2, kSlotBytes), 2, 1024, 4096},
      {"star", StarOf(4, 1, kSlotBytes), 3, 1024, 4096},
      {"all pairs", AllPairs(4, 2, kSlotBytes), 4, 1024, 4096},
      {"rails that cross", Over(AllPairs(3, 1, kSlotBytes), Rails{0, 1}), 2, 1024, 4096},
      {"more rails than devices", Over(AllPairs(3, 1, kSlotBytes), Rails{3, 2}), 2, 1024, 4096},
      {"a device with little room", AllPairs(2, 2, kSlotBytes), 2, 16, 4096},
      // One completion queue holds no two pairs.
      {"small completion queues", AllPairs(4, 1, kSlotBytes), 2, 1024, 24},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    std::vector<FakeDevice> devices = {Device("fake0", "10.0.0.1"), Device("fake1", "10.0.1.1")};
    for (FakeDevice& device : devices) {
      device.max_qp_wr = one.max_qp_wr;
      device.max_cqe = one.max_cqe;
    }
    FakeVerbs fake(devices);
    Group group(fake, one.wiring, one.slots);
    group.MustConnect();
    const Carried carried = group.Carry(50);
    EXPECT_EQ(carried.messages, static_cast<int64_t>(50 * one.wiring.connections.size()));
    EXPECT_EQ(carried.wrong, 0);
    group.Disconnect();
    EXPECT_EQ(fake.misuse(), "");
    EXPECT_EQ(fake.alive(), 0);
    if (one.max_cqe == 24) {
      EXPECT_EQ(fake.most_queues(), 4 * 3);
    }
  }
}

TEST(Verbs, HeadIsNeverSeenBeforeItsMessage) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, OneWay(), 2);
  group.MustConnect();
  fake.Hold(true);
  const ConnectionEnd sender = group.transport(0).At(0), receiver = group.transport(1).At(0);
  uint64_t steps = 0;
  for (uint64_t message = 0; message < 5; ++message) {  // slots are used again
    std::memset(sender.slots + static_cast<int64_t>(message % 2) * kSlotBytes, static_cast<int>(message + 1),
                kSlotBytes);
    group.transport(0).Put(0, kSlotBytes);
    EXPECT_TRUE(group.transport(0).Flushed());
    while (receiver.head->load(std::memory_order_acquire) == message) {
      ASSERT_TRUE(fake.Deliver());
      ++steps;
    }
    EXPECT_EQ(receiver.head->load(std::memory_order_acquire), message + 1);
    for (int64_t i = 0; i < kSlotBytes; ++i)
      ASSERT_EQ(receiver.slots[static_cast<int64_t>(message % 2) * kSlotBytes + i], std::byte(message + 1));
    EXPECT_EQ(sender.tail->load(std::memory_order_acquire), message);
    EXPECT_TRUE(*group.transport(1).Progress());
    group.transport(1).Take(0, false);
    ASSERT_TRUE(fake.Deliver());
    EXPECT_EQ(sender.tail->load(std::memory_order_acquire), message + 1);
    EXPECT_TRUE(*group.transport(0).Progress());
  }
  EXPECT_EQ(steps, 10U);  // a message, then its head
  EXPECT_FALSE(*group.transport(0).Progress());
}

TEST(Verbs, EmptyMessagesAreHeadsAlone) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, OneWay(), 2);
  group.MustConnect();
  fake.Hold(true);
  group.transport(0).Put(0, 0);
  EXPECT_TRUE(fake.Deliver());
  EXPECT_FALSE(fake.Deliver());
  EXPECT_EQ(group.transport(1).At(0).head->load(std::memory_order_acquire), 1U);
}

// A receiver that always finds messages never asks for progress; its peer's counters find receives all the
// same.
TEST(Verbs, CountersNeverWaitForReceives) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, AllPairs(2, 2, kSlotBytes), 2);
  group.MustConnect();
  for (int round = 0; round < 500; ++round)
    for (int32_t connection = 0; connection < 4; ++connection) {
      const size_t from = group.wiring().connections[static_cast<size_t>(connection)].src.index();
      group.transport(from).Put(connection, 8);
      group.transport(1 - from).Take(connection, false);
    }
  EXPECT_EQ(fake.waits_for_receives(), 0);
  EXPECT_EQ(group.transport(0).At(0).tail->load(std::memory_order_acquire), 500U);
  EXPECT_FALSE(!group.transport(0).Progress().ok());
  EXPECT_EQ(fake.misuse(), "");
}

TEST(Verbs, WhatHasNoRoomIsPostedLater) {
  FakeDevice device = Device("fake0", "10.0.0.1");
  device.max_qp_wr = 2048;
  FakeVerbs fake({device});
  Group group(fake, OneWay(), 1024);
  group.MustConnect();
  fake.Hold(true);
  for (int i = 0; i < 600; ++i) group.transport(0).Put(0, 8);
  EXPECT_FALSE(group.transport(0).Flushed());
  const auto head = [&] { return group.transport(1).At(0).head->load(std::memory_order_acquire); };
  while (fake.Deliver()) {
  }
  EXPECT_EQ(head(), 512U);  // a message and a head each, of 1024 requests
  fake.Hold(false);
  EXPECT_TRUE(group.transport(0).Progress().ok());
  EXPECT_TRUE(group.transport(0).Flushed());
  EXPECT_EQ(head(), 600U);
  EXPECT_EQ(fake.misuse(), "");
}

TEST(Verbs, ADeviceWithoutRoomForAllCountersIsRefused) {
  FakeDevice device = Device("fake0", "10.0.0.1");
  device.max_qp_wr = 15;
  FakeVerbs fake({device});
  Group group(fake, AllPairs(2, 2, kSlotBytes), 2);
  EXPECT_EQ(group.Connect()[0],
            "fake0: 15 receives in a queue pair; expected at least 16 for the 4 connections of 2 slots with "
            "rank 1");
}

TEST(Verbs, ASleeperIsWokenByACounter) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, OneWay(), 2);
  group.MustConnect();
  Transport& receiver = group.transport(1);
  ASSERT_EQ(receiver.files().size(), 1U);
  pollfd file = {receiver.files()[0], POLLIN, 0};
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(*receiver.Progress());
    ASSERT_TRUE(receiver.PrepareToSleep());
    EXPECT_EQ(poll(&file, 1, 0), 0);
    group.transport(0).Put(0, 8);
    EXPECT_EQ(poll(&file, 1, 0), 1);
    EXPECT_TRUE(*receiver.Progress());
    EXPECT_EQ(poll(&file, 1, 0), 0);  // the event has been read
    // A counter that comes before the sleep forbids it.
    group.transport(0).Put(0, 8);
    EXPECT_FALSE(receiver.PrepareToSleep());
    EXPECT_TRUE(*receiver.Progress());
    receiver.Take(0, false);
    receiver.Take(0, false);
    EXPECT_TRUE(*group.transport(0).Progress());
  }
  group.Disconnect();
  EXPECT_EQ(fake.misuse(), "");
}

TEST(Verbs, EveryFailedRequestNamesPeerAndDevice) {
  for (int status = 1; status <= IBV_WC_GENERAL_ERR; ++status) {
    FakeVerbs fake({Device("fake0", "10.0.0.1")});
    Group group(fake, OneWay(), 2);
    group.MustConnect();
    fake.FailRequest(static_cast<ibv_wc_status>(status));
    group.transport(0).Put(0, 64);
    const StatusOr<bool> progress = group.transport(0).Progress();
    std::string expected = fmt::format("write to rank 1 ({}) over fake0 failed: status {}", Host(), status);
    if (status == IBV_WC_RETRY_EXC_ERR) expected += "; expected an answer within 1879 ms";
    EXPECT_EQ(progress.status().message(), expected);
    const bool silent = status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR;
    EXPECT_EQ(progress.status().code(), silent ? StatusCode::kPeerEnded : StatusCode::kSystem);
    // The first reason stays; more is not posted.
    group.transport(0).Put(0, 64);
    EXPECT_EQ(group.transport(0).Progress().status().message(), expected);
    EXPECT_FALSE(group.transport(0).PrepareToSleep());
    group.Disconnect();
    EXPECT_EQ(fake.misuse(), "");
    EXPECT_EQ(fake.alive(), 0);
  }
}

TEST(Verbs, AFailedCounterIsASignal) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, OneWay(), 2);
  group.MustConnect();
  group.transport(0).Put(0, 64);
  fake.FailRequest(IBV_WC_RETRY_EXC_ERR);
  group.transport(1).Take(0, false);
  EXPECT_EQ(
      group.transport(1).Progress().status().message(),
      fmt::format("signal to rank 0 ({}) over fake0 failed: status 12; expected an answer within 1879 ms",
                  Host()));
}

// A peer that tells what cannot be, by counters of its own that are changed before it puts or takes.
TEST(Verbs, APeersCountersThatCannotBeAreErrorsThatNameIt) {
  struct Case {
    const char* name;
    bool takes;  // the receiver lies to the sender
    uint64_t good, counter;
    const char* expected;
  };
  const Case cases[] = {
      {"beyond the slots", false, 3, 6, "message 6; expected messages 4 to 5, each once"},
      {"before what is taken", false, 3, 2, "message 2; expected messages 4 to 5, each once"},
      {"taken before it was put", true, 3, 4, "4 messages taken; expected 1 to 3"},
      {"less than before", true, 3, 0, "0 messages taken; expected 1 to 3"},
      {"the last number", true, 0, std::numeric_limits<uint64_t>::max(),
       "18446744073709551615 messages taken; expected 0 to 0"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    FakeVerbs fake({Device("fake0", "10.0.0.1")});
    Group group(fake, OneWay(), 2);
    group.MustConnect();
    for (uint64_t i = 0; i < one.good; ++i) {
      group.transport(0).Put(0, 8);
      EXPECT_TRUE(group.transport(1).Progress().ok());
      group.transport(1).Take(0, false);
      EXPECT_TRUE(group.transport(0).Progress().ok());
    }
    const size_t liar = one.takes ? 1 : 0;
    ConnectionCell& cell = group.memory(liar).cells[0];
    (one.takes ? cell.tail : cell.head).store(one.counter - 1);
    if (one.takes) {
      group.transport(1).Take(0, false);
    } else {
      group.transport(0).Put(0, 8);
    }
    EXPECT_EQ(group.transport(1 - liar).Progress().status(),
              SystemError(fmt::format("signal of rank {} ({}) over fake0: {}", liar, Host(), one.expected)));
  }
}

TEST(Verbs, ASignalOfNoConnectionIsAnError) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, AllPairs(3, 1, kSlotBytes), 2);
  for (RemoteConnection& one : group.memory(0).layout.connections)
    if (one.sends && one.peer == Rank(1)) one.peer_cell = 2;  // rank 1's with rank 2
  group.MustConnect();
  group.transport(0).Put(0, 8);
  EXPECT_EQ(
      group.transport(1).Progress().status(),
      SystemError(fmt::format("signal of rank 0 ({}) over fake0: of no connection with it; expected one "
                              "of the plans'",
                              Host())));
}

TEST(Verbs, APeerThatIsGoneDoesNotAnswer) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, AllPairs(3, 1, kSlotBytes), 2);
  group.MustConnect();
  Group other(fake, OneWay(), 2);
  group.Disconnect();
  other.MustConnect();
  group.MustConnect();
  EXPECT_EQ(group.Carry(10).wrong, 0);
  EXPECT_EQ(fake.misuse(), "");
}

TEST(Verbs, FailuresOfPostingAndPolling) {
  struct Case {
    const char* call;
    int code;
    std::string expected;
  };
  const Case cases[] = {
      {"post_send", EINVAL,
       fmt::format("write to rank 1 ({}) over fake0: posting: Invalid argument", Host())},
      {"poll_cq", EIO, "fake0: reading completions failed"},
      {"req_notify_cq", EIO, "fake0: arming completions: Input/output error"},
  };
  for (const Case& one : cases) {
    FakeVerbs fake({Device("fake0", "10.0.0.1")});
    Group group(fake, OneWay(), 2);
    group.MustConnect();
    fake.FailCall(one.call, one.code);
    group.transport(0).Put(0, 64);
    EXPECT_FALSE(group.transport(0).PrepareToSleep());
    EXPECT_EQ(group.transport(0).Progress().status(), SystemError(one.expected));
  }
  // Receives that cannot be posted again.
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, OneWay(), 2);
  group.MustConnect();
  group.transport(0).Put(0, 64);
  fake.FailCall("post_recv", ENOMEM);
  EXPECT_EQ(group.transport(1).Progress().status(),
            SystemError(
                fmt::format("posting receives for rank 0 ({}) over fake0: Cannot allocate memory", Host())));
}

TEST(Verbs, EveryCallThatFailsEndsConnectingOnAllRanks) {
  struct Case {
    const char* call;
    int after;  // good calls of both ranks before
    std::string expected;
  };
  const Case cases[] = {
      {"GetDeviceList", 0, "verbs: no device with an active port; this machine has no device"},
      {"OpenDevice", 0, "verbs: no device with an active port; fake0: opening: Invalid argument"},
      {"QueryDevice", 0, "verbs: no device with an active port; fake0: limits: Invalid argument"},
      {"QueryPort", 0, "verbs: no device with an active port; fake0: port 1: Invalid argument"},
      {"AllocPd", 0, "verbs: no device with an active port; fake0: protection domain: Invalid argument"},
      {"RegMr", 0, "fake0: registering 8192 bytes of slots: Invalid argument"},
      {"CreateCompChannel", 0, "fake0: completion channel: Invalid argument"},
      {"CreateCq", 0, "fake0: completion queue of 16 entries: Invalid argument"},
      {"CreateQp", 0, "fake0: queue pair of 8 requests and 8 receives: Invalid argument"},
      {"ModifyQp", 0, "fake0: preparing a queue pair: Invalid argument"},
      {"ModifyQp", 2, fmt::format("fake0: connecting with fake0 of rank %d ({}): Invalid argument", Host())},
      {"ModifyQp", 5, fmt::format("fake0: connecting with fake0 of rank %d ({}): Invalid argument", Host())},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.call);
    FakeVerbs fake({Device("fake0", "10.0.0.1")});
    Group group(fake, OneWay(), 2);
    fake.FailCall(one.call, EINVAL, one.after);
    const std::vector<std::string> failures = group.Connect();
    const size_t failed = failures[0].starts_with("rank ") ? 1 : 0;
    std::string expected = one.expected;
    if (const size_t at = expected.find("%d"); at != std::string::npos)
      expected.replace(at, 2, std::to_string(1 - failed));
    EXPECT_EQ(failures[failed], expected);
    EXPECT_EQ(failures[1 - failed], fmt::format("rank {}: {}", failed, expected));
    EXPECT_EQ(fake.misuse(), "");
    EXPECT_EQ(fake.alive(), 0);
  }
}

TEST(Verbs, MemoryThatCannotBeLockedHasAHint) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, OneWay(), 2);
  group.options(0).devices = group.options(1).devices = {"fake0"};
  fake.FailCall("RegMr", ENOMEM);
  const std::vector<std::string> failures = group.Connect();
  EXPECT_EQ(
      std::max(failures[0], failures[1], [](const auto& a, const auto& b) { return a.size() < b.size(); }),
      fmt::format("rank {}: fake0: registering 8192 bytes of slots: Cannot allocate memory; hint: "
                  "ulimit -l unlimited",
                  failures[0].starts_with("rank") ? 1 : 0));
}

TEST(Verbs, MemoryOfAGpuIsRegisteredThroughItsFile) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, OneWay(), 2);
  group.memory(1).dmabuf = 77;
  group.MustConnect();
  EXPECT_EQ(fake.dmabufs(), std::vector<int>{77});
  EXPECT_EQ(group.Carry(10).wrong, 0);
  group.Disconnect();
  // A library that is too old.
  Library old = fake.library();
  old.RegDmabufMr = nullptr;
  StatusOr<std::vector<Rail>> rails = OpenRails(old, {}, 1);
  ASSERT_TRUE(rails.ok());
  EXPECT_EQ(RegisterSlots(old, group.memory(1), (*rails)[0]),
            SystemError("fake0: this libibverbs.so.1 has no ibv_reg_dmabuf_mr; expected rdma-core 34"));
}

TEST(Verbs, SlotsLargerThanAMessage) {
  FakeDevice device = Device("fake0", "10.0.0.1");
  device.max_msg_sz = 1024;
  FakeVerbs fake({device});
  Group group(fake, OneWay(), 2);
  EXPECT_EQ(group.Connect()[0],
            "fake0: messages of 1024 bytes; expected slots of no more, but they have 4096");
}

TEST(Verbs, RanksThatDoNotAgreeOnPlans) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, AllPairs(2, 1, kSlotBytes), 2);
  for (RemoteConnection& one : group.memory(0).layout.connections) one.peer_rail = 1;
  EXPECT_EQ(group.Connect(),
            (std::vector<std::string>{fmt::format("rank 1 ({}) has no connection with rank 0 from rail 1 to "
                                                  "rail 0; expected the same plans on all ranks",
                                                  Host()),
                                      fmt::format("rank 0 ({}) has no connection with rank 1 from rail 0 to "
                                                  "rail 0; expected the same plans on all ranks",
                                                  Host())}));
  EXPECT_EQ(fake.misuse(), "");
}

TEST(Verbs, ARankWithoutConnectionsNeedsNoDevice) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Wiring wiring = OneWay();
  wiring.ranks = 3;
  Group group(fake, wiring, 2);
  group.options(2).devices = {"none"};
  group.MustConnect();
  EXPECT_EQ(group.Carry(10).messages, 10);
  EXPECT_TRUE(group.transport(2).files().empty());
  EXPECT_TRUE(group.transport(2).PrepareToSleep());
}

// The devices that two rails take.
struct DeviceCase {
  const char* name;
  std::vector<FakeDevice> devices;
  NetworkOptions options;
  std::string expected;  // names, or the error
};

TEST(VerbsDevices, AreChosenInOrderOfName) {
  const FakeDevice a = Device("mlx5_2", "10.0.0.1"), b = Device("mlx5_10", "10.0.1.1");
  FakeDevice down = Device("mlx5_1", "10.0.2.1"), local = Device("mlx5_0", "fe80::1"),
             iwarp = Device("i0", "10.0.3.1");
  down.active = false;
  iwarp.reliable = false;
  FakeDevice old = Device("mlx5_3", "10.0.4.1");
  old.gid_types = {"IB/RoCE v1"};
  NetworkOptions second, missing, twice;
  second.devices = {"mlx5_10"};
  missing.devices = {"mlx5_10", "mlx5_7"};
  twice.devices = {"mlx5_10", "mlx5_2", "mlx5_1"};
  NetworkOptions inactive;
  inactive.devices = {"mlx5_1"};
  const DeviceCase cases[] = {
      {"numbers", {b, a}, {}, "mlx5_2 mlx5_10 "},
      {"one", {a}, {}, "mlx5_2 "},
      {"inactive ones are left out", {down, a, local, iwarp, old}, {}, "mlx5_2 "},
      {"named", {a, b}, second, "mlx5_10 "},
      {"no more than are used", {a, b, down}, twice, "mlx5_10 mlx5_2 "},
      {"missing", {a, b}, missing, "mlx5_7: no such device; expected one of mlx5_2, mlx5_10"},
      {"missing of none", {}, missing, "mlx5_10: no such device; this machine has none"},
      {"named but inactive", {a, down}, inactive, "mlx5_1: no active port"},
      {"none that will do",
       {down, local, iwarp, old},
       {},
       "verbs: no device with an active port; i0: no reliable queue pairs; expected InfiniBand or RoCE; "
       "mlx5_0: port 1 has no "
       "RoCE v2 address but link-local ones; hint: give its interface an IP address; mlx5_1: no active port; "
       "mlx5_3: "
       "port 1 has no RoCE v2 address but link-local ones; hint: give its interface an IP address"},
      {"none", {}, {}, "verbs: no device with an active port; this machine has no device"},
  };
  for (const DeviceCase& one : cases) {
    SCOPED_TRACE(one.name);
    FakeVerbs fake(one.devices);
    {
      const StatusOr<std::vector<Rail>> rails = OpenRails(fake.library(), one.options, 2);
      std::string names = rails.status().message();
      for (size_t r = 0; rails.ok() && r < rails->size(); ++r) names += (*rails)[r].name + " ";
      EXPECT_EQ(names, one.expected);
    }
    EXPECT_EQ(fake.alive(), 0);
    EXPECT_EQ(fake.misuse(), "");
  }
}

TEST(VerbsAddresses, OwnOneAloneElseAllThatRoute) {
  FakeDevice device = Device("fake0", "fe80::1");
  for (const char* address : {"fd00::1", "10.0.0.1", "10.0.0.1", "192.168.0.1"})
    device.gids.push_back(GidBytesOf(address));
  device.gid_types = {"RoCE v2", "RoCE v2", "IB/RoCE v1", "RoCE v2", "RoCE v2"};
  FakeVerbs fake({device});
  const auto indices = [&](const std::string& own) {
    NetworkOptions options;
    options.address = own;
    std::vector<int> found;
    const StatusOr<std::vector<Rail>> rails = OpenRails(fake.library(), options, 1);
    for (const Gid& gid : (*rails)[0].gids) found.push_back(gid.index);
    return found;
  };
  EXPECT_EQ(indices(""), (std::vector<int>{1, 3, 4}));
  EXPECT_EQ(indices("192.168.0.1"), (std::vector<int>{4}));
  EXPECT_EQ(indices("fd00::1"), (std::vector<int>{1}));
  EXPECT_EQ(indices("10.9.9.9"), (std::vector<int>{1, 3, 4}));
}

TEST(VerbsAddresses, TheClosestPairIsTheSameForBoth) {
  struct Case {
    std::vector<std::string> mine, theirs;
    size_t mine_at, theirs_at;
  };
  const Case cases[] = {
      {{"10.0.0.1"}, {"10.0.0.2"}, 0, 0},
      {{"fd00::1", "10.0.0.1"}, {"fd00::2", "10.0.0.2"}, 1, 1},  // IPv4 before IPv6 where both are as close
      {{"fd00::1", "10.0.0.1"}, {"fd00:0:0:1::2", "10.0.9.2"}, 1, 1},    // IPv4 before IPv6 of two subnets
      {{"10.1.0.1", "10.2.0.1"}, {"10.2.0.9", "10.3.0.9"}, 1, 0},        // one subnet
      {{"10.0.0.1", "192.168.0.1"}, {"10.0.0.1", "192.168.0.2"}, 1, 1},  // an address that both have
      {{"10.0.0.1"}, {"10.0.0.1"}, 0, 0},                                // on one host
      {{"10.0.0.1", "10.0.0.3"}, {"10.0.0.5", "10.0.0.7"}, 0, 0},        // a tie: the least
  };
  for (const Case& one : cases) {
    std::vector<GidBytes> mine, theirs;
    for (const std::string& address : one.mine) mine.push_back(GidBytesOf(address));
    for (const std::string& address : one.theirs) theirs.push_back(GidBytesOf(address));
    const GidPair here = ClosestGids(mine, theirs), there = ClosestGids(theirs, mine);
    EXPECT_EQ(here.mine, one.mine_at) << one.mine[0];
    EXPECT_EQ(here.theirs, one.theirs_at) << one.mine[0];
    EXPECT_EQ(here.mine, there.theirs);
    EXPECT_EQ(here.theirs, there.mine);
  }
}

TEST(VerbsConnect, RoCEByAddressInfiniBandByLid) {
  FakeDevice roce = Device("fake0", "fe80::9");
  roce.gids.push_back(GidBytesOf("10.0.0.1"));
  FakeDevice infiniband{.name = "fake1", .ethernet = false, .lid = 17, .mtu = IBV_MTU_2048};
  FakeVerbs fake({roce, infiniband});
  for (const char* name : {"fake0", "fake1"}) {
    Group group(fake, OneWay(), 2);
    group.options(0).devices = group.options(1).devices = {name};
    group.MustConnect();
  }
  const std::vector<ibv_qp_attr> steps = fake.connects();
  ASSERT_EQ(steps.size(), 8U);
  for (const ibv_qp_attr& step : steps) {
    const bool first = &step < &steps[4];
    if (step.qp_state == IBV_QPS_RTR) {
      EXPECT_EQ(step.ah_attr.is_global, first ? 1 : 0);
      EXPECT_EQ(step.ah_attr.grh.sgid_index, first ? 1 : 0);
      EXPECT_EQ(std::memcmp(step.ah_attr.grh.dgid.raw, GidBytesOf("10.0.0.1").data(), 16) == 0, first);
      EXPECT_EQ(step.ah_attr.dlid, first ? 0 : 17);
      EXPECT_EQ(step.path_mtu, first ? IBV_MTU_4096 : IBV_MTU_2048);
    } else {
      EXPECT_EQ(step.timeout, 16);
      EXPECT_EQ(step.retry_cnt, 6);
      EXPECT_EQ(step.rnr_retry, 7);
    }
  }
}

TEST(VerbsConnect, TwoKindsOfNetworkAreRefused) {
  FakeVerbs fake({Device("fake0", "10.0.0.1"), {.name = "fake1", .ethernet = false, .lid = 17}});
  Group group(fake, OneWay(), 2);
  group.options(0).devices = {"fake0"};
  group.options(1).devices = {"fake1"};
  EXPECT_EQ(
      group.Connect(),
      (std::vector<std::string>{
          fmt::format("fake0 is Ethernet and fake1 of rank 1 ({}) is InfiniBand; expected two of a kind",
                      Host()),
          fmt::format("fake1 is InfiniBand and fake0 of rank 0 ({}) is Ethernet; expected two of a kind",
                      Host())}));
}

TEST(VerbsConnect, AMissingDeviceIsSaidWhereItsRailCannotConnect) {
  FakeVerbs fake({Device("fake0", "10.0.0.1"), Device("fake1", "10.0.1.1")});
  Group group(fake, Over(OneWay(), Rails{1, 1}), 2);
  group.options(1).devices = {"fake0"};
  fake.FailCall("ModifyQp", ETIMEDOUT, 2);
  const std::vector<std::string> failures = group.Connect();
  const bool at_receiver = failures[0].starts_with("rank ");
  EXPECT_EQ(
      failures[at_receiver ? 1 : 0],
      at_receiver
          ? fmt::format("fake0: connecting with fake1 of rank 0 ({}): Connection timed out; this rank's "
                        "active devices for rail 1: 1",
                        Host())
          : fmt::format("fake1: connecting with fake0 of rank 1 ({0}): Connection timed out; rank 1 "
                        "({0})'s active devices for rail 1: 1",
                        Host()));
}

TEST(VerbsConnect, ABlobOfAnotherTransportIsRefused) {
  FakeVerbs fake({Device("fake0", "10.0.0.1")});
  Group group(fake, OneWay(), 2);
  NetworkOptions& options = group.options(0);
  options.all_gather = [](std::string_view mine) -> StatusOr<std::vector<std::string>> {
    return std::vector<std::string>{std::string(mine), std::string(40, '\0') + "x"};
  };
  EXPECT_EQ(
      ConnectOver(&fake.library(), group.memory(0), options).status(),
      InvalidInput(
          "rank 1: what it tells is not of the verbs transport; expected the same transport on all ranks"));
}

TEST(VerbsConnect, TimeoutsFitTheLimit) {
  using std::chrono::nanoseconds, std::chrono::seconds;
  EXPECT_EQ(TimeoutExponent(seconds(30)), 16);
  EXPECT_EQ(TimeoutExponent(seconds(10)), 15);
  EXPECT_EQ(TimeoutExponent(seconds(120)), 18);
  EXPECT_EQ(TimeoutExponent(nanoseconds(1)), 12);
  EXPECT_EQ(TimeoutExponent(nanoseconds::max()), 20);
  for (const int64_t s : {10, 30, 60, 120})
    EXPECT_LE(AnswerLimit(TimeoutExponent(seconds(s))) * 8, seconds(s));
}

// The real library, where there is no device.
TEST(VerbsLibrary, IsOpenedWhenAskedFor) {
  const StatusOr<const Library*> library = LoadLibrary();
  ASSERT_TRUE(library.ok()) << library.status().message();  // libibverbs1 is needed to check
  int count = 0;
  if (ibv_device** list = (*library)->GetDeviceList(&count); list != nullptr)
    (*library)->FreeDeviceList(list);
  if (count > 0) GTEST_SKIP() << "skipped: this machine has " << count << " verbs devices";
  EXPECT_EQ(Available(), SystemError("verbs: no device with an active port; this machine has no device"));
  EXPECT_STREQ((*library)->StatusText(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
}

}  // namespace
}  // namespace xccl::verbs
