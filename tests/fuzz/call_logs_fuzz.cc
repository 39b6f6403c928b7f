// Logs of a job's calls: ours, lines of NCCL and RCCL, and what NCCL's profilers write.
#include <string>

#include "interchange/traces/calls.h"
#include "ir/call_log.h"
#include "pipeline/job_calls.h"
#include "tests/fuzz/fuzz.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  if (const StatusOr<CallLog> log = ReadCallLog(text, "fuzz"); log.ok())
    XCCL_CHECK(ReadCallLog(WriteCallLog(*log), "again").value() == *log);
  CallLogReader reader;
  // Two files of one job, of which the second may contradict the first.
  const Status added = reader.Add(text, "fuzz");
  if (!added.ok()) return CheckRefusal(added);
  XCCL_CHECK(IsCallLog(text));
  const Status again = reader.Add(text.substr(text.size() / 2), "fuzz");
  if (!again.ok()) CheckRefusal(again);
  const StatusOr<JobCalls> job = CallsOfJob(reader.Finish());
  if (!job.ok()) return CheckRefusal(job.status());
  XCCL_CHECK(!job->calls.empty() && !job->groups.empty());
  for (const JobGroups& groups : job->groups)
    for (const std::vector<Rank>& members : groups.members) {
      XCCL_CHECK(std::ssize(members) == groups.ranks);
      for (const Rank member : members) XCCL_CHECK(member.value >= 0 && member.value < job->ranks);
    }
  for (const JobCall& call : job->calls)
    XCCL_CHECK(call.calls > 0 && call.size_bytes >= 0 && (!call.root || call.root->value < call.ranks));
}

}  // namespace xccl::testing
