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
  GroupStep check = {};  // what run would refuse at once; may be empty
  // The memory of calls on the CPU, where communicators run side by side: of a collective, or of all
  // messages. A GPU's streams give an order that only the caller knows.
  std::vector<MemoryUse> memory = {};
  std::string name = {};  // of the call whose memory it is: "rank 1: allreduce"
};

void StartGroup();
// The thread is in a group.
bool InGroup();
// Keeps a call until the group ends. `waits`: it waits for other ranks' calls. Requires: InGroup().
void Defer(xcclComm_t comm, bool waits, GroupCall call);
// Keeps messages between pairs of ranks. Those of a communicator in one group run side by side; call() is
// made of all of them, and runs before the group's collectives.
using KeptMessages = std::shared_ptr<std::vector<PairMessage>>;
void DeferMessages(xcclComm_t comm, std::span<const PairMessage> messages,
                   const std::function<GroupCall(KeptMessages)>& call);
// A call of the group was refused: the group will run nothing and end with the first such result.
void Refuse(xcclResult_t result);
// Ends a group. The outermost one runs what was kept: the calls that wait, those of a communicator in their
// order and those of different ones side by side, then the messages and the others, all of which are checked
// before the first of them runs. Returns the first failure, after which the others that wait have run and the
// rest have not. Errors: xcclInvalidUsage outside of a group; xcclInvalidArgument, before anything runs,
// where calls on two communicators share memory that one of them writes.
xcclResult_t EndGroup();

}  // namespace xccl::c_api
