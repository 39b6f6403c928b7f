#include "runtime/c_api/group.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ir/numbers.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/meeting.h"
#include "runtime/c_api/run.h"

namespace xccl::c_api {
namespace {

struct Deferred {
  xcclComm_t comm = nullptr;
  GroupCall call;
};
struct Group {
  int depth = 0;
  xcclResult_t refused = xcclSuccess;
  std::vector<Deferred> waiting, messages, others;
  std::map<xcclComm_t, KeptMessages> kept;
};
thread_local Group group;

// The calls of one communicator in a group that wait for other ranks, and how they ended.
struct Line {
  xcclComm_t comm = nullptr;
  std::vector<GroupCall> calls;
  xcclResult_t result = xcclSuccess;
  std::string text;            // the failure's, which was remembered on another thread
  std::shared_ptr<void> turn;  // to meet before communicators that are made later
};

void RunLine(Line& line) {
  const std::shared_ptr<void> turn = std::move(line.turn);
  for (const GroupCall& call : line.calls) {
    line.result = call.run();
    if (line.result == xcclSuccess) continue;
    line.text = LastText();
    return;
  }
}

std::shared_ptr<void> TurnOf(xcclComm_t comm) {
  const auto found = Find(comm);
  return found.ok() && (*found)->meeting != nullptr ? (*found)->meeting->Announce() : nullptr;
}

xcclResult_t RunWaiting(std::vector<Deferred> waiting) {
  std::vector<Line> lines;
  for (Deferred& each : waiting) {
    auto line = std::ranges::find(lines, each.comm, &Line::comm);
    if (line == lines.end())
      line = lines.insert(lines.end(),
                          Line{.comm = each.comm, .calls = {}, .text = "", .turn = TurnOf(each.comm)});
    line->calls.push_back(std::move(each.call));
  }
  {
    // Nobody begins to wait before all can.
    std::promise<bool> all_there;
    const std::shared_future<bool> go = all_there.get_future().share();
    std::vector<std::jthread> threads;
    try {
      for (size_t i = 1; i < lines.size(); ++i)
        threads.emplace_back([go, &line = lines[i]] {
          if (go.get()) RunLine(line);
        });
    } catch (const std::exception&) {
      all_there.set_value(false);
      throw;
    }
    all_there.set_value(true);
    if (!lines.empty()) RunLine(lines[0]);
  }
  for (const Line& line : lines)
    if (line.result != xcclSuccess) Remember(line.comm, line.text);
  const auto failed =
      std::ranges::find_if(lines, [](const Line& line) { return line.result != xcclSuccess; });
  if (failed == lines.end()) return xcclSuccess;
  Remember(failed->comm, failed->text);  // the thread's last text is that of what is returned
  return failed->result;
}

// Communicators have a thread each, and what one of them writes the others must leave alone.
xcclResult_t CheckMemory(std::span<const Deferred> calls) {
  std::vector<MemoryUse> uses;
  std::vector<const Deferred*> call_of;  // by use
  std::map<xcclComm_t, size_t> numbers;
  for (const Deferred& each : calls)
    for (MemoryUse use : each.call.memory) {
      use.by = numbers.emplace(each.comm, numbers.size()).first->second;
      uses.push_back(use);
      call_of.push_back(&each);
    }
  if (numbers.size() < 2) return xcclSuccess;
  const std::optional<std::pair<size_t, size_t>> shared = FindConflict(uses);
  if (!shared) return xcclSuccess;
  const auto text = [&](size_t use) {
    return fmt::format("{} {}", call_of[use]->call.name, uses[use].writes ? "writes" : "reads");
  };
  return Fail(xcclInvalidArgument,
              fmt::format("memory that {} and {} overlaps; expected ranges apart: communicators of one group "
                          "run side by side",
                          text(shared->first), text(shared->second)),
              call_of[shared->second]->comm);
}

}  // namespace

void StartGroup() { ++group.depth; }
bool InGroup() { return group.depth > 0; }

void Defer(xcclComm_t comm, bool waits, GroupCall call) {
  (waits ? group.waiting : group.others).push_back({comm, std::move(call)});
}

void DeferMessages(xcclComm_t comm, std::span<const PairMessage> messages,
                   const std::function<GroupCall(KeptMessages)>& call) {
  KeptMessages& kept = group.kept[comm];
  if (kept == nullptr) {
    kept = std::make_shared<std::vector<PairMessage>>();
    group.messages.push_back({comm, call(kept)});
  }
  kept->insert(kept->end(), messages.begin(), messages.end());
  const auto deferred = std::ranges::find(group.messages, comm, &Deferred::comm);
  for (const PairMessage& message : messages)
    deferred->call.memory.push_back({message.data, message.count * SizeOf(message.type), !message.sends});
}

void Refuse(xcclResult_t result) {
  if (group.depth > 0 && group.refused == xcclSuccess) group.refused = result;
}

xcclResult_t EndGroup() {
  if (group.depth == 0) {
    Remember(nullptr, "xcclGroupEnd without xcclGroupStart");
    return xcclInvalidUsage;
  }
  if (--group.depth > 0) return xcclSuccess;
  Group ended = std::exchange(group, {});
  if (ended.refused != xcclSuccess) return ended.refused;
  // Messages come first on every rank, so that none waits behind a collective that its counterpart precedes.
  std::vector<Deferred> calls = std::move(ended.messages);
  calls.insert(calls.end(), ended.others.begin(), ended.others.end());
  if (const xcclResult_t result = CheckMemory(calls); result != xcclSuccess) return result;
  if (const xcclResult_t result = RunWaiting(std::move(ended.waiting)); result != xcclSuccess) return result;
  // Other ranks would wait for one whose call is refused.
  for (const Deferred& each : calls)
    if (const xcclResult_t result = each.call.check ? each.call.check() : xcclSuccess; result != xcclSuccess)
      return result;
  for (const Deferred& each : calls)
    if (const xcclResult_t result = each.call.run(); result != xcclSuccess) return result;
  return xcclSuccess;
}

}  // namespace xccl::c_api
