// The log of a job's calls: the file that XCCL_LOG_CALLS names, and the counters of communicators in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "runtime/c_api/handles.h"
#include "runtime/call_counter.h"

namespace xccl::c_api {

// The process's log, made when it is asked for first and written once more when the process exits; null where
// XCCL_LOG_CALLS is not set. `library` is the first caller's.
CallLogFile* TheCallLog(std::string_view library = "xccl");

// The job's ranks, by rank of a communicator with this rank of so many: all of them, where the job has as
// many or nobody says how many it has. Empty: unknown.
std::vector<Rank> MembersOf(Rank rank, int32_t ranks, const std::optional<JobPlace>& place);

// Makes a communicator count its calls, if there is a log. Requires: it has no handle yet.
void CountCalls(Comm& comm);
// For a communicator that ends: its calls are written.
void EndCounting(const Comm& comm);

// Reads the environment again, for tests.
void ForgetCallLog();

}  // namespace xccl::c_api
