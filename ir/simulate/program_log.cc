#include "ir/simulate/program_log.h"

namespace xccl {

void ProgramLog::Begin(bool blocking_model, int32_t nodes, int32_t runners, int32_t instances, int32_t fifos,
                       int32_t links) {
  *this = ProgramLog();
  blocking = blocking_model;
  instances_ = instances;
  waits_ps.resize(static_cast<size_t>(nodes));
  runners_.resize(static_cast<size_t>(runners));
  done_.assign(static_cast<size_t>(nodes) * static_cast<size_t>(instances), -1);
  freed_by_.assign(static_cast<size_t>(fifos), -1);
  arrived_by_.assign(static_cast<size_t>(fifos), -1);
  on_link_.assign(static_cast<size_t>(links), -1);
}

void ProgramLog::Block(int32_t id, ProgramWait why, int32_t what, int64_t now) {
  Runner& runner = runners_[static_cast<size_t>(id)];
  if (runner.why == why && runner.what == what) return;
  if (runner.why != ProgramWait::kNothing)
    runner.waited_ps[static_cast<size_t>(runner.why)] += now - runner.blocked_ps;
  runner.why = why;
  runner.what = what;
  runner.blocked_ps = now;
}

// Returns the event that has just ended the runner's wait.
int32_t ProgramLog::CauseOf(const Runner& runner, int32_t instance) const {
  switch (runner.why) {
    case ProgramWait::kNothing:
      return runner.last;
    case ProgramWait::kThreadblock:
    case ProgramWait::kHandOff:
      return done_[static_cast<size_t>(runner.what) * static_cast<size_t>(instances_) +
                   static_cast<size_t>(instance)];
    case ProgramWait::kMessage:
      return arrived_by_[static_cast<size_t>(runner.what)];
    case ProgramWait::kSlot:
      return freed_by_[static_cast<size_t>(runner.what)];
    case ProgramWait::kLink:
      break;
  }
  return -1;
}

int32_t ProgramLog::BeginInstruction(int32_t id, int32_t node, int32_t pass, int64_t now, int64_t moved_ps) {
  Runner& runner = runners_[static_cast<size_t>(id)];
  if (runner.why != ProgramWait::kNothing)
    runner.waited_ps[static_cast<size_t>(runner.why)] += now - runner.blocked_ps;
  for (size_t w = 0; w < kNumProgramWaits; ++w) waits_ps[static_cast<size_t>(node)][w] += runner.waited_ps[w];
  runner.current = static_cast<int32_t>(instructions.size());
  instructions.push_back(
      {node, pass, runner.reached_ps, now, now, moved_ps, runner.why, CauseOf(runner, id % instances_), -1});
  runner.why = ProgramWait::kNothing;
  runner.waited_ps = {};
  return runner.current;
}

void ProgramLog::EndInstruction(int32_t id, int64_t now) {
  Runner& runner = runners_[static_cast<size_t>(id)];
  Instruction& instruction = instructions[static_cast<size_t>(runner.current)];
  instruction.end_ps = now;
  done_[static_cast<size_t>(instruction.node) * static_cast<size_t>(instances_) +
        static_cast<size_t>(id % instances_)] = runner.current;
  runner.last = runner.current;
  runner.reached_ps = now;
}

void ProgramLog::AddHop(LinkId link, int64_t queued_ps, int64_t start_ps, int64_t end_ps,
                        MessageLog& message) {
  int32_t& on_link = on_link_[link.index()];
  const int32_t hop = static_cast<int32_t>(hops.size());
  hops.push_back(
      {link, message.sender, message.head, message.tail, on_link, queued_ps, start_ps, end_ps, end_ps});
  if (message.head < 0) {
    Instruction& sender = instructions[static_cast<size_t>(message.sender)];
    sender.first_hop = hop;
    waits_ps[static_cast<size_t>(sender.node)][static_cast<size_t>(ProgramWait::kLink)] +=
        start_ps - queued_ps;
  }
  on_link = message.head = message.tail = hop;
}

}  // namespace xccl
