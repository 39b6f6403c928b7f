// exec: finds or makes the plan book of the machine that a job runs on, and becomes the job's command with
// it. A step that fails costs the job nothing but its plans: the command then runs as it was. Whatever takes
// long or may crash runs in a child, which is an xccl-synth with one of its other commands.
#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child.h"
#include "base/files.h"
#include "base/standard_streams.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/say.h"
#include "pipeline/exec/cache.h"
#include "pipeline/exec/job_shape.h"
#include "pipeline/exec/machine.h"
#include "pipeline/exec/variables.h"
#include "pipeline/nccl/book.h"
#include "runtime/bootstrap/placement.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/plan_book.h"
#include "topologies/load/load.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

constexpr int kNotFound = 127, kCannotRun = 126;  // the shell's
constexpr const char* kLimit = "120s";
constexpr double kMachineS = 180, kEmitS = 60;
constexpr std::chrono::seconds kMeeting(30);  // of the job's ranks
constexpr char kBook = '\1';                  // in lines and keys: the book's directory

struct Flags {
  std::string topology;
  std::optional<int32_t> hosts;
  std::string book;
  std::string collectives, sizes = "1KiB:256MiB:x64";
  bool without_nccl = false, measure = false, dry_run = false;
};

// The machine of the job, and the shell's lines that describe it.
struct JobMachine {
  std::optional<Topology> topology;
  std::vector<std::string> lines;  // kBook stands for the book's directory
};

// Everything that the command gets.
struct Prepared {
  std::vector<std::string> lines;  // for --dry-run
  std::vector<std::pair<std::string, std::string>> variables;
};

class Preparation {
 public:
  Preparation(const Flags& flags, const Session& session, double limit_s)
      : flags_(flags), session_(session), limit_s_(limit_s) {}

  StatusOr<Prepared> Run() {
    const std::string given =
        flags_.book.empty() ? ProcessEnvironment("XCCL_BOOK").value_or("") : flags_.book;
    const StatusOr<std::optional<JobShape>> shape = ShapeOfJob(ProcessEnvironment);
    // A machine that is named has all ranks, whatever hosts they are on.
    const bool needs_shape = given.empty() && (flags_.topology.empty() || flags_.measure);
    if (!shape.ok() && needs_shape) return shape.status();
    is_launched_ = shape.ok() && shape->has_value();
    shape_ = is_launched_ ? **shape : JobShape{Rank(0), flags_.hosts.value_or(1), 1};
    is_one_host_ = shape.ok() && shape_.hosts == 1;
    const auto absolute = [](const std::string& path) {  // the command may change its folder
      std::error_code ignored;
      return path.empty() ? path : std::filesystem::absolute(path, ignored).string();
    };
    if (!given.empty()) return UseOf(absolute(given), !flags_.without_nccl && !flags_.measure, {});
    folder_ = absolute(cuda::DefaultKernelCache(ProcessEnvironment));
    if (folder_.empty())
      return InvalidInput("HOME, XDG_CACHE_HOME: not set; expected a place for the plan book; hint: --book");
    if (flags_.measure) return Measure();
    XCCL_ASSIGN_OR_RETURN(const JobMachine machine, FindMachine());
    return Plan(machine);
  }

 private:
  static std::string ToTopology() { return fmt::format(" > {}/topology.xml", kBook); }
  std::string Name() const { return is_launched_ ? fmt::format("rank {}", shape_.rank.value) : "exec"; }

  bool IsAlone() const { return !is_launched_ || shape_.ranks() == 1; }

  // Runs an xccl-synth to its end; its standard output.
  StatusOr<std::string> Synth(std::vector<std::string> arguments, double limit_s) const {
    const std::string name = arguments[0];
    XCCL_ASSIGN_OR_RETURN(ChildProcess child,
                          ChildProcess::Start(name, "/proc/self/exe", std::move(arguments)));
    std::optional<ChildOutput> output = child.FinishWithin(limit_s);
    if (!output)
      return LimitReached(fmt::format("{}: no end in {:g} s{}", name, limit_s,
                                      limit_s == limit_s_ ? "; hint: --time-limit" : ""));
    if (output->status == 0) return std::move(output->out);
    return InvalidInput(FailureOf(name, *output));
  }

  StatusOr<JobMachine> FindMachine() const {
    if (!flags_.topology.empty()) return GivenMachine();
    if (const std::optional<std::string> fingerprint = FingerprintOfGpus(ProcessEnvironment)) {
      StatusOr<JobMachine> found = MachineOfGpus(*fingerprint);
      const bool has_none =
          !found.ok() && found.status().message().starts_with("this machine: nvidia-smi -L: ");
      if (!has_none || shape_.ranks() == 1) return found;
    }
    if (shape_.ranks() == 1)
      return InvalidInput(
          "no nvidia-smi on PATH, and no launcher of several ranks; expected a machine to plan for; hint: "
          "--topology");
    const std::string xml = XmlOfCpuRanks(shape_);
    XCCL_ASSIGN_OR_RETURN(Topology topology, ReadNativeXml(xml, "cpu-ranks"));
    return JobMachine{std::move(topology),
                      {"echo " + ShellWord(xml.substr(0, xml.size() - 1)) + ToTopology()}};
  }

  StatusOr<JobMachine> GivenMachine() const {
    LoadOptions options;
    XCCL_ASSIGN_OR_RETURN(Topology topology, LoadTopology(flags_.topology, options));
    std::string line = "xccl-synth topo " + ShellWord(flags_.topology);
    if (is_launched_ || flags_.hosts) {
      XCCL_ASSIGN_OR_RETURN(const int32_t hosts, HostsToAdd(topology, shape_));
      if (hosts > 1) {
        options.hosts = hosts;
        line += fmt::format(" --hosts {}", hosts);
        XCCL_ASSIGN_OR_RETURN(topology, LoadTopology(flags_.topology, options));
      }
    }
    return JobMachine{std::move(topology), {line + " --format xml" + ToTopology()}};
  }

  StatusOr<JobMachine> MachineOfGpus(const std::string& fingerprint) const {
    std::vector<std::string> arguments = {"topo", "--this-machine", "--format", "xml"};
    if (shape_.hosts > 1) arguments.insert(arguments.end(), {"--hosts", std::to_string(shape_.hosts)});
    const std::string key =
        fmt::format("machine by {}\n{}\n{}", session_.version, Join(arguments, " "), fingerprint);
    std::string xml;
    if (flags_.dry_run && !FindInCache(folder_, key)) {
      XCCL_ASSIGN_OR_RETURN(xml, Synth(arguments, kMachineS));
    } else {
      CacheRequest request = Request(key, kMachineS);
      request.make = [&](const std::string& directory) -> Status {
        SayNote("reading this machine, once: " + CachePathOf(folder_, key));
        XCCL_ASSIGN_OR_RETURN(const std::string text, Synth(arguments, kMachineS));
        return WriteFileAtomically(directory + "/topology.xml", text);
      };
      XCCL_ASSIGN_OR_RETURN(const std::string directory, FindOrMake(request));
      XCCL_ASSIGN_OR_RETURN(xml, ReadTextFile(directory + "/topology.xml"));
    }
    XCCL_ASSIGN_OR_RETURN(const Topology all, ReadNativeXml(xml, "this-machine.xml"));
    XCCL_ASSIGN_OR_RETURN(Topology used, GpusOfJob(all, shape_, "this-machine"));
    std::string line = "xccl-synth " + Join(arguments, " ");
    if (used.num_ranks() < all.num_ranks()) {
      const int32_t gpus = all.num_ranks() / shape_.hosts;
      std::vector<std::string> ranges;
      for (int32_t host = 0; host < shape_.hosts; ++host)
        ranges.push_back(fmt::format("{}-{}", host * gpus, host * gpus + shape_.ranks_per_host - 1));
      line += " --ranks " + Join(ranges, ",");
    }
    return JobMachine{std::move(used), {line + ToTopology()}};
  }

  CacheRequest Request(const std::string& key, double limit_s) const {
    CacheRequest request;
    request.folder = folder_;
    request.key = key;
    request.wait_s = limit_s + kEmitS + 5;
    request.on_wait = [name = Name(), path = CachePathOf(folder_, key)] {
      SayNote(fmt::format("{} waits for {}, which another process makes", name, path));
    };
    return request;
  }

  std::string Collectives(bool beside_nccl) const {
    if (!flags_.collectives.empty()) return flags_.collectives;
    const std::string modelled = "allreduce,allgather,reduce_scatter,broadcast,reduce";
    return beside_nccl ? modelled : modelled + ",alltoall";
  }

  // The commands that make the book in a directory that has its topology.xml.
  std::vector<std::vector<std::string>> CommandsOf(const std::string& directory, bool beside_nccl,
                                                   bool has_gpus) const {
    std::vector<std::string> book = {"book",
                                     directory + "/topology.xml",
                                     "--collectives",
                                     Collectives(beside_nccl),
                                     "--sizes",
                                     flags_.sizes,
                                     "-o",
                                     directory};
    if (!beside_nccl) book.emplace_back("--without-nccl");
    if (!session_.memory_limit.empty()) book.insert(book.end(), {"--memory-limit", session_.memory_limit});
    std::vector<std::vector<std::string>> commands = {book};
    if (has_gpus) commands.push_back({"emit", directory, "--to", "cuda"});
    return commands;
  }

  StatusOr<Prepared> Plan(const JobMachine& machine) const {
    const bool beside_nccl =
        !flags_.without_nccl &&
        nccl::OptionsOfBook(*machine.topology, PlanOptions{.machine_of_topology = true}).ok();
    if (beside_nccl) XCCL_RETURN_IF_ERROR(FindPlugins(Self()).status());  // before long work
    const bool has_gpus = !machine.topology->gpu_arch().empty();
    const std::string xml = WriteNativeXml(*machine.topology);
    std::string key = fmt::format("book by {}\n", session_.version);
    for (const std::vector<std::string>& command : CommandsOf(std::string(1, kBook), beside_nccl, has_gpus))
      key += Join(command, " ") + "\n";
    key += xml;
    const std::string path = CachePathOf(folder_, key);
    std::vector<std::string> lines = {fmt::format("mkdir -p {}", kBook)};
    lines.insert(lines.end(), machine.lines.begin(), machine.lines.end());
    for (const std::vector<std::string>& command : CommandsOf(std::string(1, kBook), beside_nccl, has_gpus))
      lines.push_back("xccl-synth " + Join(command, " "));
    for (std::string& line : lines) line = Replaced(line, path);
    if (flags_.dry_run && !FindInCache(folder_, key)) return UseOfMissing(path, beside_nccl, lines);
    CacheRequest request = Request(key, limit_s_);
    request.make = [&](const std::string& directory) -> Status {
      SayNote(fmt::format("making the plan book of {}, once, for up to {:g} s: {}", machine.topology->name(),
                          limit_s_, path));
      XCCL_RETURN_IF_ERROR(WriteFileAtomically(directory + "/topology.xml", xml));
      // The planner is not told the limit: its plans then follow from their flags alone, so that hosts
      // without a common cache make the same book.
      for (const std::vector<std::string>& command : CommandsOf(directory, beside_nccl, has_gpus))
        XCCL_RETURN_IF_ERROR(Synth(command, command[0] == "book" ? limit_s_ : kEmitS).status());
      return OkStatus();
    };
    XCCL_ASSIGN_OR_RETURN(const std::string directory, FindOrMake(request));
    return UseOf(directory, beside_nccl, std::move(lines));
  }

  // The command that measures the job's ranks, or the threads of this process, and its plans on them.
  std::vector<std::string> Tune(const std::string& directory) const {
    std::vector<std::string> tune = {"tune", "--collectives", Collectives(false), "--sizes", flags_.sizes,
                                     "-o",   directory};
    if (IsAlone()) tune.insert(tune.begin() + 1, flags_.topology);
    if (!session_.memory_limit.empty()) tune.insert(tune.end(), {"--memory-limit", session_.memory_limit});
    return tune;
  }

  // All ranks measure together, so either all of them find a book or all measure. A host has a book of its
  // own, by its number in the job, which its first rank writes: hosts with one cache would wait for each
  // other's locks. Where a first rank cannot write it, none measures.
  StatusOr<Prepared> Measure() const {
    if (IsAlone() && flags_.topology.empty())
      return InvalidInput("--measure: one process; expected ranks of a launcher, or --topology for threads");
    if (ProcessEnvironment("PMI_FD"))
      return InvalidInput("--measure: PMI_FD: ranks meet once by it, which is for the command");
    std::unique_ptr<LaunchedGroup> group;
    std::string key = fmt::format("measured by {}\n{}\n", session_.version, Join(Tune(""), " "));
    if (!IsAlone()) {
      XCCL_ASSIGN_OR_RETURN(group, JoinGroup(LaunchFlags(), kMeeting));
      key +=
          fmt::format("{} ranks a host, host {} of {}\n", shape_.ranks_per_host,
                      shape_.rank.value / shape_.ranks_per_host, Join(group->bootstrap().host_names(), " "));
    }
    const std::string path = CachePathOf(folder_, key);
    if (flags_.dry_run) return UseOfMissing(path, false, {"xccl-synth " + Join(Tune(path), " ")});
    const bool has = FindInCache(folder_, key).has_value();
    const bool is_first = shape_.rank.value % shape_.ranks_per_host == 0;
    const Status can_make = is_first && !has ? CheckCanMake(folder_, key) : OkStatus();
    const std::string found = "found";
    std::vector<std::string> said = {has ? found : can_make.message()};
    if (group != nullptr) {
      XCCL_ASSIGN_OR_RETURN(said, group->bootstrap().AllGather(said[0], kMeeting));
    }
    group.reset();
    for (const std::string& why : said)
      if (!why.empty() && why != found) return InvalidInput(why);
    if (std::ranges::count(said, found) == std::ssize(said)) return UseOf(path, false, {});
    std::error_code ignored;
    if (has && is_first) std::filesystem::remove_all(path, ignored);
    if (!is_first) XCCL_RETURN_IF_ERROR(Synth(Tune(path), limit_s_).status());
    CacheRequest request = Request(key, limit_s_);
    request.make = [&](const std::string& directory) -> Status {
      if (!is_first) return InvalidInput(path + ": the first rank of this host has not written it");
      SayNote(fmt::format("measuring the job's machine, once, for up to {:g} s: {}", limit_s_, path));
      return Synth(Tune(directory), limit_s_).status();
    };
    XCCL_RETURN_IF_ERROR(FindOrMake(request).status());
    return UseOf(path, false, {});
  }

  static std::string Self() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  }

  // The line with the book's directory for each kBook.
  static std::string Replaced(const std::string& line, const std::string& path) {
    return Join(Split(line, kBook), ShellWord(path));
  }

  StatusOr<Prepared> UseOf(const std::string& directory, bool beside_nccl,
                           std::vector<std::string> lines) const {
    XCCL_ASSIGN_OR_RETURN(const PlanBook book, ReadPlanBook(directory));
    const StatusOr<std::string> table = ReadFile(directory + "/nccl-tuner.table");
    BookUse use;
    use.directory = directory;
    use.has_plans = !book.entries.empty();
    use.has_table = table.ok() && std::ranges::count(*table, '\n') > 1;
    if (!use.has_plans && !use.has_table)
      return InvalidInput(directory + ": no plan is faster than NCCL's by NCCL's own model");
    return With(use, beside_nccl, std::move(lines));
  }

  // As if the book were there, with plans and a table.
  StatusOr<Prepared> UseOfMissing(const std::string& directory, bool beside_nccl,
                                  std::vector<std::string> lines) const {
    BookUse use;
    use.directory = directory;
    use.has_table = true;
    return With(use, beside_nccl, std::move(lines));
  }

  StatusOr<Prepared> With(BookUse& use, bool beside_nccl, std::vector<std::string> lines) const {
    use.is_one_host = is_one_host_;
    if (beside_nccl) {
      XCCL_ASSIGN_OR_RETURN(use.plugins, FindPlugins(Self()));
    }
    Prepared prepared{std::move(lines), VariablesOf(use, ProcessEnvironment)};
    for (const auto& [name, value] : prepared.variables)
      prepared.lines.push_back(fmt::format("export {}={}", name, ShellWord(value)));
    return prepared;
  }

  const Flags& flags_;
  const Session& session_;
  const double limit_s_;
  JobShape shape_;
  bool is_launched_ = false;
  bool is_one_host_ = false;  // of the job, as far as its launcher tells
  std::string folder_;        // of the cache
};

// False if nothing of this name could be run, so that no book is planned for a misspelt command.
bool Exists(const std::string& command) {
  if (command.find('/') != std::string::npos) return PathExists(command);
  for (const std::string& folder : Split(ProcessEnvironment("PATH").value_or("/bin:/usr/bin"), ':'))
    if (PathExists((folder.empty() ? "." : folder) + "/" + command)) return true;
  return false;
}

[[noreturn]] void Become(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  RestoreSignals();
  execvp(pointers[0], pointers.data());
  const bool missing = errno == ENOENT;
  const char* const why = !missing             ? std::strerror(errno)
                          : Exists(command[0]) ? "the interpreter that it names is not there"
                                               : "command not found";
  SayError(fmt::format("{}: {}", command[0], why));
  _exit(missing ? kNotFound : kCannotRun);
}

Status Exec(const Flags& flags, const Session& session) {
  const std::vector<std::string>& command = session.to_become;
  if (command.empty() || command[0].empty())
    return UsageError("no COMMAND; expected it behind --; hint: xccl-synth exec -- ./my_job");
  XCCL_ASSIGN_OR_RETURN(
      const int64_t limit_ps,
      FlagValue("--time-limit", ParseDuration(session.time_limit.empty() ? kLimit : session.time_limit)));
  const double limit_s = static_cast<double>(limit_ps) / static_cast<double>(kPsPerSecond);
  // Wrong options end here; what goes wrong later costs the command its plan book alone.
  XCCL_RETURN_IF_ERROR(ParseSizesFlag(flags.sizes).status());
  XCCL_RETURN_IF_ERROR(ListValue("--collectives", flags.collectives, ParseCollectiveKind).status());
  if (!flags.dry_run && !Exists(command[0])) Become(command);
  StatusOr<Prepared> prepared = Preparation(flags, session, limit_s).Run();
  if (flags.dry_run) {
    if (!prepared.ok()) return prepared.status();
    std::vector<std::string> words;
    for (const std::string& word : command) words.push_back(ShellWord(word));
    prepared->lines.push_back(Join(words, " "));
    return Print(Join(prepared->lines, "\n") + "\n");
  }
  if (prepared.ok()) {
    for (const auto& [name, value] : prepared->variables) setenv(name.c_str(), value.c_str(), 1);
  } else {
    std::string why = prepared.status().message();
    std::ranges::replace(why, '\n', ' ');
    SayWarning(why + "; the command runs without a plan book");
  }
  Become(command);
}

}  // namespace

void AddExecCommand(CommandLine& line, Session& session) {
  Command command =
      line.AddCommand("exec", "Run a command with the plan book of its machine: exec [OPTIONS] -- COMMAND");
  const auto flags = std::make_shared<Flags>();
  command.WhenChosen([&session, flags] {
    session.limits_are_of_planning = true;
    session.work = [&session, flags] { return Exec(*flags, session); };
  });
  command.AddOption("--topology", flags->topology,
                    "the machine: of all ranks, or one of the job's hosts (default: found)");
  command
      .AddOption("--hosts", flags->hosts,
                 "without a launcher of ranks: hosts of the job, each of which runs this line")
      .Between(1, 1 << 20);
  command.AddOption("--book", flags->book, "this plan book (default: XCCL_BOOK, else found or made)");
  command.AddOption("--collectives", flags->collectives,
                    "what to plan, with commas between (default: those that NCCL times; without NCCL also\n"
                    "alltoall)");
  command.AddOption("--sizes", flags->sizes, "sizes to plan: 1KiB,1MiB or 1KiB:1GiB:x4").ShowDefault();
  command.AddFlag("--without-nccl", flags->without_nccl,
                  "the command calls xccl.h: a plan for every size, and no library before NCCL");
  command.AddFlag(
      "--measure", flags->measure,
      "--without-nccl, and the plans are those that measure fastest, as tune does: by the job's ranks\n"
      "on CPU cores, or by threads on --topology");
  command.AddFlag("--dry-run", flags->dry_run, "print the shell's lines that this stands for");
  command.Heading("Limits");
  command.AddOption("--time-limit", session.time_limit,
                    "of planning, not of the command: after this wall time it runs without a plan book\n"
                    "(default: 120s)");
  command.AddOption("--memory-limit", session.memory_limit, "of planning, not of the command (4GiB)");
  command.Footer(
      "Examples:\n"
      "  xccl-synth exec -- ./my_job\n"
      "  mpirun -n 8 xccl-synth exec -- ./my_job --steps 100\n"
      "  xccl-synth exec --dry-run --topology dgx-h100 -- torchrun --nproc-per-node 8 train.py");
}

}  // namespace xccl
