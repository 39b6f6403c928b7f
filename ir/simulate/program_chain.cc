// Goes back from the last event to its cause, again and again. An instruction ends when its threadblock has
// moved its bytes and the first link of its message has carried them, whichever is later. An instruction
// begins when the last thing that it waited for is there. A link is done with a message when it has carried
// the message and the last byte has come from the link before, whichever is later. A link starts a message
// when the link becomes free, or when the first byte comes. The time between two such instants is a piece of
// the path.
#include "ir/simulate/program_chain.h"

#include <algorithm>

namespace xccl {
namespace {

class Walk {
 public:
  Walk(const ProgramLog& log, const ProgramIndex& index, const Topology& topology)
      : log_(log), index_(index), topology_(topology) {}

  StatusOr<std::vector<PathPiece>> Run(int64_t time_ps) {
    now_ = time_ps;
    event_ = log_.last_event;
    at_ = log_.last_is_hop ? At::kArrival : At::kInstructionEnd;
    while (event_ >= 0) {
      switch (at_) {
        case At::kInstructionEnd:
          EndOfInstruction();
          break;
        case At::kInstructionBegin:
          BeginOfInstruction();
          break;
        case At::kArrival:
          Arrival();
          break;
        case At::kHopEnd:
          EndOfHop();
          break;
        case At::kHopStart:
          StartOfHop();
          break;
      }
    }
    if (!agrees_ || now_ != 0) return BugError("simulate: the log of a program has an event without a cause");
    return std::move(pieces_);
  }

 private:
  enum class At : uint8_t {
    kInstructionEnd,
    kInstructionBegin,
    kArrival,   // a receiver can see the message
    kHopEnd,    // the message's last byte has left the rank or switch
    kHopStart,  // the link takes the message
  };
  const ProgramLog::Instruction& instruction() const {
    return log_.instructions[static_cast<size_t>(event_)];
  }
  const ProgramLog::Hop& hop() const { return log_.hops[static_cast<size_t>(event_)]; }
  int64_t Latency(const ProgramLog::Hop& hop) const {
    return log_.blocking ? 0 : topology_.link(hop.link).latency_ps;
  }

  // Adds a piece from `since_ps` until the present instant, and goes back to `since_ps`.
  void Back(PathKind kind, int64_t since_ps, std::optional<LinkId> link, std::optional<int32_t> block) {
    since_ps = std::clamp<int64_t>(since_ps, 0, now_);
    if (since_ps < now_) pieces_.push_back({kind, since_ps, now_, link, {}, block});
    now_ = since_ps;
  }
  int32_t BlockOf(int32_t instruction) const {
    return index_.BlockOf(log_.instructions[static_cast<size_t>(instruction)].node);
  }
  // Notes a contradiction if the walk is not at the time of the event.
  void Expect(int64_t time_ps) { agrees_ &= now_ == time_ps; }
  void GoTo(At at, int32_t event) {
    at_ = at;
    event_ = event;
  }

  void EndOfInstruction() {
    const ProgramLog::Instruction& i = instruction();
    Expect(i.end_ps);
    if (i.first_hop >= 0 && i.moved_ps < i.end_ps) return GoTo(At::kHopEnd, i.first_hop);
    Back(PathKind::kThreadblock, i.begin_ps, {}, BlockOf(event_));
    at_ = At::kInstructionBegin;
  }

  void BeginOfInstruction() {
    const ProgramLog::Instruction& i = instruction();
    Expect(i.begin_ps);
    switch (i.cause) {
      case ProgramWait::kNothing:
      case ProgramWait::kThreadblock:
      case ProgramWait::kHandOff:
      case ProgramWait::kSlot:
        if (i.cause_event >= 0)
          Back(PathKind::kHandOff, log_.instructions[static_cast<size_t>(i.cause_event)].end_ps, {},
               BlockOf(event_));
        return GoTo(At::kInstructionEnd, i.cause_event);
      case ProgramWait::kMessage:
        return GoTo(At::kArrival, i.cause_event);
      case ProgramWait::kLink:
        break;  // sends begin before they wait for links
    }
    event_ = -1;
  }

  void Arrival() {
    const ProgramLog::Hop& h = hop();
    Back(PathKind::kHop, h.sent_ps + Latency(h), {}, BlockOf(h.sender));
    Back(PathKind::kLatency, h.sent_ps, h.link, {});
    at_ = At::kHopEnd;
  }

  void EndOfHop() {
    const ProgramLog::Hop& h = hop();
    Expect(h.sent_ps);
    if (h.sent_ps > h.end_ps) {
      Back(PathKind::kThreadblock, log_.instructions[static_cast<size_t>(h.sender)].begin_ps, {},
           BlockOf(h.sender));
      return GoTo(At::kInstructionBegin, h.sender);
    }
    if (h.tail >= 0) {
      const ProgramLog::Hop& before = log_.hops[static_cast<size_t>(h.tail)];
      const int64_t arrived_ps = before.sent_ps + Latency(before);
      if (arrived_ps == h.end_ps && arrived_ps > h.start_ps) {
        Back(PathKind::kLatency, before.sent_ps, before.link, {});
        return GoTo(At::kHopEnd, h.tail);
      }
    }
    Carry(h);
  }

  // Adds the pieces of the time for which the message occupied the link.
  void Carry(const ProgramLog::Hop& h) {
    Back(PathKind::kLatency, h.end_ps - (log_.blocking ? topology_.link(h.link).latency_ps : 0), h.link, {});
    Back(PathKind::kTransfer, h.start_ps + topology_.link(h.link).overhead_ps, h.link, {});
    Back(PathKind::kOverhead, h.start_ps, h.link, {});
    at_ = At::kHopStart;
  }

  void StartOfHop() {
    const ProgramLog::Hop& h = hop();
    Expect(h.start_ps);
    if (h.start_ps > h.queued_ps && h.before >= 0) {
      event_ = h.before;
      return FreeLink();
    }
    if (h.head < 0) return GoTo(At::kInstructionBegin, h.sender);
    const ProgramLog::Hop& before = log_.hops[static_cast<size_t>(h.head)];
    if (log_.blocking) return GoTo(At::kHopEnd, h.head);
    const int64_t delay_ps = before.sent_ps - before.end_ps;
    Back(PathKind::kLatency, before.start_ps + delay_ps, before.link, {});
    Back(PathKind::kThreadblock, before.start_ps, {}, BlockOf(before.sender));
    GoTo(At::kHopStart, h.head);
  }

  // Goes on with the message that occupied the link before. The link became free at end_ps of the message,
  // even if the threadblock that sends took longer.
  void FreeLink() {
    const ProgramLog::Hop& h = hop();
    if (h.sent_ps == h.end_ps) return EndOfHop();
    Expect(h.end_ps);
    Carry(h);
  }

  const ProgramLog& log_;
  const ProgramIndex& index_;
  const Topology& topology_;
  std::vector<PathPiece> pieces_;
  int64_t now_ = 0;
  bool agrees_ = true;
  int32_t event_ = -1;
  At at_ = At::kArrival;
};

}  // namespace

StatusOr<std::vector<PathPiece>> ChainOf(const ProgramLog& log, const ProgramIndex& index,
                                         const Topology& topology, int64_t time_ps) {
  return Walk(log, index, topology).Run(time_ps);
}

}  // namespace xccl
