// Kernels on the host, where a threadblock is one thread or a few. Runs a HostKernel, which generated source
// defines, with the same LaunchArgs as on a GPU. Type, operator and protocol are chosen at run time, and the
// code that moves elements is compiled once (host.cc), so that generated source compiles quickly.
#pragma once

#include "device/block.h"

namespace xccl::device {

struct HostNumbers {
  static constexpr bool kScales = true, kFinishes = true;
  Type type = Type::kFloat;
  Operator the_op = Operator::kSum;
  int32_t members = 1;
  int64_t bytes() const;
  bool scales() const;
  bool finishes() const;
};

template <int kSources, int kDestinations>
void MoveRange(HostNumbers numbers, const char* source0, const char* source1, char* destination0,
               char* destination1, int64_t bytes, uint32_t marks, int32_t threads);
void MoveSwitchRange(HostNumbers numbers, const SwitchMove& args);
void MoveGroupRange(HostNumbers numbers, const GroupMove& args);
bool SwitchReduces(const HostNumbers& numbers);
bool SwitchReducesBuffers(const HostNumbers& numbers);
uint64_t NeutralBits(const HostNumbers& numbers);
template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl(HostNumbers numbers, LlArgs args, const Waiter* who);
template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl128(HostNumbers numbers, LlArgs args, const Waiter* who);
bool FanInLl(HostNumbers numbers, const FanInArgs& args, const Waiter* who);
bool FanInLl128(HostNumbers numbers, const FanInArgs& args, const Waiter* who);

// A Block whose protocol, slots and tables are run-time values, so that one compilation serves all.
struct HostConfig {
  using Numbers = HostNumbers;
  static constexpr int32_t kEnds = 32;
  Protocol kProtocol;
  bool kSimple;
  int32_t kSlots;
  bool kTables, kMessagesOrder;
  static constexpr bool Has(Protocol) { return true; }
};
using HostBlock = Block<HostConfig>;
extern template class Block<HostConfig>;

struct HostKernel {
  KernelInfo info;
  int32_t members;                // n of avg
  bool messages_order;            // only messages order some accesses
  void (*run)(HostBlock& block);  // runs one block to its end
};

// The interpreter kernel for a program's table.
HostKernel InterpreterOnHost(const int32_t* table, int32_t instances);

// A block's threads and the lanes of its warps. Requires: `lanes` is a power of two and divides `threads`.
struct HostShape {
  int32_t threads = 1, lanes = 1;
};

// Runs all blocks of a launch under the calling thread's host_guard; returns when all are done.
void RunOnHost(const HostKernel& kernel, const LaunchArgs& args, Type type, Operator op, Protocol protocol,
               HostShape shape = {});

}  // namespace xccl::device
