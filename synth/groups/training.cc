// Makes the lines of a training step.
// 1. LayoutOf checks the model and finds the degrees of parallelism.
// 2. Every rank has a coordinate in each degree.
// 3. Each strategy adds its lines (Lines::Add). A strategy works across some degrees: a group of its line is
//    a set of ranks whose coordinates in all other degrees are equal (GroupsBy).
// 4. AddLine makes the collective of each group, and checks sizes and counts.
#include "synth/groups/training.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <numeric>
#include <utility>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

constexpr std::array<std::pair<Parallelism, std::string_view>, 9> kNames = {{
    {Parallelism::kDp, "dp"},
    {Parallelism::kZero1, "zero1"},
    {Parallelism::kZero2, "zero2"},
    {Parallelism::kZero3, "zero3"},
    {Parallelism::kTp, "tp"},
    {Parallelism::kSp, "sp"},
    {Parallelism::kUlysses, "ulysses"},
    {Parallelism::kPp, "pp"},
    {Parallelism::kEp, "ep"},
}};

// Returns the product of positive numbers, at most kMaxSizeBytes + 1.
int64_t Product(std::initializer_list<int64_t> factors) {
  __int128 product = 1;
  for (int64_t factor : factors) {
    product *= factor;
    if (product > kMaxSizeBytes) return kMaxSizeBytes + 1;
  }
  return static_cast<int64_t>(product);
}

bool IsData(Parallelism p) {
  return p == Parallelism::kDp || p == Parallelism::kZero1 || p == Parallelism::kZero2 ||
         p == Parallelism::kZero3;
}
bool IsTensor(Parallelism p) { return p == Parallelism::kTp || p == Parallelism::kSp; }

bool Asks(const TrainingJob& job, Parallelism parallelism) {
  return std::ranges::find(job.of_interest, parallelism) != job.of_interest.end();
}

Status CheckDivides(int64_t divisor, std::string_view flag, int64_t number, std::string_view what) {
  if (number % divisor == 0) return OkStatus();
  return UsageError(fmt::format("{}: {}; expected a divisor of {} {}", flag, divisor, number, what));
}

// The coordinates of a rank. tp changes fastest from rank to rank, pp slowest.
struct Coordinates {
  int64_t tp = 0, ulysses = 0, dp = 0, pp = 0;
};

using Key = std::vector<int64_t>;

// Returns the groups of ranks whose coordinates give equal keys, in the order of their first ranks.
template <typename KeyOf>
std::vector<std::vector<Rank>> GroupsBy(const Layout& layout, KeyOf key_of) {
  std::map<Key, size_t> group_of;
  std::vector<std::vector<Rank>> groups;
  const int64_t stage = layout.tp * layout.ulysses * layout.dp;
  for (int64_t rank = 0; rank < stage * layout.pp; ++rank) {
    const Coordinates c{rank % layout.tp, rank / layout.tp % layout.ulysses,
                        rank / (layout.tp * layout.ulysses) % layout.dp, rank / stage};
    const auto [at, added] = group_of.try_emplace(key_of(c), groups.size());
    if (added) groups.emplace_back();
    groups[at->second].push_back(Rank(rank));
  }
  return groups;
}

class Lines {
 public:
  Lines(const TrainingJob& job, const Layout& layout)
      : job_(job),
        layout_(layout),
        micro_batches_(job.micro_batches.value_or(layout.pp)),
        layers_(job.model.layers / layout.pp),
        activation_(
            Product({job.micro_batch, job.model.sequence / layout.ulysses, job.model.hidden, job.bytes})),
        parameters_(CountParameters(job.model)) {}

  Status Add(Parallelism parallelism) {
    if (activation_ > kMaxSizeBytes)
      return UsageError("--micro-batch: activations of more than 2^50 bytes; hint: --micro-batch=1");
    switch (parallelism) {
      case Parallelism::kTp:
        return AddActivations(parallelism, {CollectiveKind::kAllreduce});
      case Parallelism::kSp:
        return AddActivations(parallelism, {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter});
      case Parallelism::kUlysses:
        return AddUlysses();
      case Parallelism::kPp:
        return AddStages();
      case Parallelism::kEp:
        return AddExperts();
      case Parallelism::kDp:
      case Parallelism::kZero1:
      case Parallelism::kZero2:
      case Parallelism::kZero3:
        XCCL_RETURN_IF_ERROR(AddData(parallelism, parameters_.dense, false));
        if (parameters_.experts == 0) return OkStatus();
        return AddData(parallelism, parameters_.experts, true);
    }
    return OkStatus();
  }

  std::vector<TrainingLine> Take() { return std::move(lines_); }

 private:
  Status AddLine(Parallelism parallelism, std::string what, CollectiveKind kind, int64_t bytes, int64_t count,
                 const std::vector<std::vector<Rank>>& groups) {
    if (groups.front().size() < 2) return OkStatus();
    if (bytes < 1)
      return UsageError(
          fmt::format("--for {}: {} of no bytes; expected 1 to 2^50", ToString(parallelism), what));
    if (bytes > kMaxSizeBytes)
      return UsageError(fmt::format("--for {}: {} of more than 2^50 bytes; expected 1 to 2^50",
                                    ToString(parallelism), what));
    if (count > kMostGroupCount)
      return UsageError(fmt::format("--for {}: {} more than 10^9 times a step; hint: --micro-batches=1",
                                    ToString(parallelism), what));
    TrainingLine line{parallelism, std::move(what), {}, count};
    line.request.name = fmt::format("{}-{}", ToString(parallelism), line.what);
    for (size_t g = 0; g < groups.size(); ++g) {
      CollectiveSpec spec;
      spec.kind = kind;
      spec.ranks = groups[g];
      if (kind == CollectiveKind::kSendrecv) {
        const bool back = line.what == "gradients";
        for (size_t i = 0; i + 1 < groups[g].size(); ++i) {
          const Rank here = groups[g][i], next = groups[g][i + 1];
          spec.pairs.push_back(back ? std::pair(next, here) : std::pair(here, next));
        }
      }
      XCCL_ASSIGN_OR_RETURN(Collective collective, Collective::Create(std::move(spec)));
      line.request.groups.push_back(
          {fmt::format("{}{}", ToString(parallelism), g), std::move(collective), bytes, count});
    }
    lines_.push_back(std::move(line));
    return OkStatus();
  }

  // Adds collectives of activations. Each kind runs twice forwards and twice backwards in every layer.
  Status AddActivations(Parallelism parallelism, const std::vector<CollectiveKind>& kinds) {
    const auto groups = GroupsBy(layout_, [](const Coordinates& c) { return Key{c.pp, c.dp, c.ulysses}; });
    for (CollectiveKind kind : kinds)
      XCCL_RETURN_IF_ERROR(AddLine(parallelism, "activations", kind, activation_,
                                   Product({4, layers_, micro_batches_}), groups));
    return OkStatus();
  }

  // Adds the alltoalls of attention: queries, keys and values before it, the result after it. Both run in the
  // forward and the backward pass. Each rank holds the heads of its tensor parallel share.
  Status AddUlysses() {
    const auto groups = GroupsBy(layout_, [](const Coordinates& c) { return Key{c.pp, c.dp, c.tp}; });
    const ModelConfig& model = job_.model;
    const int64_t result = activation_ / layout_.tp;
    const int64_t projected = result + 2 * (result / model.heads * model.kv_heads);
    const int64_t count = Product({2, layers_, micro_batches_});
    XCCL_RETURN_IF_ERROR(
        AddLine(Parallelism::kUlysses, "projections", CollectiveKind::kAlltoall, projected, count, groups));
    return AddLine(Parallelism::kUlysses, "results", CollectiveKind::kAlltoall, result, count, groups);
  }

  Status AddStages() {
    const auto groups = GroupsBy(layout_, [](const Coordinates& c) { return Key{c.dp, c.ulysses, c.tp}; });
    // With sequence parallelism every tensor parallel rank sends only its share of the tokens.
    const int64_t bytes = Asks(job_, Parallelism::kSp) ? activation_ / layout_.tp : activation_;
    XCCL_RETURN_IF_ERROR(
        AddLine(Parallelism::kPp, "activations", CollectiveKind::kSendrecv, bytes, micro_batches_, groups));
    return AddLine(Parallelism::kPp, "gradients", CollectiveKind::kSendrecv, bytes, micro_batches_, groups);
  }

  // Adds the alltoalls of tokens to their experts and back, in the forward and backward pass of every layer.
  // Assumes that experts are equally busy.
  Status AddExperts() {
    const auto groups = GroupsBy(layout_, [&](const Coordinates& c) {
      return Key{c.pp, c.dp / layout_.ep, c.ulysses, c.tp};
    });
    const int64_t own = Asks(job_, Parallelism::kSp) ? activation_ / layout_.tp : activation_;
    return AddLine(Parallelism::kEp, "tokens", CollectiveKind::kAlltoall, Product({own, job_.model.top_k}),
                   Product({4, layers_, micro_batches_}), groups);
  }

  // Adds the collectives of gradients and parameters. `parameters` counts either the dense parameters of the
  // model or, if `experts` is true, the parameters of all experts.
  Status AddData(Parallelism parallelism, int64_t parameters, bool experts) {
    const int64_t ep = experts ? layout_.ep : 1;
    const auto groups = GroupsBy(layout_, [&](const Coordinates& c) { return Key{c.pp, c.tp, c.dp % ep}; });
    const int64_t own = parameters / (layout_.tp * layout_.pp * ep);
    const std::string prefix = experts ? "expert " : "";
    const std::string gradients = prefix + "gradients", weights = prefix + "parameters";
    const auto add = [&](const std::string& what, CollectiveKind kind, int64_t number, int64_t bytes,
                         int64_t count) {
      return AddLine(parallelism, what, kind, Product({number, bytes}), count, groups);
    };
    if (parallelism == Parallelism::kDp)
      return add(gradients, CollectiveKind::kAllreduce, own, job_.grad_bytes, 1);
    if (parallelism == Parallelism::kZero3) {
      const int64_t layer = own / layers_, passes = Product({layers_, micro_batches_});
      XCCL_RETURN_IF_ERROR(add(weights, CollectiveKind::kAllgather, layer, job_.bytes, Product({2, passes})));
      return add(gradients, CollectiveKind::kReduceScatter, layer, job_.grad_bytes, passes);
    }
    const int64_t reductions = parallelism == Parallelism::kZero2 ? micro_batches_ : 1;
    XCCL_RETURN_IF_ERROR(add(gradients, CollectiveKind::kReduceScatter, own, job_.grad_bytes, reductions));
    return add(weights, CollectiveKind::kAllgather, own, job_.bytes, 1);
  }

  const TrainingJob& job_;
  const Layout layout_;
  const int64_t micro_batches_;
  const int64_t layers_;      // layers of one pipeline stage
  const int64_t activation_;  // bytes of the activations of one rank's tokens in one micro-batch
  const ParameterCount parameters_;
  std::vector<TrainingLine> lines_;
};

Status CheckModel(const TrainingJob& job) {
  const ModelConfig& model = job.model;
  const std::pair<std::string_view, int64_t> needed[] = {
      {"--layers", model.layers},     {"--hidden", model.hidden}, {"--heads", model.heads},
      {"--kv-heads", model.kv_heads}, {"--ffn", model.ffn},       {"--seq", model.sequence},
  };
  const auto missing = [](std::string_view flag) {
    return UsageError(fmt::format("{}: not given; hint: --llm=llama-3-8b has all of a model", flag));
  };
  for (const auto& [flag, value] : needed)
    if (value <= 0) return missing(flag);
  if (model.vocab <= 0 && model.params <= 0 && std::ranges::any_of(job.of_interest, IsData))
    return missing("--vocab");
  XCCL_RETURN_IF_ERROR(CheckDivides(model.heads, "--heads", model.hidden, "hidden values (--hidden)"));
  XCCL_RETURN_IF_ERROR(CheckDivides(model.kv_heads, "--kv-heads", model.heads, "heads"));
  if (model.top_k > model.experts)
    return UsageError(
        fmt::format("--top-k: {}; expected at most {}, the experts of a layer", model.top_k, model.experts));
  // An upper limit, in floating point, of the number of parameters by the formula of CountParameters.
  const auto h = static_cast<double>(model.hidden), ffn = static_cast<double>(model.ffn);
  const double layer = 4 * h * h + h * static_cast<double>(model.experts) * (3 * ffn + 1) + 2 * h;
  const double tables = h * (2 * static_cast<double>(model.vocab) + static_cast<double>(model.sequence) + 1);
  if (static_cast<double>(model.layers) * layer + tables > static_cast<double>(kMaxSizeBytes))
    return UsageError(
        fmt::format("--layers {} --hidden {}: a model of more than 2^50 parameters; expected fewer",
                    model.layers, model.hidden));
  return OkStatus();
}

}  // namespace

std::string_view ToString(Parallelism parallelism) {
  for (const auto& [value, name] : kNames)
    if (value == parallelism) return name;
  return "";
}

StatusOr<std::vector<Parallelism>> ParseParallelisms(std::string_view text) {
  std::vector<Parallelism> parsed;
  std::vector<std::string_view> known;
  for (const auto& [value, name] : kNames) known.push_back(name);
  const auto has = [&](auto is) { return std::ranges::any_of(parsed, is); };
  for (const std::string& word : Split(text, ',')) {
    const auto found = std::ranges::find(kNames, word, [](const auto& entry) { return entry.second; });
    if (found == kNames.end())
      return UsageError(
          fmt::format("no parallelism '{}'{}; expected dp, zero1, zero2, zero3, tp, sp, "
                      "ulysses, pp or ep",
                      word, DidYouMean(word, known)));
    const Parallelism value = found->first;
    if (has([&](Parallelism p) { return p == value; }))
      return UsageError(fmt::format("'{}' is given twice; expected each parallelism once", word));
    if (IsData(value) && has(IsData))
      return UsageError(
          fmt::format("'{}' with another of dp, zero1, zero2 and zero3; expected one of them", word));
    if (IsTensor(value) && has(IsTensor))
      return UsageError(fmt::format("'{}': sp is tp with its tokens in shards; expected one of them", word));
    parsed.push_back(value);
  }
  return parsed;
}

namespace {

// Multiplies `product` by a degree. Caps the product first, against overflow, at 2^31, which is more than any
// number of ranks. Errors: kUsage if the degree is larger than the number of ranks.
Status Multiply(int64_t degree, std::string_view flag, int64_t ranks, int64_t& product) {
  if (degree > ranks)
    return UsageError(fmt::format("{}: {}; expected at most {}, the ranks", flag, degree, ranks));
  product = std::min(product, int64_t{1} << 31) * degree;
  return OkStatus();
}

}  // namespace

StatusOr<Layout> LayoutOf(const TrainingJob& job, int64_t ranks) {
  XCCL_RETURN_IF_ERROR(CheckModel(job));
  struct Degree {
    std::string_view flag;
    std::optional<int64_t> given;
    bool asked;
    int64_t Layout::*value;
  };
  const bool data = std::ranges::any_of(job.of_interest, IsData) || Asks(job, Parallelism::kEp);
  const Degree degrees[] = {
      {"--tp", job.tp, std::ranges::any_of(job.of_interest, IsTensor), &Layout::tp},
      {"--ulysses", job.ulysses, Asks(job, Parallelism::kUlysses), &Layout::ulysses},
      {"--pp", job.pp, Asks(job, Parallelism::kPp), &Layout::pp},
  };
  Layout layout;
  int64_t product = 1;
  const Degree* open = nullptr;
  for (const Degree& degree : degrees) {
    if (degree.given) {
      layout.*degree.value = *degree.given;
      XCCL_RETURN_IF_ERROR(Multiply(*degree.given, degree.flag, ranks, product));
    } else if (degree.asked) {
      if (open != nullptr || (data && !job.dp))
        return UsageError(fmt::format("{}: not given, and not the only degree that is open; hint: {}=2",
                                      degree.flag, degree.flag));
      open = &degree;
    }
  }
  layout.dp = job.dp.value_or(1);
  XCCL_RETURN_IF_ERROR(Multiply(layout.dp, "--dp", ranks, product));
  if (product > ranks || ranks % product != 0)
    return UsageError(
        fmt::format("degrees of parallelism multiply to {}; expected a divisor of {} ranks", product, ranks));
  if (open != nullptr)
    layout.*open->value = ranks / product;
  else if (!job.dp)
    layout.dp = ranks / product;
  else if (product != ranks)
    return UsageError(
        fmt::format("degrees of parallelism multiply to {}; expected {} ranks", product, ranks));
  layout.ep = job.ep.value_or(Asks(job, Parallelism::kEp) ? std::gcd(layout.dp, job.model.experts) : 1);
  if (job.model.experts == 1 && layout.ep > 1)
    return UsageError(
        fmt::format("--ep: {} of a model without experts; hint: --llm=mixtral-8x7b", layout.ep));
  XCCL_RETURN_IF_ERROR(CheckDivides(layout.pp, "--pp", job.model.layers, "layers"));
  XCCL_RETURN_IF_ERROR(
      CheckDivides(layout.tp * layout.ulysses, "--tp times --ulysses", job.model.heads, "heads"));
  XCCL_RETURN_IF_ERROR(CheckDivides(layout.ulysses, "--ulysses", job.model.sequence, "tokens of a sequence"));
  XCCL_RETURN_IF_ERROR(CheckDivides(layout.ep, "--ep", layout.dp, "data parallel ranks"));
  XCCL_RETURN_IF_ERROR(CheckDivides(layout.ep, "--ep", job.model.experts, "experts"));
  return layout;
}

StatusOr<std::vector<TrainingLine>> TrainingLines(const TrainingJob& job, int64_t ranks) {
  XCCL_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(job, ranks));
  if (Asks(job, Parallelism::kEp) && job.model.experts == 1)
    return UsageError("--for ep: a model without experts; hint: --llm=mixtral-8x7b");
  Lines lines(job, layout);
  for (Parallelism parallelism : job.of_interest) XCCL_RETURN_IF_ERROR(lines.Add(parallelism));
  return lines.Take();
}

}  // namespace xccl
