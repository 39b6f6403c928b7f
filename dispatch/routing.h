// The input of an expert dispatch: which experts every token of every rank is for. A routing is drawn (each
// expert alike, or by Zipf's law) or read from a file. Meaning of the values: docs/dispatch.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/random.h"
#include "base/status.h"

namespace xccl::dispatch {

inline constexpr int32_t kMostRanks = 4096;  // connections are found in a matrix of ranks
inline constexpr int32_t kMostExperts = 1 << 15;
inline constexpr int32_t kMostTopK = 64;
inline constexpr int32_t kMostTokens = 1 << 20;
inline constexpr int64_t kMostRowBytes = 1 << 20;

// The sizes that all calls of one plan share. Experts are dealt to ranks in order: rank r holds experts
// r × local_experts() and up.
struct Sizes {
  int32_t ranks = 0;
  int32_t experts = 0;     // a multiple of ranks; at most kMostExperts
  int32_t top_k = 0;       // experts that a token chooses at most; 1 .. min(experts, kMostTopK)
  int32_t max_tokens = 0;  // tokens of one rank at most; 1 .. kMostTokens
  int64_t row_bytes = 0;   // one token's row with its scales; a multiple of 16, at most kMostRowBytes
  bool operator==(const Sizes&) const = default;

  int32_t local_experts() const { return experts / ranks; }
  int32_t RankOfExpert(int32_t expert) const { return expert / local_experts(); }
};

// Checks that `value` is 1 .. `most`. Errors: kInvalidInput "WHAT: 0; expected 1 to 64; hint: FLAG=1".
Status CheckSize(std::string_view what, int64_t value, int64_t most, std::string_view flag);
// Errors: kInvalidInput, one sentence with what was seen and expected.
Status CheckSizes(const Sizes& sizes);

// One call's choices. A rank may have no tokens; a position without an expert is -1.
struct Routing {
  int32_t top_k = 0;
  std::vector<int64_t> first_token = {0};  // rank r has the tokens first_token[r] up to first_token[r + 1]
  std::vector<int32_t> experts = {};       // by token and position
  std::vector<float> weights = {};         // likewise; empty: all are 1
  bool operator==(const Routing&) const = default;

  int32_t ranks() const { return static_cast<int32_t>(first_token.size()) - 1; }
  int32_t TokensOf(int32_t rank) const {
    return static_cast<int32_t>(first_token[rank + 1] - first_token[rank]);
  }
  std::span<const int32_t> ExpertsOf(int64_t token) const {
    return std::span(experts).subspan(token * top_k, top_k);
  }
  // The experts of all tokens of the rank, one token after another.
  std::span<const int32_t> ExpertsOfRank(int32_t rank) const {
    return std::span(experts).subspan(first_token[rank] * top_k, int64_t{TokensOf(rank)} * top_k);
  }
  std::span<const float> WeightsOfRank(int32_t rank) const {
    if (weights.empty()) return {};
    return std::span(weights).subspan(first_token[rank] * top_k, int64_t{TokensOf(rank)} * top_k);
  }
  float WeightOf(int64_t token, int32_t position) const {
    return weights.empty() ? 1.0F : weights[token * top_k + position];
  }
};

// Checks that a routing fits: its ranks, tokens and positions, experts in -1 .. experts - 1, none twice in a
// token. Errors: kInvalidInput naming the rank and the token.
Status CheckRouting(const Routing& routing, const Sizes& sizes);
// As CheckRouting, for the tokens of one rank. Requires: experts for each position of each token.
Status CheckChoices(std::span<const int32_t> experts, int32_t tokens, const Sizes& sizes, int32_t rank);

// The ranks that hold an expert of the token, ascending, each once. `into` is overwritten.
void RanksOf(std::span<const int32_t> experts, const Sizes& sizes, std::vector<int32_t>& into);

// RanksOf all tokens of a routing, for callers that count its rows in several ways.
struct Needs {
  std::vector<int64_t> first_token = {0};  // as in Routing
  std::vector<int64_t> first_rank = {0};   // token t has ranks[first_rank[t]] up to ranks[first_rank[t + 1]]
  std::vector<int32_t> ranks = {};
  int32_t copies = 1;  // each token stands for so many with the same choices

  std::span<const int32_t> Of(int64_t token) const {
    return std::span(ranks).subspan(first_rank[token], first_rank[token + 1] - first_rank[token]);
  }
};
// Requires: the routing fits.
Needs NeedsOf(const Routing& routing, const Sizes& sizes);

// How routings are drawn.
struct RoutingSource {
  enum class Kind : uint8_t { kUniform, kZipf, kFile };
  Kind kind = Kind::kUniform;
  double exponent = 0;    // kZipf: the i-th most wanted expert has the weight 1 / i^exponent
  std::string file = {};  // kFile
  Routing of_file = {};   // kFile: what the file holds
};

// "uniform", "zipf:1.0", or a file: JSON {"routing": [[[expert, ...], ...], ...]}, by rank, token and
// position, or CSV with a line for each token: its rank, then its experts. Errors: kInvalidInput naming the
// place.
StatusOr<RoutingSource> ReadRoutingSource(const std::string& text, const Sizes& sizes);

// Draws max_tokens tokens on every rank, each with top_k different experts: one after the other, in
// proportion to the weights of the experts that are left. Zipf's order of the experts is drawn afresh. A
// file's routing is returned as it is. Cost: tokens × top_k.
Routing DrawRouting(const RoutingSource& source, const Sizes& sizes, Random& random);

}  // namespace xccl::dispatch
