// Devices in memory behind the table of verbs::Library. Requests of a queue pair arrive in order, one by one;
// memory, keys, states, room in queues and the order of destruction are checked as a device would. Calls and
// requests fail on demand. One FakeVerbs exists at a time. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/rdma/verbs/library.h"
#include "runtime/rdma/verbs/rail.h"

namespace xccl::verbs {

struct FakeDevice {
  std::string name = "fake0";
  bool active = true;
  bool ethernet = true;
  bool reliable = true;  // else of a transport without reliable queue pairs
  std::vector<GidBytes> gids = {};
  std::vector<std::string> gid_types = {};  // as sysfs has them; missing ones are "RoCE v2"
  uint16_t lid = 0;
  int max_qp_wr = 1024, max_cqe = 4096;
  uint32_t max_msg_sz = 1 << 20;
  uint32_t max_inline = 64;
  ibv_mtu mtu = IBV_MTU_4096;
};

class FakeVerbs {
 public:
  explicit FakeVerbs(std::vector<FakeDevice> devices);
  ~FakeVerbs();
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  const Library& library() const;
  // The call of this name ("CreateQp", "post_send") fails with this errno, once, after `after` good ones.
  void FailCall(const std::string& call, int code, int after = 0);
  // The next request that arrives completes with this status instead.
  void FailRequest(ibv_wc_status status);
  // Messages, but no counters, stay out of the memory that they are written to until Show.
  void Withhold();
  void Show();
  // Requests stay on the wire until Deliver.
  void Hold(bool hold);
  // Delivers the oldest request of a queue pair that has one; false: none has.
  bool Deliver();

  // The misuse of verbs that was seen, in words; "" if there was none.
  std::string misuse() const;
  int64_t alive() const;                      // objects not destroyed
  int64_t most_queues() const;                // completion queues at one time
  int64_t waits_for_receives() const;         // requests that found no receive
  std::vector<ibv_qp_attr> connects() const;  // attributes of connecting, in order
  std::vector<int> dmabufs() const;           // files registered

 private:
  struct State;
  std::unique_ptr<State> state_;
  static State* current;
  friend struct FakeCalls;
};

// An address as RoCE has it: "10.0.0.1" or "fd00::1".
GidBytes GidBytesOf(const std::string& address);

}  // namespace xccl::verbs
