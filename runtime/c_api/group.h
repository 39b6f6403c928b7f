// Groups of calls of one thread: what xcclGroupStart begins and the outermost xcclGroupEnd runs. Calls that
// wait for other ranks run side by side, so that one thread may drive several ranks; the others follow in
// their order.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/memory_use.h"
#include "runtime/pairs.h"
#include "runtime/xccl.h"

namespace xccl::c_api {

// Returns a result; the text of a failure is remembered on the thread that it runs on.
using GroupStep = std::function<xcclResult_t()>;
struct GroupCall {
  GroupStep run;
  GroupStep check = {};  // returns what `run` would refuse at once; may be empty
  // The memory that the call touches on the CPU, where communicators run side by side: a collective's, or
  // that of all its messages. A GPU's streams give an order that only the caller knows.
  std::vector<MemoryUse> memory = {};
  std::string name = {};  // names the call in errors about `memory`: "rank 1: allreduce"
};

void StartGroup();
// The thread is in a group.
bool InGroup();
// Keeps a call until the group ends. `waits`: it waits for other ranks' calls. Requires: InGroup().
void Defer(xcclComm_t comm, bool waits, GroupCall call);
// Keeps messages between pairs of ranks. All messages of a communicator in one group run side by side: call()
// makes one call of them, which runs before the group's collectives.
using KeptMessages = std::shared_ptr<std::vector<PairMessage>>;
void DeferMessages(xcclComm_t comm, std::span<const PairMessage> messages,
                   const std::function<GroupCall(KeptMessages)>& call);
// A call of the group was refused: the group will run nothing and end with the first refused call's result.
void Refuse(xcclResult_t result);
// Ends a group. The outermost one runs what was kept. First the calls that wait run: one communicator's calls
// in their order, different communicators' calls side by side. Then the messages and the remaining calls run,
// all of which are checked before the first of them runs. Returns the first failure. After a failure the
// waiting calls of other communicators have run, and the remaining calls have not. Errors: xcclInvalidUsage
// outside of a group; xcclInvalidArgument, before anything runs, where calls on two communicators share
// memory that one of them writes.
xcclResult_t EndGroup();

}  // namespace xccl::c_api
