// The interpreter kernel: one fixed source for all programs, which it reads from a table in memory (written
// by runtime/kernel_table.h). It uses the same Block and the same memory orders as generated code, but
// loads every number. It runs plans that nobody has compiled and programs too large to emit, and is the
// baseline for generated code.
//
// The table consists of 32-bit words. First the header: blocks per rank, slots, parts differ, members;
// then, for every rank and block, the offset of its record, or 0. Then the records:
//
// - block: instructions, offset of the first instruction, then two ends (from, to) of four words each:
//   connection (-1: none, -2 - k: the rank's group k), peer, puts, gets (0, kDirectPeers, kDirectSwitch)
//
// - instruction: its number of words, opcode, marks, threadblock, index, receive mode, send mode, signals,
//   buffer that sends, buffer that receives, put's buffer, number of dependencies, number of runs; then those
//
// - dependency: block, its instructions, index
//
// - run: part, before, weight, count, total, then four places: src, dst, put, get
//
// - place: buffer (-1: none), position; for scratch also before and total of the scratch run, the number
//   of totals, then for each total the weight before
#pragma once

#include "device/block.h"

namespace xccl::device {

inline constexpr int32_t kTableHeaderWords = 4, kTableBlockWords = 10, kTableInstructionWords = 13;

template <class N, Protocol kProtocolOf>
struct InterpretConfig {
  using Numbers = N;
  static constexpr Protocol kProtocol = kProtocolOf;
  static constexpr bool kSimple = kProtocol == Protocol::kSimple;
  static constexpr int32_t kEnds = 2;
  static constexpr bool kMessagesOrder = true;
  XCCL_DEVICE static constexpr bool Has(Protocol protocol) { return protocol == kProtocol; }
  int32_t kSlots;
  bool kTables;
};

XCCL_DEVICE int64_t ShareAny(int64_t elements, int32_t weight, int32_t total) {
  return AnyChunks{0, 0, 0, 0, total}.Share(elements, weight);
}

// Reads the words of one instruction.
struct TableReader {
  const int32_t* at;
  XCCL_DEVICE int32_t Next() { return *at++; }
};

// Reads the address of a place. `end` is the peer's end, or null for this rank's own memory.
template <class B>
XCCL_DEVICE char* TablePlace(const B& b, TableReader& words, int32_t part, const End* end, Direct mode) {
  const int32_t buffer = words.Next(), position = words.Next();
  if (buffer < 0) return nullptr;
  if (buffer != static_cast<int32_t>(Buffer::kScratch)) {
    if (buffer == static_cast<int32_t>(Buffer::kInput))
      return end != nullptr ? b.PeerInput(mode, *end, position) : const_cast<char*>(b.Input(position));
    return end != nullptr ? b.PeerOutput(mode, *end, position) : b.Output(position);
  }
  const int64_t elements = b.Elements(part);
  const int32_t before = words.Next(), total = words.Next(), totals = words.Next();
  int64_t sum = 0;
  for (int32_t t = 0; t < totals; ++t) {
    const int32_t of = words.Next(), weight = words.Next();
    sum += ShareAny(elements, weight, of);
  }
  const int64_t skip = ShareAny(elements, before, total);
  return end != nullptr ? b.PeerScratch(mode, *end, position, sum, skip) : b.Scratch(position, sum, skip);
}

// kGroups: the program may have groups.
template <bool kGroups, class B>
struct Interpreter {
  B& b;
  End from{}, to{};
  int32_t op = 0, marks = 0, signals = 0;
  Direct receive = Direct::kNo, send = Direct::kNo;
  bool from_group = false, to_group = false;  // the end is a group's

  // kGroup: one of the ends is a group's; kOp is then ignored.
  template <Op kOp, bool kGroup>
  XCCL_DEVICE void Runs(TableReader words, int32_t runs, bool lends_put, bool lends_get) {
    for (int32_t r = 0; r < runs; ++r) {
      AnyChunks run;
      run.part = words.Next();
      run.before = words.Next();
      run.weight = words.Next();
      run.count = words.Next();
      run.total = words.Next();
      Places at;
      at.src = TablePlace(b, words, run.part, nullptr, Direct::kNo);
      at.dst = TablePlace(b, words, run.part, nullptr, Direct::kNo);
      at.put = TablePlace(b, words, run.part, &to, send);
      at.get = TablePlace(b, words, run.part, &from, receive);
      if constexpr (kGroup) {
        b.MoveGroup(static_cast<Op>(op), static_cast<uint32_t>(marks), from, to, run, at);
      } else {
        Move<kOp>(b, static_cast<uint32_t>(marks), from, to, run, at, lends_put, lends_get);
      }
    }
  }
  template <Op kOp>
  XCCL_DEVICE void Do(TableReader words, int32_t runs, bool lends_put, bool lends_get) {
    if (b.Ready()) Runs<kOp, false>(words, runs, lends_put, lends_get);
    if (signals != 0) {
      Finish<kOp, true>(b, from, to);
    } else {
      Finish<kOp, false>(b, from, to);
    }
  }

  XCCL_DEVICE void Instruction(TableReader words) {
    words.Next();
    op = words.Next();
    marks = words.Next();
    const int32_t threadblock = words.Next(), index = words.Next();
    receive = static_cast<Direct>(words.Next());
    send = static_cast<Direct>(words.Next());
    signals = words.Next();
    const Buffer sent = static_cast<Buffer>(words.Next()), received = static_cast<Buffer>(words.Next());
    const Buffer put = static_cast<Buffer>(words.Next());
    const int32_t dependencies = words.Next(), runs = words.Next();
    b.Begin(threadblock, index);
    for (int32_t d = 0; d < dependencies; ++d) {
      const int32_t block = words.Next(), instructions = words.Next(), on = words.Next();
      b.AwaitBlock(block, instructions, on);
    }
    const Op what = static_cast<Op>(op);
    const bool lends_put = IsPut(receive) && b.Lends(receive, from, received);
    const bool lends_get = IsGet(send) && b.Lends(send, to, sent);
    const bool receives = Receives(what), sends = Sends(what);
    if constexpr (kGroups) {
      if (receives && from_group) b.AwaitMessages(from);
      if (sends && to_group) b.AwaitSlots(to);
    }
    if (receives && !from_group) b.AwaitMessage(from);
    if (sends && !to_group)
      b.AwaitSlot(to, !BySwitch(send) && (lends_get || (IsPut(send) && b.Reaches(send, to, put))));
    if constexpr (kGroups) {
      if ((receives && from_group) || (sends && to_group)) {
        if (b.Ready()) Runs<Op::kNop, true>(words, runs, false, false);
        b.FinishGroup(what, signals != 0, from, to);
        return;
      }
    }
    switch (what) {
      case Op::kSend:
        return Do<Op::kSend>(words, runs, lends_put, lends_get);
      case Op::kRecv:
        return Do<Op::kRecv>(words, runs, lends_put, lends_get);
      case Op::kRecvCopySend:
        return Do<Op::kRecvCopySend>(words, runs, lends_put, lends_get);
      case Op::kRecvReduceSend:
        return Do<Op::kRecvReduceSend>(words, runs, lends_put, lends_get);
      case Op::kRecvReduceCopy:
        return Do<Op::kRecvReduceCopy>(words, runs, lends_put, lends_get);
      case Op::kRecvReduceCopySend:
        return Do<Op::kRecvReduceCopySend>(words, runs, lends_put, lends_get);
      case Op::kCopy:
        return Do<Op::kCopy>(words, runs, lends_put, lends_get);
      case Op::kReduce:
        return Do<Op::kReduce>(words, runs, lends_put, lends_get);
      case Op::kNop:
        return Do<Op::kNop>(words, 0, false, false);
    }
  }
  XCCL_DEVICE static bool IsPut(Direct mode) {
    return mode == Direct::kPut || mode == Direct::kPutOutOfPlace || mode == Direct::kSwitchPut;
  }
  XCCL_DEVICE static bool IsGet(Direct mode) {
    return mode == Direct::kGet || mode == Direct::kGetOutOfPlace || mode == Direct::kSwitchGet;
  }
};

template <bool kGroups, class B>
XCCL_DEVICE void InterpretBlock(B& b, const int32_t* table) {
  const int32_t record = table[kTableHeaderWords + b.rank() * table[0] + b.block()];
  if (record == 0) return;
  TableReader words = {table + record};
  const int32_t instructions = words.Next(), first = words.Next();
  const int32_t from = words.Next(), from_peer = words.Next(), from_puts = words.Next(),
                from_gets = words.Next();
  const int32_t to = words.Next(), to_peer = words.Next(), to_puts = words.Next(), to_gets = words.Next();
  Interpreter<kGroups, B> interpreter{b};
  interpreter.from_group = from < -1;
  interpreter.to_group = to < -1;
  if (from >= 0) interpreter.from = b.Open(0, from, from_peer);
  if (to >= 0) interpreter.to = b.Open(1, to, to_peer);
  if constexpr (kGroups) {
    if (from < -1) interpreter.from = b.OpenGroup(0, -2 - from);
    if (to < -1) interpreter.to = b.OpenGroup(1, -2 - to);
  }
  if (from >= 0 && from_puts != 0) b.Introduce(interpreter.from, from_puts);
  if (to >= 0 && to_gets != 0) b.Introduce(interpreter.to, to_gets);
  if (from >= 0 && from_puts != 0) b.Announce(interpreter.from, from_puts);
  if (to >= 0 && to_gets != 0) b.Announce(interpreter.to, to_gets);
  if constexpr (kGroups) {
    const bool gets = from < -1 && from_gets != 0, puts = to < -1 && to_puts != 0;
    if (gets && puts) {
      b.Agree(interpreter.from, interpreter.to);
    } else if (gets) {
      b.Agree(interpreter.from);  // not by a choice of the two, which would put both into local memory
    } else if (puts) {
      b.Agree(interpreter.to);
    }
    if (from_puts == kDirectSwitch) b.Meet(interpreter.from, kDirectSwitch);
    if (to_gets == kDirectSwitch) b.Meet(interpreter.to, kDirectSwitch);
  }
  if (from_gets == kDirectPeers) b.Meet(interpreter.from);
  if (to_puts == kDirectPeers) b.Meet(interpreter.to);
  b.Enter();
  while (b.NextPass(instructions)) {
    const int32_t* at = table + first;
    for (int32_t i = 0; i < instructions; ++i) {
      interpreter.Instruction({at});
      at += at[0];
    }
  }
  if (to_gets != 0) b.Drain(interpreter.to);
  b.Leave();
  if (from >= 0) b.Close(interpreter.from);
  if (to >= 0) b.Close(interpreter.to);
  if constexpr (kGroups) {
    if (from < -1) b.CloseGroup(interpreter.from);
    if (to < -1) b.CloseGroup(interpreter.to);
  }
}

#ifdef __CUDACC__
#ifndef XCCL_TYPE
#define XCCL_TYPE float
#endif
#ifndef XCCL_OPERATOR
#define XCCL_OPERATOR kSum
#endif
#ifndef XCCL_PROTOCOL
#define XCCL_PROTOCOL kSimple
#endif
// XCCL_GROUPS is 1 for programs with groups, whose code takes registers from the rest. XCCL_THREADS for
// simple is less than generated code's 512 and, with groups, 384: this kernel needs more registers, and would
// spill them (half and avg on sm_90: 202 with groups).
#ifndef XCCL_GROUPS
#define XCCL_GROUPS 0
#endif
#ifndef XCCL_THREADS
#define XCCL_THREADS (Protocol::XCCL_PROTOCOL == Protocol::kSimple && XCCL_GROUPS == 0 ? 384 : 256)
#endif
// Blocks per rank and slots come from the table.
extern "C" __constant__ const KernelInfo xccl_kernel_info = {.threads = XCCL_THREADS,
                                                             .direct = 1,
                                                             .protocol = Protocol::XCCL_PROTOCOL,
                                                             .type = kTypeOf<XCCL_TYPE>,
                                                             .op = Operator::XCCL_OPERATOR};

extern "C" __global__ void __launch_bounds__(XCCL_THREADS, 1)
    xccl_kernel(const __grid_constant__ LaunchArgs args) {
  using C = InterpretConfig<Numbers<XCCL_TYPE, Operator::XCCL_OPERATOR>, Protocol::XCCL_PROTOCOL>;
  const int32_t* const table = args.table;
  Block<C> b(C{table[1], table[2] != 0}, args, {table[3]}, BlockIndex(), table[0]);
  InterpretBlock<XCCL_GROUPS != 0>(b, table);
}
#endif

}  // namespace xccl::device
