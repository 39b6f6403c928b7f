// Calls a tuner plugin as every release of NCCL does, and watches what it does:
//
//   tuner_driver LIBRARY NODES RANKS CALLS
//
// So many calls, at random and spread over the releases, go to two ranks of one communicator. The plugin
// finds its table as under NCCL, in the environment. A line for each release says how many calls the plugin
// steered and how long they took, with one reading of the clock in each. The program exits with 1 at the
// first fault:
// - a return other than success;
// - another answer on the other rank, or other constants;
// - a pair that NCCL does not offer and is then chosen or has another cost, or one that is withdrawn;
// - a choice that does not exist, or more channels than NCCL has.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "runtime/nccl/tuner/abi.h"
#include "runtime/nccl/tuner/stand_in.h"
#include "runtime/nccl/tuner/table.h"

namespace xccl::nccl_tuner {
namespace {

struct Options {
  std::string library;
  size_t nodes = 1, ranks = 1, calls = 0;
};

// Prints a message of the plugin, but not twice in a row: each rank and each release gives it.
void Log(int, unsigned long, const char*, int, const char* format, ...) {
  static std::string last;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (last != text) std::fprintf(stderr, "%s\n", text);
  last = text;
}

Asked SomeCall(Random& random) {
  Asked asked;
  asked.collective = static_cast<int>(random.Below(kNumCollectives + 2)) - 1;
  asked.bytes = random.Next() >> random.Below(64);  // as many small ones as large ones
  asked.pipe_ops = static_cast<int>(random.Below(4)) + 1;
  asked.registered = static_cast<int>(random.Below(2));
  asked.collnet = static_cast<int>(random.Below(2));
  asked.nvls = static_cast<int>(random.Below(2));
  asked.offered = Choices(random.Next());
  return asked;
}

// The fault of an answer; "" if it has none.
std::string FaultOf(const Asked& asked, const Answer& answer, const Release& release) {
  if (answer.result != kSuccess) return "the plugin returned " + std::to_string(answer.result);
  if (answer.channels < 0 || answer.channels > kMaxChannels)
    return std::to_string(answer.channels) + " channels; expected at most " + std::to_string(kMaxChannels);
  if (release.version <= 2) {
    if (!answer.steered) return "";
    const bool known = answer.algorithm >= 0 && answer.algorithm < release.algorithms &&
                       answer.protocol >= 0 && answer.protocol < kNumProtocols;
    return known ? ""
                 : "algorithm " + std::to_string(answer.algorithm) + ", protocol " +
                       std::to_string(answer.protocol) + "; expected a choice that exists";
  }
  for (int i = 0; i < kNumAlgorithms * kNumProtocols; ++i) {
    const float cost = answer.costs[static_cast<size_t>(i)];
    const std::string pair =
        "algorithm " + std::to_string(i / kNumProtocols) + ", protocol " + std::to_string(i % kNumProtocols);
    if (i >= release.algorithms * kNumProtocols || !asked.offered[static_cast<size_t>(i)]) {
      if (cost != kNotOffered) return pair + " costs " + std::to_string(cost) + ", but is not offered";
    } else if (!std::isfinite(cost) || cost < 0) {
      return pair + " costs " + std::to_string(cost) + "; expected at least 0, as it is offered";
    }
  }
  return "";
}

// Calls the plugin as one release does, and prints that release's line.
Status Drive(const Options& options, const Release& release, size_t calls) {
  XCCL_ASSIGN_OR_RETURN(const StandIn nccl, StandIn::Load(options.library, release));
  void *rank0 = nullptr, *rank1 = nullptr;
  Constants constants0 = {}, constants1 = {};
  const std::string place = std::string("NCCL ") + release.name;
  for (const int result : {nccl.Init(options.nodes, options.ranks, Log, &rank0, constants0),
                           nccl.Init(options.nodes, options.ranks, Log, &rank1, constants1)})
    if (result != kSuccess) return InvalidInput(place + ": init returned " + std::to_string(result));
  if (constants0 != constants1) return InvalidInput(place + ": the ranks have other constants");

  Random random(static_cast<uint64_t>(release.version));
  std::vector<int64_t> times_ns;
  times_ns.reserve(calls);
  size_t steered = 0;
  for (size_t i = 0; i < calls; ++i) {
    const Asked asked = SomeCall(random);
    int64_t took_ns = 0;
    const Answer answer = nccl.Ask(rank0, asked, &took_ns);
    std::string fault = FaultOf(asked, answer, release);
    if (fault.empty() && !(nccl.Ask(rank1, asked) == answer)) fault = "the ranks have other answers";
    if (!fault.empty()) {
      fault.insert(0, place + ": call " + std::to_string(i) + ", collective " +
                          std::to_string(asked.collective) + ", " + std::to_string(asked.bytes) + " bytes: ");
      return InvalidInput(fault);
    }
    times_ns.push_back(took_ns);
    steered += answer.steered ? 1 : 0;
  }
  for (void* context : {rank0, rank1})
    if (const int result = nccl.End(context); result != kSuccess)
      return InvalidInput(place + ": the end returned " + std::to_string(result));
  std::ranges::sort(times_ns);
  std::printf("%-6s %7d %9zu %9zu %7lld %7lld\n", release.name, release.version, calls, steered,
              static_cast<long long>(times_ns[times_ns.size() / 2]),
              static_cast<long long>(times_ns[times_ns.size() * 99 / 100]));
  return OkStatus();
}

Status ParseCount(std::string_view name, std::string_view text, size_t& count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 1 && count <= 1'000'000'000)
    return OkStatus();
  return UsageError(std::string(name) + " '" + std::string(text) +
                    "'; expected a whole number from 1 to 1000000000");
}

Status Run(std::span<char* const> words) {
  if (words.size() != 5)
    return UsageError(std::to_string(words.size() - 1) + " arguments; expected LIBRARY NODES RANKS CALLS");
  Options options;
  options.library = words[1];
  XCCL_RETURN_IF_ERROR(ParseCount("NODES", words[2], options.nodes));
  XCCL_RETURN_IF_ERROR(ParseCount("RANKS", words[3], options.ranks));
  XCCL_RETURN_IF_ERROR(ParseCount("CALLS", words[4], options.calls));
  std::printf("%-6s %7s %9s %9s %7s %7s\n", "NCCL", "version", "calls", "steered", "p50_ns", "p99_ns");
  for (const Release& release : kReleases)
    XCCL_RETURN_IF_ERROR(Drive(options, release, (options.calls - 1) / kReleases.size() + 1));
  return OkStatus();
}

}  // namespace
}  // namespace xccl::nccl_tuner

int main(int argc, char** argv) {
  const xccl::Status status = xccl::nccl_tuner::Run({argv, static_cast<size_t>(argc)});
  if (!status.ok()) std::fprintf(stderr, "tuner_driver: %s\n", status.message().c_str());
  return xccl::ExitCode(status.code());
}
