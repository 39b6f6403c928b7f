// xccl-sweep-mpi LIST -o TABLE: a sweep as an MPI job. Rank 0 hands out jobs, one at a time, to whoever asks,
// and writes the table; all ranks, rank 0 too, do jobs. A rank that dies ends the MPI job; the same command
// then goes on where the table ends.
//
// A rank asks with the result of its last job, a line of CSV, which is empty the first time. The answer is
// the words of the next job with line breaks between, or nothing when there is none.
#include <fmt/core.h>
#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "base/strings.h"
#include "sweep/job.h"
#include "sweep/sweep.h"
#include "sweep/work_list.h"

namespace xccl {
namespace {

constexpr int kAsk = 1, kAnswer = 2;  // tags
constexpr int kPauseMs = 2;  // between two looks for messages: a rank that waits leaves its core alone

struct Flags {
  std::string list, table;
  bool retry = false;
};

constexpr char kUsage[] = "expected: xccl-sweep-mpi LIST -o TABLE [--retry]";

StatusOr<Flags> ParseFlags(const std::vector<std::string>& words) {
  Flags flags;
  for (size_t w = 0; w < words.size(); ++w) {
    if ((words[w] == "-o" || words[w] == "--output") && w + 1 < words.size()) {
      flags.table = words[++w];
    } else if (words[w] == "--retry") {
      flags.retry = true;
    } else if (!words[w].starts_with('-') && flags.list.empty()) {
      flags.list = words[w];
    } else {
      return UsageError(fmt::format("unexpected '{}'; {}", words[w], kUsage));
    }
  }
  if (flags.list.empty()) return UsageError(std::string("no work list; ") + kUsage);
  if (flags.table.empty()) return UsageError(std::string("no table; ") + kUsage);
  return flags;
}

void Send(const std::string& text, int rank, int tag) {
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, rank, tag, MPI_COMM_WORLD);
}

struct Message {
  int from = 0;
  std::string text;
};
// A message that has arrived.
std::optional<Message> Received(int tag) {
  int arrived = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &arrived, &status);
  if (arrived == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  Message message{status.MPI_SOURCE, std::string(static_cast<size_t>(size), '\0')};
  MPI_Recv(message.text.data(), size, MPI_CHAR, message.from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return message;
}

Message Receive(int tag) {
  while (true) {
    if (std::optional<Message> message = Received(tag)) return *std::move(message);
    std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  }
}

bool HasEnded(const JobProcess& process, int wait_ms) {
  pollfd end = {process.ended_fd(), POLLIN, 0};
  return poll(&end, 1, wait_ms) > 0;
}

// Every rank but the first.
Status Work(const std::string& program) {
  std::string result;
  while (true) {
    Send(result, 0, kAsk);
    const Message job = Receive(kAnswer);
    if (job.text.empty()) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(JobProcess process, JobProcess::Start(program, Split(job.text, '\n')));
    result = CsvLine(process.Finish());
  }
}

// Rank 0.
class Lead {
 public:
  Lead(Sweep& sweep, std::string program, int ranks)
      : sweep_(sweep), program_(std::move(program)), working_(ranks - 1) {}

  Status Run() {
    XCCL_RETURN_IF_ERROR(StartOwn());
    while (own_ || working_ > 0) {
      const std::optional<Message> asked = Received(kAsk);
      if (asked) XCCL_RETURN_IF_ERROR(Answer(*asked));
      const bool ended = own_ && HasEnded(*own_, asked ? 0 : kPauseMs);
      if (ended) {
        XCCL_RETURN_IF_ERROR(sweep_.Record(*own_job_, own_->Finish()));
        own_.reset();
        XCCL_RETURN_IF_ERROR(StartOwn());
      }
      if (!asked && !own_) std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
    }
    return sweep_.Finish();
  }

 private:
  Status StartOwn() {
    own_job_ = sweep_.Next();
    if (own_job_ == nullptr) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(own_, JobProcess::Start(program_, PlanArguments(*own_job_)));
    return OkStatus();
  }

  Status Answer(const Message& asked) {
    if (!asked.text.empty()) {
      XCCL_ASSIGN_OR_RETURN(auto rows, ParseCsv(asked.text));
      XCCL_RETURN_IF_ERROR(sweep_.Record(*given_.at(asked.from), std::move(rows.front())));
    }
    const SweepJob* const job = sweep_.Next();
    given_[asked.from] = job;
    if (job == nullptr) --working_;
    Send(job == nullptr ? "" : Join(PlanArguments(*job), "\n"), asked.from, kAnswer);
    return OkStatus();
  }

  Sweep& sweep_;
  std::string program_;
  int working_;                           // other ranks that have not been told the end
  std::map<int, const SweepJob*> given_;  // by rank
  const SweepJob* own_job_ = nullptr;
  std::optional<JobProcess> own_;
};

Status RunRank(int rank, int ranks, const std::vector<std::string>& words) {
  XCCL_ASSIGN_OR_RETURN(const Flags flags, ParseFlags(words));
  XCCL_ASSIGN_OR_RETURN(const std::string program, FindSynth());
  if (rank > 0) return Work(program);
  XCCL_ASSIGN_OR_RETURN(std::vector<SweepJob> jobs, ReadWorkList(flags.list));
  XCCL_ASSIGN_OR_RETURN(Sweep sweep,
                        Sweep::Open({.jobs = std::move(jobs), .table = flags.table, .retry = flags.retry}));
  XCCL_RETURN_IF_ERROR(Lead(sweep, program, ranks).Run());
  const int error = WriteWhole(STDOUT_FILENO, sweep.Summary());
  return error == 0 ? OkStatus()
                    : InvalidInput(std::string("standard output: cannot write: ") + std::strerror(error));
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) {
  xccl::PrepareStandardStreams();
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  xccl::Status status;
  try {
    status = xccl::RunRank(rank, ranks, std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    status = xccl::StatusOf(error);
  }
  if (!status.ok() && (rank == 0 || status.code() != xccl::StatusCode::kUsage)) {
    xccl::PrintError("xccl-sweep-mpi: " + status.message() + "\n");
  }
  // A wrong command line is wrong on every rank. Any other error ends all ranks, which would wait otherwise.
  if (!status.ok() && status.code() != xccl::StatusCode::kUsage)
    MPI_Abort(MPI_COMM_WORLD, xccl::ExitCode(status.code()));
  MPI_Finalize();
  return xccl::ExitCode(status.code());
}
