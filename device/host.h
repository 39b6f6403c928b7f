// Kernels on the host, where a threadblock is a thread. Runs a HostKernel, which generated source defines,
// with the same LaunchArgs as on a GPU. Type, operator and protocol are chosen at run time, and the code
// that moves elements is compiled once (host.cc), so that generated source compiles quickly.
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
               char* destination1, int64_t bytes, uint32_t marks);
void MoveGroupRange(HostNumbers numbers, const GroupMove& args);
void FillNeutral(HostNumbers numbers, char* slots, int64_t bytes);
bool SwitchReduces(const HostNumbers& numbers);
uint64_t NeutralKey(const HostNumbers& numbers);
template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl(HostNumbers numbers, LlArgs args, const Waiter* who);
template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl128(HostNumbers numbers, LlArgs args, const Waiter* who);

// A Block whose protocol, slots and tables are run-time values, so that generated code is plain calls.
class HostBlock {
 public:
  virtual ~HostBlock() = default;
  virtual const LaunchArgs& args() const = 0;
  virtual int32_t rank() const = 0;
  virtual int32_t block() const = 0;
  virtual End Open(int32_t index, int32_t connection, int32_t peer) = 0;
  virtual End OpenGroup(int32_t index, int32_t group) = 0;
  virtual void Introduce(const End& end) = 0;
  virtual void Meet(const End& end) = 0;
  virtual void Enter() = 0;
  virtual bool NextPass(int32_t instructions) = 0;
  virtual void Drain(const End& end) = 0;
  virtual void Leave() = 0;
  virtual void Close(const End& end) = 0;
  virtual void CloseGroup(const End& end) = 0;
  virtual int64_t Elements(int32_t part) const = 0;
  virtual const char* Input(int32_t position) const = 0;
  virtual char* Output(int32_t position) const = 0;
  virtual char* Scratch(int32_t run, int64_t before, int64_t skip) const = 0;
  virtual char* PeerInput(Direct mode, const End& end, int32_t position) const = 0;
  virtual char* PeerOutput(Direct mode, const End& end, int32_t position) const = 0;
  virtual char* PeerScratch(Direct mode, const End& end, int32_t run, int64_t before, int64_t skip) const = 0;
  virtual bool Reaches(Direct mode, const End& end, Buffer buffer) const = 0;
  virtual bool Lends(Direct mode, const End& end, Buffer buffer) const = 0;
  virtual void Begin(int32_t threadblock, int32_t instruction) = 0;
  virtual void AwaitBlock(int32_t block, int32_t instructions, int32_t index) = 0;
  virtual void AwaitMessage(const End& from) = 0;
  virtual void AwaitSlot(const End& to, bool direct) = 0;
  virtual void AwaitMessages(const End& from) = 0;
  virtual void AwaitSlots(const End& to) = 0;
  virtual bool Ready() = 0;
  virtual void MoveAny(Op op, uint32_t marks, const End& from, const End& to, const AnyChunks& run,
                       const Places& at, bool lends_put, bool lends_get) = 0;
  virtual void FinishAny(Op op, bool signals, End& from, End& to) = 0;
  virtual void MoveGroup(Op op, uint32_t marks, const End& from, const End& to, const AnyChunks& run,
                         const Places& at) = 0;
  virtual void FinishGroup(Op op, bool signals, End& from, End& to) = 0;
};

template <Op kOp, uint32_t kTotal>
void Move(HostBlock& b, uint32_t marks, const End& from, const End& to, const Chunks<kTotal>& run,
          const Places& at, bool lends_put, bool lends_get) {
  b.MoveAny(kOp, marks, from, to, {run.part, run.before, run.weight, run.count, static_cast<int32_t>(kTotal)},
            at, lends_put, lends_get);
}
template <Op kOp>
void Move(HostBlock& b, uint32_t marks, const End& from, const End& to, const AnyChunks& run,
          const Places& at, bool lends_put, bool lends_get) {
  b.MoveAny(kOp, marks, from, to, run, at, lends_put, lends_get);
}
template <Op kOp, bool kSignals>
void Finish(HostBlock& b, End& from, End& to) {
  b.FinishAny(kOp, kSignals, from, to);
}
template <Op kOp, uint32_t kTotal>
void MoveGroup(HostBlock& b, uint32_t marks, const End& from, const End& to, const Chunks<kTotal>& run,
               const Places& at) {
  b.MoveGroup(kOp, marks, from, to,
              {run.part, run.before, run.weight, run.count, static_cast<int32_t>(kTotal)}, at);
}
template <Op kOp>
void MoveGroup(HostBlock& b, uint32_t marks, const End& from, const End& to, const AnyChunks& run,
               const Places& at) {
  b.MoveGroup(kOp, marks, from, to, run, at);
}
template <Op kOp, bool kSignals>
void FinishGroup(HostBlock& b, End& from, End& to) {
  b.FinishGroup(kOp, kSignals, from, to);
}
template <uint32_t kTotal>
int64_t Share(const HostBlock& b, int32_t weight) {
  return ShareOf<kTotal>(b.Elements(0), weight);
}

struct HostKernel {
  KernelInfo info;
  int32_t members;                // n of avg
  bool messages_order;            // only messages order some accesses
  void (*run)(HostBlock& block);  // runs one block to its end
};

// The interpreter kernel for a program's table.
HostKernel InterpreterOnHost(const int32_t* table, int32_t instances);

// Runs all blocks of a launch, one thread each; returns when all are done.
void RunOnHost(const HostKernel& kernel, const LaunchArgs& args, Type type, Operator op, Protocol protocol);

}  // namespace xccl::device
