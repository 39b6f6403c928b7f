// Which calls a job made, in files of several kinds:
// - what XCCL_LOG_CALLS writes (ir/call_log.h);
// - logs of NCCL and RCCL with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL (INIT,COLL names the communicators'
//   ranks as well), also with launchers' prefixes and other lines between;
// - traces of NCCL's example profiler plugin, whose kernels' clocks are the times of calls;
// - lines of JSON of NCCL's inspector plugin.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/call_log.h"

namespace xccl {

// Does the text have such lines, or is it such a file? Cost: linear in the text.
bool IsCallLog(std::string_view text);

struct JobLogs {
  std::vector<CallLog> logs;  // one for each process or GPU, in the order of the files
  std::vector<std::string> warnings;
};

// Reads the files of one job, one after the other. Ranks of the job are those of its largest communicator.
class CallLogReader {
 public:
  CallLogReader();
  ~CallLogReader();
  CallLogReader(CallLogReader&&) noexcept;
  CallLogReader& operator=(CallLogReader&&) noexcept;

  // Errors: kInvalidInput "file: ..." for a text that is none of the kinds, or has no call.
  Status Add(std::string_view text, const std::string& file);
  JobLogs Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace xccl
