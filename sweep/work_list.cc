// A line becomes axes, one for the topologies and one for each option. Counting through all axes, as the
// digits of a number, gives the jobs.
#include "sweep/work_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "ir/collective.h"
#include "synth/engines.h"

namespace xccl {
namespace {

enum class Takes : uint8_t { kValues, kValuesEachTime, kNothing };
struct Known {
  std::string_view flag;
  Takes takes = Takes::kValues;
};
constexpr std::string_view kProgram = "--program";  // only work lists have it; `plan` has all other options
constexpr Known kKnown[] = {{"--collective"},
                            {"--size"},
                            {"--engine"},
                            {"--collective-file"},
                            {"--root"},
                            {"--ranks"},
                            {"--counts"},
                            {"--pairs"},
                            {"--no-relays", Takes::kNothing},
                            {"--gpu-arch"},
                            {"--gpus-per-switch"},
                            {"--gpu-busids"},
                            {"--pcie-gen"},
                            {"--nic-rate"},
                            {"--host", Takes::kValuesEachTime},
                            {"--hosts-file"},
                            {"--job"},
                            {"--link"},
                            {"--nvlink-domain"},
                            {"--hosts"},
                            {"--rails", Takes::kNothing},
                            {"--no-rails", Takes::kNothing},
                            {"--plain-switches", Takes::kNothing},
                            {"--fabric"},
                            {"--without-link", Takes::kValuesEachTime},
                            {"--degrade", Takes::kValuesEachTime},
                            {"--chunks"},
                            {"--steps"},
                            {"--rounds"},
                            {"--model"},
                            {"--seed"},
                            {"--allow-divergent", Takes::kNothing},
                            {"--machine"},
                            {"--max-ctas"},
                            {"--verify-passes", Takes::kNothing},
                            {"--time-limit"},
                            {"--memory-limit"},
                            {kProgram, Takes::kNothing}};
constexpr std::pair<std::string_view, std::string_view> kShort[] = {
    {"-c", "--collective"}, {"-s", "--size"}, {"-e", "--engine"}};

constexpr size_t kMostJobs = 1'000'000;

// A flag and its list of values. A flag without a value has one empty value.
struct Axis {
  const Known* flag = nullptr;  // none: topologies
  std::vector<std::string> values = {};
};

std::vector<std::string> WordsBeforeComment(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string_view word : WordsOf(line)) {
    if (word[0] == '#') break;
    words.emplace_back(word);
  }
  return words;
}

StatusOr<const Known*> FindFlag(std::string_view word) {
  for (const auto& [letter, name] : kShort)
    if (word == letter) word = name;
  const auto* const known = std::ranges::find(kKnown, word, &Known::flag);
  if (known != std::end(kKnown)) return known;
  return InvalidInput(
      fmt::format("no option '{}' in a sweep{}", Shortened(word), DidYouMean(word, WorkListFlags())));
}

// Does the cheap checks before a long sweep, and writes out ranges of sizes.
StatusOr<std::vector<std::string>> ValuesOf(std::string_view flag, const std::string& word) {
  if (flag == "--size") {
    XCCL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ParseSizeList(word));
    std::vector<std::string> values;
    for (const int64_t size : sizes) values.push_back(std::to_string(size));
    return values;
  }
  if (flag == "--collective") XCCL_RETURN_IF_ERROR(ParseCollectiveKind(word).status());
  if (flag == "--engine" && word != "all") XCCL_RETURN_IF_ERROR(FindEngine(word).status());
  return std::vector<std::string>{word};
}

Status AddWord(const std::string& word, std::vector<Axis>& axes) {
  Axis& axis = axes.back();
  if (word.empty()) return InvalidInput(fmt::format("{}: no value; expected one", axis.flag->flag));
  if (axis.flag == nullptr) {
    axis.values.push_back(word);
    return OkStatus();
  }
  if (axis.flag->takes == Takes::kNothing)
    return InvalidInput(
        fmt::format("{}: takes no value, but '{}' follows", axis.flag->flag, Shortened(word)));
  const StatusOr<std::vector<std::string>> values = ValuesOf(axis.flag->flag, word);
  if (!values.ok()) return InvalidInput(fmt::format("{}: {}", axis.flag->flag, values.status().message()));
  axis.values.insert(axis.values.end(), values->begin(), values->end());
  return OkStatus();
}

Status CheckAxes(const std::vector<Axis>& axes) {
  std::set<std::string_view> given;
  for (const Axis& axis : axes) {
    if (axis.flag == nullptr) {
      if (axis.values.empty())
        return InvalidInput("no topology; expected at least one before the first option");
      continue;
    }
    if (axis.values.empty()) return InvalidInput(fmt::format("{}: no value; expected one", axis.flag->flag));
    if (!given.insert(axis.flag->flag).second && axis.flag->takes != Takes::kValuesEachTime)
      return InvalidInput(fmt::format("{0}: given twice; hint: all values behind one {0}", axis.flag->flag));
  }
  if (given.contains("--collective") == given.contains("--collective-file"))
    return InvalidInput(given.contains("--collective") ? "--collective-file: not together with --collective"
                                                       : "no collective; hint: --collective allreduce");
  return OkStatus();
}

StatusOr<std::vector<Axis>> AxesOf(const std::vector<std::string>& words) {
  std::vector<Axis> axes(1);
  for (const std::string& word : words) {
    if (word[0] != '-') {
      XCCL_RETURN_IF_ERROR(AddWord(word, axes));
      continue;
    }
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    XCCL_ASSIGN_OR_RETURN(const Known* const flag, FindFlag(std::string_view(word).substr(0, equals)));
    axes.push_back({flag});
    if (equals != std::string::npos) XCCL_RETURN_IF_ERROR(AddWord(word.substr(equals + 1), axes));
    if (flag->takes == Takes::kNothing) axes.back().values = {""};
  }
  XCCL_RETURN_IF_ERROR(CheckAxes(axes));
  return axes;
}

// The engines that `all` stands for.
std::vector<std::string> EnginesFor(const std::string& engine, const std::string& collective) {
  if (engine != "all") return {engine};
  const StatusOr<CollectiveKind> kind = ParseCollectiveKind(collective);
  std::vector<std::string> names;
  for (const Engine& each : AllEngines())
    if (each.MayServe(kind.ok() ? *kind : CollectiveKind::kCustom)) names.emplace_back(each.name);
  return names;
}

SweepJob JobOf(const std::vector<Axis>& axes, const std::vector<size_t>& digits) {
  SweepJob job{.size_bytes = int64_t{64} << 20, .engine = kDefaultEngine};
  std::vector<std::pair<const Known*, std::string>> others;
  for (size_t a = 0; a < axes.size(); ++a) {
    const std::string& value = axes[a].values[digits[a]];
    const std::string_view flag = axes[a].flag == nullptr ? "" : axes[a].flag->flag;
    if (flag.empty()) {
      job.topology = value;
    } else if (flag == "--collective") {
      job.collective = value;
    } else if (flag == "--size") {
      job.size_bytes = std::stoll(value);
    } else if (flag == "--engine") {
      job.engine = value;
    } else {
      others.emplace_back(axes[a].flag, fmt::format("{}{}{}", flag, value.empty() ? "" : "=", value));
    }
  }
  // In one order, whatever that of the line is: the same job has one name.
  std::ranges::stable_sort(others, {}, &std::pair<const Known*, std::string>::first);
  for (const auto& [flag, option] : others) job.options += (job.options.empty() ? "" : " ") + option;
  return job;
}

// The jobs of a list, each once.
class Jobs {
 public:
  Status AddProduct(const std::vector<Axis>& axes) {
    size_t product = 1;
    for (const Axis& axis : axes) product = std::min(product * axis.values.size(), kMostJobs + 1);
    if (product > kMostJobs) return TooMany();
    std::vector<size_t> digits(axes.size(), 0);
    while (true) {
      const SweepJob named = JobOf(axes, digits);
      for (const std::string& engine : EnginesFor(named.engine, named.collective)) {
        SweepJob job = named;
        job.engine = engine;
        if (known_.insert({job.topology, job.collective, job.size_bytes, job.engine, job.options}).second)
          jobs_.push_back(std::move(job));
      }
      if (jobs_.size() > kMostJobs) return TooMany();
      size_t a = axes.size();
      while (a > 0 && ++digits[a - 1] == axes[a - 1].values.size()) digits[--a] = 0;
      if (a == 0) return OkStatus();
    }
  }
  std::vector<SweepJob> Take() { return std::move(jobs_); }

 private:
  static Status TooMany() {
    return InvalidInput(fmt::format("more than {} jobs in one list; expected fewer", kMostJobs));
  }

  std::vector<SweepJob> jobs_;
  std::set<std::tuple<std::string, std::string, int64_t, std::string, std::string>> known_;
};

}  // namespace

std::vector<std::string> PlanArguments(const SweepJob& job) {
  std::vector<std::string> words = {"plan", job.topology};
  if (!job.collective.empty()) words.push_back("--collective=" + job.collective);
  words.push_back(fmt::format("--size={}", job.size_bytes));
  words.push_back("--engine=" + job.engine);
  for (const std::string& option : WordsBeforeComment(job.options))
    words.push_back(option == kProgram ? "--output=/dev/null" : option);
  return words;
}

std::vector<std::string_view> WorkListFlags() {
  std::vector<std::string_view> flags;
  for (const Known& known : kKnown) flags.push_back(known.flag);
  return flags;
}

StatusOr<std::vector<SweepJob>> ParseWorkList(std::string_view text, const std::string& file) {
  Jobs jobs;
  int64_t number = 0;
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    const std::vector<std::string> words = WordsBeforeComment(line);
    if (words.empty()) continue;
    const std::string place = fmt::format("{}:{}", file, number);
    const StatusOr<std::vector<Axis>> axes = AxesOf(words);
    if (!axes.ok()) return Annotate(axes.status(), place);
    if (const Status added = jobs.AddProduct(*axes); !added.ok()) return Annotate(added, place);
  }
  std::vector<SweepJob> all = jobs.Take();
  if (all.empty())
    return InvalidInput(file +
                        ": no jobs; expected lines such as 'dgx-a100 ring:8 -c allreduce -s 1KiB 64MiB'");
  return all;
}

StatusOr<std::vector<SweepJob>> ReadWorkList(const std::string& file) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
  return ParseWorkList(text, file);
}

}  // namespace xccl
