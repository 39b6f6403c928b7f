// An event simulation. A runner is one instance of a threadblock; it runs one instruction at a time. A send
// holds its runner until its last byte has left the sender. Without a machine model, receives and local
// instructions take no time. A link serves the message that reached its tail first and, of several at one
// instant, that of the lowest connection. A message's slot becomes free when the instruction that received it
// is done. A group's message takes each link of its tree once: a switch that multicasts sends it on as
// several messages, and a switch that reduces waits for all.
//
// As in ir/simulate/event_loop.cc, all events of an instant take effect before idle links choose, so the
// result does not depend on the order of events.
#include "ir/simulate/program_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <tuple>

#include "base/units.h"
#include "ir/machine_model.h"
#include "ir/simulate/event_queue.h"
#include "ir/simulate/instruction_bytes.h"
#include "ir/simulate/link_queues.h"
#include "ir/simulate/program_log.h"
#include "ir/simulate/program_paths.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

class ProgramRun {
 public:
  ProgramRun(const Program& program, const ProgramIndex& index, const Topology& topology,
             const SimulateOptions& options, const InstructionBytes& bytes, int32_t passes, ProgramLog* log)
      : program_(program),
        index_(index),
        topology_(topology),
        deadline_(options.deadline),
        is_over_(options.deadline),
        longest_ps_(options.longest_ps),
        blocking_(options.model == TimeModel::kBlocking),
        timed_blocks_(options.machine != nullptr),
        cost_(timed_blocks_ ? options.machine->CostOf(program.protocol) : ProtocolCost{}),
        hand_off_ps_(timed_blocks_ ? options.machine->hand_off_ps : 0),
        bytes_(bytes),
        passes_(passes),
        instances_(std::min(program.instances, passes)),
        runners_(static_cast<size_t>(index.num_blocks()) * static_cast<size_t>(instances_)),
        fifos_(program.connections.size() * static_cast<size_t>(instances_)),
        links_(topology.num_links()),
        log_(log) {
    if (log != nullptr)
      log->Begin(blocking_, index.size(), static_cast<int32_t>(runners_.size()), instances_,
                 static_cast<int32_t>(fifos_.size()), topology.num_links());
    if (timed_blocks_) {
      bandwidths_ = ReachedBandwidths(topology, *options.machine);
      nic_hop_ps_ = options.machine->nic_hop_ps;
      switch_per_mille_ = options.machine->switch_per_mille;
      for (const Connection& connection : program.connections)
        passes_nic_.push_back(std::ranges::any_of(connection.path, [&](LinkId link) {
          return topology.node(topology.link(link).to).kind == NodeKind::kNic;
        }));
    }
    if (hand_off_ps_ > 0)
      done_at_.assign(static_cast<size_t>(index.size()) * static_cast<size_t>(instances_), 0);
    sender_.assign(program.connections.size(), -1);
    receiver_.assign(program.connections.size(), -1);
    group_of_ = GroupsOfConnections(program);
    first_hop_.assign(program.connections.size(), 0);
    for (const Group& group : program.groups) {
      // The messages of a fan-in go over links as messages without a group do.
      const GroupTree& tree =
          trees_.emplace_back(HasSwitch(group) ? TreeOf(program, group, topology) : GroupTree());
      const std::vector<int32_t> connections = ConnectionsOf(program, group);
      first_connection_.push_back(connections.front());
      for (size_t m = 0; m < tree.first_hop.size(); ++m)
        first_hop_[static_cast<size_t>(connections[m])] = tree.first_hop[m];
      const size_t counted = tree.num_joins > 0 ? group.path.size() : 0;
      for (int32_t i = 0; i < instances_; ++i)
        sums_.push_back(
            {std::vector<Join>(static_cast<size_t>(tree.num_joins)), std::vector<int64_t>(counted, 0)});
    }
    for (int32_t block = 0; block < index.num_blocks(); ++block) {
      for (int32_t connection : index.SendConnections(block)) sender_[connection] = block;
      for (int32_t connection : index.RecvConnections(block)) receiver_[connection] = block;
      left_ += index.BlockFirst(block + 1) > index.BlockFirst(block) ? instances_ : 0;
      for (int32_t i = 0; i < instances_; ++i) runners_[RunnerOf(block, i)].pass = i;
    }
    steps_.resize(static_cast<size_t>(index.size()) + 1);
    waits_.reserve(program.dependencies.size());
    for (int32_t node = 0; node < index.size(); ++node) {
      const Opcode op = index.instruction(node).op;
      steps_[static_cast<size_t>(node)] = {static_cast<int32_t>(waits_.size()), Sends(op), Receives(op),
                                           op == Opcode::kNop};
      const int32_t first_block = index.RankFirstBlock(index.BlockRank(index.BlockOf(node)));
      for (const Dependency& on : index.Dependencies(node))
        waits_.push_back({first_block + on.threadblock, on.index});
    }
    steps_.back().first_wait = static_cast<int32_t>(waits_.size());
  }

  StatusOr<int64_t> Run() {
    for (size_t runner = 0; runner < runners_.size(); ++runner)
      awake_.push_back(static_cast<int32_t>(runner));
    Settle(0);
    while (!queue_.empty()) {
      if (is_over_()) return LimitReached(deadline_.Passed() + " while the program was simulated");
      const int64_t now = queue_.PopBatch(batch_);
      if (now > longest_ps_ && left_ > 0) return kForeverPs;
      for (const Event& event : batch_) Handle(event);
      Settle(now);
    }
    if (left_ > 0) return Stuck();
    return last_;
  }

 private:
  enum What : uint64_t {
    kIdle = 0,
    kHead = 1ULL << 61,
    kArrival = 2ULL << 61,
    kDone = 3ULL << 61,
    kHandedOff = 4ULL << 61,
    kMask = 7ULL << 61
  };
  // The facts about an instruction that a run reads, and its dependencies. They are packed, since a run reads
  // all of them in every pass.
  struct Step {
    int32_t first_wait = 0;  // index in waits_
    bool sends = false, receives = false, is_nop = false;
  };
  struct Wait {
    int32_t block = 0, index = 0;
  };
  struct Waiter {
    int32_t runner = 0, index = 0, pass = 0;
  };
  struct Runner {
    int32_t next = 0, pass = 0;
    bool busy = false;
    bool waits = false;           // is among the waiters of another runner
    std::vector<Waiter> waiters;  // runners that wait for this one, each once

    // Returns whether the runner has done the instruction in the pass.
    bool IsPast(int32_t index, int32_t of_pass) const {
      return pass > of_pass || (pass == of_pass && next > index);
    }
  };
  // One instance of a connection.
  struct Fifo {
    int32_t arrived = 0, taken = 0;  // messages that have arrived; slots in use
  };
  // A message in flight. A message of a switch's group is several Messages, each waiting for one link.
  struct Message {
    int32_t fifo = 0;  // for a group: the fifo of any member
    int32_t hop = 0;
    bool leaves = true;    // waits for the link out of its sender
    int64_t bytes = 0;     // on a link
    int64_t moved_at = 0;  // when its sender, which may be slower than the link, can have sent the last byte
    int64_t tail_arrives = 0;  // when its last byte reaches the tail of the link that it waits for
    int64_t queued_at = 0;     // when it began to wait for that link
    MessageLog logged = {};
  };
  // A point of a reduction tree at which a switch adds up messages. `waiting` has the sums that still lack
  // messages, the oldest first.
  struct Join {
    struct Part {
      int32_t parts = 0;
      int64_t tail_arrives = 0;
      int32_t tail = -1;  // the hop in the log that ends at tail_arrives
    };
    std::deque<Part> waiting;
    int64_t gone = 0;  // number of sums that are complete and have moved on
  };
  struct Sums {  // state of one instance of a group
    std::vector<Join> joins;
    std::vector<int64_t> came;  // number of messages that arrived, by hop
  };
  using Waiting = std::tuple<int64_t, int32_t, int32_t>;  // since when, fifo, message
  size_t RunnerOf(int32_t block, int32_t instance) const {
    return static_cast<size_t>(block) * static_cast<size_t>(instances_) + static_cast<size_t>(instance);
  }
  int32_t InstanceOf(int32_t runner) const { return runner % instances_; }
  size_t FifoOf(int32_t connection, int32_t instance) const {
    return static_cast<size_t>(connection) * static_cast<size_t>(instances_) + static_cast<size_t>(instance);
  }
  int32_t GroupOf(int32_t fifo) const { return group_of_[static_cast<size_t>(fifo / instances_)]; }
  const std::vector<LinkId>& PathOf(int32_t fifo) const {
    const int32_t group = GroupOf(fifo);
    return group < 0 ? program_.connections[static_cast<size_t>(fifo / instances_)].path
                     : program_.groups[static_cast<size_t>(group)].path;
  }
  const GroupTree& TreeOfGroup(int32_t group) const { return trees_[static_cast<size_t>(group)]; }
  bool IsLastHop(const Message& message) const {
    const int32_t group = GroupOf(message.fifo);
    if (group < 0) return message.hop + 1 == static_cast<int32_t>(PathOf(message.fifo).size());
    return TreeOfGroup(group).next[static_cast<size_t>(message.hop)].empty();
  }

  int64_t BandwidthOf(LinkId link) const {
    return timed_blocks_ ? bandwidths_[link.index()] : topology_.link(link).bandwidth_bytes_per_s;
  }

  // Returns the bytes from which the message's time on a link follows. A message of a switch's group counts
  // more bytes than it has, because switches reach only a share of the link's bandwidth.
  int64_t LinkBytes(const Message& message) const {
    if (switch_per_mille_ == 1000 || GroupOf(message.fifo) < 0) return message.bytes;
    return static_cast<int64_t>(static_cast<__int128>(message.bytes) * 1000 / switch_per_mille_);
  }
  // Returns the time from the arrival of a message's last byte until its receiver can see the message.
  int64_t HopPs(const Message& message) const {
    const bool passes_nic = timed_blocks_ && passes_nic_[static_cast<size_t>(message.fifo / instances_)];
    return cost_.hop_ps + (passes_nic ? nic_hop_ps_ : 0);
  }

  void Settle(int64_t now) {
    while (!awake_.empty()) {
      const int32_t runner = awake_.back();
      awake_.pop_back();
      while (Advance(runner, now)) {
      }
    }
    links_.StartIdle(
        [&](int32_t link, const Waiting& waiting) { Start(std::get<2>(waiting), LinkId(link), now); });
  }

  // Runs the runner's next instruction, or as much of it as takes no time. Returns false if it must wait.
  bool Advance(int32_t id, int64_t now) {
    Runner& runner = runners_[static_cast<size_t>(id)];
    const int32_t block = id / instances_, first = index_.BlockFirst(block);
    if (runner.busy || runner.pass >= passes_ || index_.BlockFirst(block + 1) == first) return false;
    const int32_t node = first + runner.next;
    const Step& step = steps_[static_cast<size_t>(node)];
    int64_t handed_off_at = 0;
    int32_t handed_off_by = kNoNode;
    for (int32_t w = step.first_wait; w < steps_[static_cast<size_t>(node) + 1].first_wait; ++w) {
      const Wait on = waits_[static_cast<size_t>(w)];
      Runner& source = runners_[RunnerOf(on.block, InstanceOf(id))];
      if (source.IsPast(on.index, runner.pass)) {
        if (hand_off_ps_ == 0 || on.block == block) continue;
        const int32_t by = index_.BlockFirst(on.block) + on.index;
        if (const int64_t at = HandedOffAt(by, source, on, runner.pass); at > handed_off_at) {
          handed_off_at = at;
          handed_off_by = by;
        }
        continue;
      }
      if (!runner.waits) source.waiters.push_back({id, on.index, runner.pass});
      runner.waits = true;
      return Blocked(id, ProgramWait::kThreadblock, index_.BlockFirst(on.block) + on.index, now);
    }
    if (handed_off_at > now) {
      runner.busy = true;
      queue_.Push(handed_off_at, kHandedOff | static_cast<uint64_t>(id));
      return Blocked(id, ProgramWait::kHandOff, handed_off_by, now);
    }
    if (step.receives)
      for (int32_t connection : index_.RecvConnections(block))
        if (const size_t fifo = FifoOf(connection, InstanceOf(id)); fifos_[fifo].arrived == 0)
          return Blocked(id, ProgramWait::kMessage, static_cast<int32_t>(fifo), now);
    if (!step.sends && (!timed_blocks_ || step.is_nop)) {
      if (log_ != nullptr) log_->BeginInstruction(id, node, runner.pass, now, now);
      Finish(id, now);
      return true;
    }
    const int64_t bytes = bytes_(node, runner.pass);
    const int64_t moved_at =
        timed_blocks_ ? std::min(kForeverPs, now + std::min(kForeverPs, BlockPs(block, node, bytes))) : now;
    if (!step.sends) {
      if (log_ != nullptr) log_->BeginInstruction(id, node, runner.pass, now, moved_at);
      runner.busy = true;
      queue_.Push(moved_at, kDone | static_cast<uint64_t>(id));
      return false;
    }
    for (int32_t connection : index_.SendConnections(block))
      if (const size_t fifo = FifoOf(connection, InstanceOf(id)); fifos_[fifo].taken == program_.slots)
        return Blocked(id, ProgramWait::kSlot, static_cast<int32_t>(fifo), now);
    MessageLog logged;
    if (log_ != nullptr) logged.sender = log_->BeginInstruction(id, node, runner.pass, now, moved_at);
    for (int32_t connection : index_.SendConnections(block))
      ++fifos_[FifoOf(connection, InstanceOf(id))].taken;
    runner.busy = true;
    const int32_t connection = index_.SendConnection(block);
    Queue(NewMessage({static_cast<int32_t>(FifoOf(connection, InstanceOf(id))),
                      first_hop_[static_cast<size_t>(connection)], true, cost_.WireBytes(bytes), moved_at, 0,
                      0, logged}),
          now);
    return false;
  }

  // Notes why the runner cannot advance, and returns false.
  bool Blocked(int32_t id, ProgramWait why, int32_t what, int64_t now) {
    if (log_ != nullptr) log_->Block(id, why, what, now);
    return false;
  }

  // Returns how long an instruction holds its threadblock.
  int64_t BlockPs(int32_t block, int32_t node, int64_t bytes) const {
    const Instruction& i = index_.instruction(node);
    const int64_t message_ps = Sends(i.op) || Receives(i.op) ? cost_.message_ps : 0;
    const int64_t members = Receives(i.op) ? std::ssize(index_.RecvConnections(block)) : 1;
    // A reduce group receives one sum, which the switch has made; a fan-in reads the messages of all members.
    const bool is_fan_in = members > 1 && GroupOfBlock(block) < 0;
    return message_ps +
           (is_fan_in ? cost_.FanInPs(bytes, members + (ReadsSource(i.op) ? 1 : 0)) : cost_.BlockPs(bytes));
  }
  // Returns the group of a switch from which a threadblock receives, or -1. Requires: it receives.
  int32_t GroupOfBlock(int32_t block) const {
    return group_of_[static_cast<size_t>(index_.RecvConnections(block).front())];
  }

  // Returns when an instruction may go on that waits for `node`, an instruction of another threadblock, in
  // `pass`. The time of `node` is kept for its last pass only. Returns 0 if `node` has run in a later pass,
  // because `pass` was then long ago.
  int64_t HandedOffAt(int32_t node, const Runner& source, Wait on, int32_t pass) const {
    const int32_t last_pass = source.next > on.index ? source.pass : source.pass - instances_;
    if (last_pass != pass) return 0;
    return done_at_[static_cast<size_t>(node) * static_cast<size_t>(instances_) +
                    static_cast<size_t>(pass % instances_)] +
           hand_off_ps_;
  }

  void Finish(int32_t id, int64_t now) {
    Runner& runner = runners_[static_cast<size_t>(id)];
    const int32_t block = id / instances_;
    const size_t node = static_cast<size_t>(index_.BlockFirst(block) + runner.next);
    if (hand_off_ps_ > 0)
      done_at_[node * static_cast<size_t>(instances_) + static_cast<size_t>(InstanceOf(id))] = now;
    if (log_ != nullptr) log_->EndInstruction(id, now);
    if (steps_[node].receives) {
      for (int32_t connection : index_.RecvConnections(block)) {
        const size_t number = FifoOf(connection, InstanceOf(id));
        if (log_ != nullptr) log_->Free(id, static_cast<int32_t>(number));
        Fifo& fifo = fifos_[number];
        --fifo.arrived;
        --fifo.taken;
        awake_.push_back(static_cast<int32_t>(RunnerOf(sender_[connection], InstanceOf(id))));
      }
    }
    if (++runner.next == index_.BlockFirst(block + 1) - index_.BlockFirst(block)) {
      runner.next = 0;
      runner.pass += instances_;
      if (runner.pass >= passes_) --left_;
    }
    std::erase_if(runner.waiters, [&](const Waiter& waiter) {
      if (!runner.IsPast(waiter.index, waiter.pass)) return false;
      runners_[static_cast<size_t>(waiter.runner)].waits = false;
      awake_.push_back(waiter.runner);
      return true;
    });
  }

  int32_t NewMessage(const Message& message) {
    if (free_.empty()) {
      messages_.push_back(message);
      return static_cast<int32_t>(messages_.size()) - 1;
    }
    const int32_t id = free_.back();
    free_.pop_back();
    messages_[static_cast<size_t>(id)] = message;
    return id;
  }

  void Queue(int32_t id, int64_t now) {
    Message& message = messages_[static_cast<size_t>(id)];
    message.queued_at = now;
    const LinkId link = PathOf(message.fifo)[static_cast<size_t>(message.hop)];
    links_.Add(link.value, {now, message.fifo, id});
  }

  void Start(int32_t id, LinkId link_id, int64_t now) {
    Message& message = messages_[static_cast<size_t>(id)];
    const Link& link = topology_.link(link_id);
    const bool last = IsLastHop(message);
    int64_t end =
        std::min(kForeverPs, now + link.overhead_ps + TransferPs(LinkBytes(message), BandwidthOf(link_id)));
    int64_t head = 0, arrival = 0;
    if (blocking_) {
      head = arrival = end = std::min(kForeverPs, end + link.latency_ps);
    } else {
      end = std::max(end, message.tail_arrives);
      head = std::min(kForeverPs, now + link.latency_ps);
      arrival = std::min(kForeverPs, end + link.latency_ps);
    }
    queue_.Push(end, kIdle | static_cast<uint64_t>(link_id.value));
    if (log_ != nullptr) log_->AddHop(link_id, message.queued_at, now, end, message.logged);
    // A threadblock that is slower than the link does not hold the link for longer. Only the message itself
    // is delayed, and other messages may use the link meanwhile.
    if (message.leaves) {
      message.leaves = false;
      const int64_t sent = std::max(end, message.moved_at);
      arrival += sent - end;
      head += sent - end;
      if (log_ != nullptr) log_->DelayHop(message.logged, sent);
      const size_t runner = RunnerOf(sender_[message.fifo / instances_], message.fifo % instances_);
      queue_.Push(sent, kDone | static_cast<uint64_t>(runner));
    }
    message.tail_arrives = arrival;
    if (last) arrival = std::min(kForeverPs, arrival + HopPs(message));
    queue_.Push(last ? arrival : head, (last ? kArrival : kHead) | static_cast<uint64_t>(id));
    if (log_ != nullptr && arrival > last_) log_->LastIsHop(message.logged);
    last_ = std::max(last_, arrival);
  }

  void Handle(const Event& event) {
    const int32_t id = static_cast<int32_t>(event.what & ~static_cast<uint64_t>(kMask));
    switch (event.what & kMask) {
      case kIdle:
        links_.Release(id);
        return;
      case kHead:
        GoOn(id, event.time_ps);
        return;
      case kArrival:
        Deliver(id);
        return;
      case kDone:
        runners_[static_cast<size_t>(id)].busy = false;
        if (log_ != nullptr && timed_blocks_ && event.time_ps > last_) log_->LastIsInstruction(id);
        last_ = std::max(last_, timed_blocks_ ? event.time_ps : 0);
        Finish(id, event.time_ps);
        awake_.push_back(id);
        return;
      case kHandedOff:
        runners_[static_cast<size_t>(id)].busy = false;
        awake_.push_back(id);
        return;
    }
  }

  // Moves a message on to the next links, once its first byte has reached the end of a link.
  void GoOn(int32_t id, int64_t now) {
    Message& message = messages_[static_cast<size_t>(id)];
    const int32_t group = GroupOf(message.fifo);
    if (group < 0) {
      ++message.hop;
      return Queue(id, now);
    }
    const std::vector<int32_t>& next = TreeOfGroup(group).next[static_cast<size_t>(message.hop)];
    if (TreeOfGroup(group).feeds[static_cast<size_t>(next.front())] > 1 && !Joins(id, next.front())) return;
    message.hop = next.front();
    Message branch = message;
    Queue(id, now);
    for (size_t i = 1; i < next.size(); ++i) {
      branch.hop = next[i];
      Queue(NewMessage(branch), now);
    }
  }

  // Adds the message to the sum that goes on to the hop `next`. Returns whether the message is the last one
  // of the sum; it then goes on as the sum.
  bool Joins(int32_t id, int32_t next) {
    Message& message = messages_[static_cast<size_t>(id)];
    const size_t group = static_cast<size_t>(GroupOf(message.fifo));
    Sums& sums =
        sums_[group * static_cast<size_t>(instances_) + static_cast<size_t>(message.fifo % instances_)];
    Join& join = sums.joins[static_cast<size_t>(trees_[group].join[static_cast<size_t>(next)])];
    const size_t place = static_cast<size_t>(sums.came[static_cast<size_t>(message.hop)]++ - join.gone);
    if (place == join.waiting.size()) join.waiting.emplace_back();
    Join::Part& sum = join.waiting[place];
    if (message.tail_arrives >= sum.tail_arrives) sum.tail = message.logged.tail;
    sum.tail_arrives = std::max(sum.tail_arrives, message.tail_arrives);
    if (++sum.parts < trees_[group].feeds[static_cast<size_t>(next)]) {
      free_.push_back(id);
      return false;
    }
    message.tail_arrives = sum.tail_arrives;
    message.logged.tail = sum.tail;
    message.fifo = static_cast<int32_t>(FifoOf(first_connection_[group], message.fifo % instances_));
    join.waiting.pop_front();  // messages arrive in order on every hop
    ++join.gone;
    return true;
  }

  void Deliver(int32_t id) {
    const Message message = messages_[static_cast<size_t>(id)];
    free_.push_back(id);
    const int32_t group = GroupOf(message.fifo), instance = message.fifo % instances_;
    const auto arrive = [&](int32_t connection) {
      const size_t fifo = FifoOf(connection, instance);
      if (log_ != nullptr) log_->Arrive(static_cast<int32_t>(fifo), message.logged);
      ++fifos_[fifo].arrived;
      awake_.push_back(static_cast<int32_t>(RunnerOf(receiver_[connection], instance)));
    };
    if (group < 0) return arrive(message.fifo / instances_);
    for (int32_t connection : TreeOfGroup(group).delivers[static_cast<size_t>(message.hop)])
      arrive(connection);
  }

  Status Stuck() const {
    for (size_t id = 0; id < runners_.size(); ++id) {
      const int32_t block = static_cast<int32_t>(id) / instances_;
      if (runners_[id].pass >= passes_ || index_.BlockFirst(block + 1) == index_.BlockFirst(block)) continue;
      return InvalidInput(fmt::format("{} of pass {}: can never go on; expected a program that verifies",
                                      ToString(index_.Site(index_.BlockFirst(block) + runners_[id].next)),
                                      runners_[id].pass));
    }
    return BugError("simulate: every threadblock is done, but work is left");
  }

  const Program& program_;
  const ProgramIndex& index_;
  const Topology& topology_;
  const Deadline deadline_;
  SeldomAsked is_over_;
  const int64_t longest_ps_;
  const bool blocking_, timed_blocks_;
  const ProtocolCost cost_;
  const int64_t hand_off_ps_;
  const InstructionBytes& bytes_;
  const int32_t passes_, instances_;
  std::vector<Step> steps_;  // by instruction, and an end
  std::vector<Wait> waits_;
  std::vector<Runner> runners_;
  std::vector<Fifo> fifos_;
  LinkQueues<Waiting> links_;
  std::vector<int64_t> bandwidths_;  // by link, where threadblocks are timed
  std::vector<bool> passes_nic_;     // by connection, where threadblocks are timed
  int64_t nic_hop_ps_ = 0;
  int32_t switch_per_mille_ = 1000;
  std::vector<int64_t> done_at_;            // by instruction and instance, where hand-offs take time
  std::vector<int32_t> sender_, receiver_;  // blocks, by connection
  std::vector<int32_t> group_of_;           // by connection
  std::vector<GroupTree> trees_;            // by group
  std::vector<int32_t> first_hop_;          // by connection: the hop by which messages leave
  std::vector<int32_t> first_connection_;   // by group
  std::vector<Sums> sums_;                  // by group and instance
  std::vector<Message> messages_;
  std::vector<int32_t> free_, awake_;
  EventQueue queue_;
  std::vector<Event> batch_;
  int64_t left_ = 0;  // runners that are not finished
  // The last arrival, or the last end of an instruction if threadblocks are timed.
  int64_t last_ = 0;
  ProgramLog* const log_;  // or null
};

}  // namespace

StatusOr<int64_t> RunProgram(const ProgramSetting& setting, int32_t passes, bool whole, ProgramLog* log) {
  const InstructionBytes bytes(setting.program, setting.collective, setting.sizes, setting.index,
                               setting.passes, setting.options.machine != nullptr, whole);
  return ProgramRun(setting.program, setting.index, setting.topology, setting.options, bytes, passes, log)
      .Run();
}

}  // namespace xccl
