// The log of one run of a program's simulation: every instruction of every pass, every message on every link,
// and the event that let each of them begin. RunProgram writes the log; the critical path and the rows of a
// trace are read from it. A runner is an instance of a threadblock, a fifo one of a connection.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/simulate/trace_program.h"

namespace xccl {

// The entries of the log that a message in flight refers to. Hops are indices in ProgramLog::hops.
struct MessageLog {
  int32_t sender = -1;  // index in ProgramLog::instructions
  int32_t head = -1;    // the hop over which its first byte came; -1: none yet
  int32_t tail = -1;    // the hop over which its last byte came
};

class ProgramLog {
 public:
  struct Instruction {
    int32_t node = 0, pass = 0;
    // When its threadblock was done with the instruction before it, when it began, and when it was done.
    int64_t reached_ps = 0, begin_ps = 0, end_ps = 0;
    int64_t moved_ps = 0;                       // when the threadblock has moved the bytes at its own rate
    ProgramWait cause = ProgramWait::kNothing;  // what it waited for last
    int32_t cause_event = -1;                   // an instruction, or for a message its last hop; -1: none
    int32_t first_hop = -1;                     // first hop of a send
  };
  struct Hop {
    LinkId link;
    int32_t sender = -1, head = -1, tail = -1;  // as in MessageLog, before this hop
    int32_t before = -1;                        // the hop before it on its link
    int64_t queued_ps = 0, start_ps = 0, end_ps = 0;
    int64_t sent_ps = 0;  // end_ps, or later where the threadblock that sends is slower than the link
  };
  std::vector<Instruction> instructions;
  std::vector<Hop> hops;
  // By instruction of the program: the time that its threadblock waited for it, all passes together.
  std::vector<std::array<int64_t, kNumProgramWaits>> waits_ps;
  bool last_is_hop = false;
  int32_t last_event = -1;

  bool blocking = false;

  void Begin(bool blocking_model, int32_t nodes, int32_t runners, int32_t instances, int32_t fifos,
             int32_t links);
  // Notes that the runner cannot go on at `now`. `what`: the instruction that it waits for, or a fifo.
  void Block(int32_t runner, ProgramWait why, int32_t what, int64_t now);
  // Notes that an instruction begins. Returns its index in `instructions`.
  int32_t BeginInstruction(int32_t runner, int32_t node, int32_t pass, int64_t now, int64_t moved_ps);
  void EndInstruction(int32_t runner, int64_t now);
  // Notes that the instruction which the runner has just ended frees a slot of the fifo.
  void Free(int32_t runner, int32_t fifo) {
    freed_by_[static_cast<size_t>(fifo)] = runners_[static_cast<size_t>(runner)].last;
  }
  void Arrive(int32_t fifo, const MessageLog& message) {
    arrived_by_[static_cast<size_t>(fifo)] = message.tail;
  }
  // Notes that a link carries a message. The hop becomes the head and the tail of the message.
  void AddHop(LinkId link, int64_t queued_ps, int64_t start_ps, int64_t end_ps, MessageLog& message);
  void DelayHop(const MessageLog& message, int64_t sent_ps) {
    hops[static_cast<size_t>(message.head)].sent_ps = sent_ps;
  }
  void LastIsHop(const MessageLog& message) {
    last_is_hop = true;
    last_event = message.tail;
  }
  void LastIsInstruction(int32_t runner) {
    last_is_hop = false;
    last_event = runners_[static_cast<size_t>(runner)].current;
  }

 private:
  struct Runner {
    int64_t reached_ps = 0, blocked_ps = 0;
    ProgramWait why = ProgramWait::kNothing;
    int32_t what = -1;
    std::array<int64_t, kNumProgramWaits> waited_ps = {};  // since reached_ps, without the current wait
    int32_t current = -1, last = -1;  // instructions that it runs, and that it ran before
  };
  int32_t CauseOf(const Runner& runner, int32_t instance) const;

  int32_t instances_ = 1;
  std::vector<Runner> runners_;
  std::vector<int32_t> done_;  // by instruction of the program and instance: its last index in `instructions`
  std::vector<int32_t> freed_by_, arrived_by_;  // by fifo
  std::vector<int32_t> on_link_;                // by link: the last hop
};

}  // namespace xccl
