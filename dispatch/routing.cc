// A token's experts are drawn one after the other from the alias table of all weights (Walker 1977); an
// expert that the token has already is drawn again. That is drawing without replacement in proportion to the
// weights. Zipf's law with a large exponent and a large top-k would draw again too often: after a fixed
// number of tries the next expert that the token lacks is taken by its share of what is left.
#include "dispatch/routing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/files.h"
#include "base/json/json_value.h"
#include "base/strings.h"
#include "base/units.h"

namespace xccl::dispatch {
namespace {

// Draws i with probability weights[i] ÷ their sum, in constant time.
class AliasTable {
 public:
  explicit AliasTable(const std::vector<double>& weights) : keep_(weights.size()), other_(weights.size()) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> share(weights.size());
    std::vector<int32_t> small, large;
    for (size_t i = 0; i < weights.size(); ++i) {
      share[i] = weights[i] / sum * static_cast<double>(weights.size());
      (share[i] < 1 ? small : large).push_back(static_cast<int32_t>(i));
    }
    std::iota(other_.begin(), other_.end(), 0);
    while (!small.empty() && !large.empty()) {
      const int32_t s = small.back(), l = large.back();
      small.pop_back();
      keep_[s] = share[s];
      other_[s] = l;
      share[l] -= 1 - share[s];
      if (share[l] >= 1) continue;
      large.pop_back();
      small.push_back(l);
    }
    for (const int32_t i : small) keep_[i] = 1;
    for (const int32_t i : large) keep_[i] = 1;
  }

  int32_t Draw(Random& random) const {
    // The high half chooses the column, the low half between its two entries.
    const uint64_t bits = random.Next();
    const auto column = static_cast<int32_t>((bits >> 32) * keep_.size() >> 32);
    const double unit = static_cast<double>(bits & 0xffffffffU) * 0x1p-32;
    return unit < keep_[column] ? column : other_[column];
  }

 private:
  std::vector<double> keep_;
  std::vector<int32_t> other_;
};

constexpr int kMostTries = 64;

// Draws one expert that is not in `taken`, by the weights of those that are left. Linear in the experts.
int32_t DrawLeft(const std::vector<double>& weights, std::span<const int32_t> taken, Random& random) {
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const int32_t expert : taken) sum -= weights[expert];
  double at = random.Unit() * sum;
  int32_t last = -1;
  for (int32_t expert = 0; expert < static_cast<int32_t>(weights.size()); ++expert) {
    if (std::ranges::find(taken, expert) != taken.end()) continue;
    last = expert;
    at -= weights[expert];
    if (at < 0) break;
  }
  return last;
}

std::string TokenName(int32_t rank, int64_t token) { return fmt::format("rank {}, token {}", rank, token); }

// Fills in a routing, one token after the other.
class RoutingWriter {
 public:
  explicit RoutingWriter(const Sizes& sizes) : per_rank_(sizes.ranks), top_k_(sizes.top_k) {}

  // Positions that are left out are -1. Errors: more than top_k experts.
  Status Add(int32_t rank, std::span<const int64_t> experts) {
    std::vector<int32_t>& tokens = per_rank_[rank];
    if (static_cast<int32_t>(experts.size()) > top_k_)
      return InvalidInput(fmt::format("{}: {} experts; expected at most {}; hint: --top-k",
                                      TokenName(rank, static_cast<int64_t>(tokens.size()) / top_k_),
                                      experts.size(), top_k_));
    for (int32_t k = 0; k < top_k_; ++k)
      tokens.push_back(k < static_cast<int32_t>(experts.size()) ? static_cast<int32_t>(experts[k]) : -1);
    return OkStatus();
  }

  Routing Finish() const {
    Routing routing{.top_k = top_k_};
    for (const std::vector<int32_t>& tokens : per_rank_) {
      routing.experts.insert(routing.experts.end(), tokens.begin(), tokens.end());
      routing.first_token.push_back(static_cast<int64_t>(routing.experts.size()) / top_k_);
    }
    return routing;
  }

 private:
  std::vector<std::vector<int32_t>> per_rank_;
  int32_t top_k_;
};

StatusOr<Routing> ReadJson(const std::string& text, const std::string& file, const Sizes& sizes) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, file));
  XCCL_RETURN_IF_ERROR(document.root().CheckKeys({"routing"}));
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, document.root().Get("routing"));
  // Where no rank has a token, the ranks are lists of integers with nothing in them.
  const StatusOr<IntegerLists> empty = value.Lists(-1, -1);
  const bool none = empty.ok() && empty->items.empty();
  std::vector<JsonValue> ranks;
  if (!none) {
    XCCL_ASSIGN_OR_RETURN(ranks, value.Items());
  }
  const int64_t listed = none ? empty->size() : static_cast<int64_t>(ranks.size());
  if (listed != sizes.ranks)
    return value.Error(fmt::format("{}; expected {}", Counted(listed, "rank"), sizes.ranks));
  RoutingWriter writer(sizes);
  for (int32_t rank = 0; rank < static_cast<int32_t>(ranks.size()); ++rank) {
    XCCL_ASSIGN_OR_RETURN(const IntegerLists tokens, ranks[rank].Lists(-1, sizes.experts - 1));
    for (int64_t token = 0; token < tokens.size(); ++token)
      XCCL_RETURN_IF_ERROR(Annotate(writer.Add(rank, tokens[token]), file));
  }
  return writer.Finish();
}

StatusOr<Routing> ReadCsv(const std::string& text, const std::string& file, const Sizes& sizes) {
  RoutingWriter writer(sizes);
  int64_t number = 0;
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    if (Trim(line).empty()) continue;
    const std::string place = fmt::format("{}:{}", file, number);
    const std::vector<std::string> fields = Split(Trim(line), ',');
    StatusOr<int64_t> rank = ParseInteger(Trim(fields[0]), 0, sizes.ranks - 1);
    if (!rank.ok()) return Annotate(rank.status(), place + ": rank");
    std::vector<int64_t> experts;
    for (size_t i = 1; i < fields.size(); ++i) {
      StatusOr<int64_t> expert = ParseInteger(Trim(fields[i]), -1, sizes.experts - 1);
      if (!expert.ok()) return Annotate(expert.status(), place + ": expert");
      experts.push_back(*expert);
    }
    XCCL_RETURN_IF_ERROR(Annotate(writer.Add(static_cast<int32_t>(*rank), experts), place));
  }
  return writer.Finish();
}

}  // namespace

Status CheckSize(std::string_view what, int64_t value, int64_t most, std::string_view flag) {
  if (value >= 1 && value <= most) return OkStatus();
  return InvalidInput(
      fmt::format("{}: {}; expected 1 to {}; hint: {}={}", what, value, most, flag, value < 1 ? 1 : most));
}

Status CheckSizes(const Sizes& sizes) {
  if (sizes.ranks > kMostRanks)
    return LimitReached(
        fmt::format("{}; expert plans are for at most {}", Counted(sizes.ranks, "rank"), kMostRanks));
  XCCL_RETURN_IF_ERROR(CheckSize("experts", sizes.experts, kMostExperts, "--experts"));
  XCCL_RETURN_IF_ERROR(CheckSize("top-k", sizes.top_k, kMostTopK, "--top-k"));
  XCCL_RETURN_IF_ERROR(CheckSize("tokens", sizes.max_tokens, kMostTokens, "--tokens"));
  if (sizes.row_bytes < 1 || sizes.row_bytes > kMostRowBytes)
    return InvalidInput(fmt::format("row bytes: {}; expected a multiple of 16 up to {}; hint: --row={}B",
                                    sizes.row_bytes, kMostRowBytes,
                                    sizes.row_bytes < 1 ? 16 : kMostRowBytes));
  if (sizes.experts % sizes.ranks != 0) {
    const int32_t fitting = (sizes.experts / sizes.ranks + 1) * sizes.ranks;
    return InvalidInput(fmt::format("experts: {} on {}; expected a multiple of {}; hint: --experts={}",
                                    sizes.experts, Counted(sizes.ranks, "rank"), sizes.ranks, fitting));
  }
  if (sizes.top_k > sizes.experts)
    return InvalidInput(
        fmt::format("top-k: {} of {}; expected at most as many as there are experts; hint: "
                    "--top-k={}",
                    sizes.top_k, Counted(sizes.experts, "expert"), sizes.experts));
  if (sizes.row_bytes % 16 != 0)
    return InvalidInput(fmt::format("row bytes: {}; expected a multiple of 16; hint: --row={}B",
                                    sizes.row_bytes, (sizes.row_bytes + 15) / 16 * 16));
  return OkStatus();
}

Status CheckChoices(std::span<const int32_t> experts, int32_t tokens, const Sizes& sizes, int32_t rank) {
  if (tokens > sizes.max_tokens)
    return InvalidInput(fmt::format("rank {}: {}; expected at most {}; hint: --tokens={}", rank,
                                    Counted(tokens, "token"), sizes.max_tokens, tokens));
  for (int32_t token = 0; token < tokens; ++token) {
    const std::span<const int32_t> of_token =
        experts.subspan(static_cast<size_t>(token) * sizes.top_k, sizes.top_k);
    for (size_t k = 0; k < of_token.size(); ++k) {
      if (of_token[k] < -1 || of_token[k] >= sizes.experts)
        return InvalidInput(fmt::format("{}: expert {}; expected -1 to {}", TokenName(rank, token),
                                        of_token[k], sizes.experts - 1));
      if (of_token[k] >= 0 && std::ranges::find(of_token.subspan(k + 1), of_token[k]) != of_token.end())
        return InvalidInput(fmt::format("{}: expert {} twice; expected each at most once",
                                        TokenName(rank, token), of_token[k]));
    }
  }
  return OkStatus();
}

Status CheckRouting(const Routing& routing, const Sizes& sizes) {
  if (routing.ranks() != sizes.ranks || routing.top_k != sizes.top_k)
    return InvalidInput(fmt::format("routing: {} with {} experts a token; expected {} with {}",
                                    Counted(routing.ranks(), "rank"), routing.top_k, sizes.ranks,
                                    sizes.top_k));
  for (int32_t rank = 0; rank < sizes.ranks; ++rank)
    XCCL_RETURN_IF_ERROR(CheckChoices(routing.ExpertsOfRank(rank), routing.TokensOf(rank), sizes, rank));
  return OkStatus();
}

void RanksOf(std::span<const int32_t> experts, const Sizes& sizes, std::vector<int32_t>& into) {
  into.clear();
  for (const int32_t expert : experts)
    if (expert >= 0) into.push_back(sizes.RankOfExpert(expert));
  std::ranges::sort(into);
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

Needs NeedsOf(const Routing& routing, const Sizes& sizes) {
  Needs needs{.first_token = routing.first_token};
  const int64_t tokens = routing.first_token.back();
  needs.first_rank.reserve(tokens + 1);
  needs.ranks.reserve(routing.experts.size());
  std::vector<int32_t> of_token;
  for (int64_t t = 0; t < tokens; ++t) {
    RanksOf(routing.ExpertsOf(t), sizes, of_token);
    needs.ranks.insert(needs.ranks.end(), of_token.begin(), of_token.end());
    needs.first_rank.push_back(std::ssize(needs.ranks));
  }
  return needs;
}

StatusOr<RoutingSource> ReadRoutingSource(const std::string& text, const Sizes& sizes) {
  if (text == "uniform") return RoutingSource{};
  if (text.starts_with("zipf:")) {
    // Beyond 8 all tokens go to the same experts, and weights vanish beside each other.
    StatusOr<int64_t> exponent = ParseBillionths(std::string_view(text).substr(5));
    if (!exponent.ok() || *exponent > 8'000'000'000)
      return InvalidInput(
          fmt::format("routing '{}': expected an exponent from 0 to 8, as in zipf:1.0", text));
    return RoutingSource{.kind = RoutingSource::Kind::kZipf,
                         .exponent = static_cast<double>(*exponent) / 1e9};
  }
  if (!PathExists(text)) {
    constexpr std::string_view kNames[] = {"uniform", "zipf:1.0"};
    return InvalidInput(fmt::format("routing '{}': no such file; expected uniform, zipf:EXPONENT or a file{}",
                                    text, DidYouMean(text, kNames)));
  }
  XCCL_ASSIGN_OR_RETURN(const std::string contents, ReadTextFile(text));
  RoutingSource source{.kind = RoutingSource::Kind::kFile, .file = text};
  const bool is_json = Trim(contents).starts_with("{");
  XCCL_ASSIGN_OR_RETURN(source.of_file, (is_json ? ReadJson : ReadCsv)(contents, text, sizes));
  if (source.of_file.experts.empty())
    return InvalidInput(text + ": no tokens; expected a rank and its experts for at least one");
  XCCL_RETURN_IF_ERROR(Annotate(CheckRouting(source.of_file, sizes), text));
  return source;
}

Routing DrawRouting(const RoutingSource& source, const Sizes& sizes, Random& random) {
  if (source.kind == RoutingSource::Kind::kFile) return source.of_file;
  std::vector<int32_t> order(sizes.experts);
  std::iota(order.begin(), order.end(), 0);
  random.Shuffle(std::span(order));
  std::vector<double> weights(sizes.experts);
  for (int32_t i = 0; i < sizes.experts; ++i) weights[order[i]] = std::pow(i + 1, -source.exponent);
  const AliasTable table(weights);

  Routing routing{.top_k = sizes.top_k};
  routing.first_token.resize(sizes.ranks + 1);
  for (int32_t r = 0; r <= sizes.ranks; ++r) routing.first_token[r] = int64_t{r} * sizes.max_tokens;
  routing.experts.resize(routing.first_token.back() * sizes.top_k);
  for (int64_t t = 0; t < routing.first_token.back(); ++t) {
    const std::span<int32_t> chosen = std::span(routing.experts).subspan(t * sizes.top_k, sizes.top_k);
    for (int32_t k = 0; k < sizes.top_k; ++k) {
      const std::span<const int32_t> taken = chosen.first(k);
      int32_t expert = -1;
      for (int tries = 0; tries < kMostTries && expert < 0; ++tries) {
        const int32_t drawn = table.Draw(random);
        if (std::ranges::find(taken, drawn) == taken.end()) expert = drawn;
      }
      chosen[k] = expert >= 0 ? expert : DrawLeft(weights, taken, random);
    }
  }
  return routing;
}

}  // namespace xccl::dispatch
