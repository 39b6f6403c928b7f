// Solves the dual program of prices.h by cutting planes (Kelley 1960), smoothed (Wentges 1997). Variables: a
// price for each orbit of capacities in each step, and the cost of the cheapest pattern for each orbit of
// chunks. Each round of the method:
// 1. Make the prices whole numbers, so that the bound is exact. At a vertex of the program, prices mostly
//    have a small common denominator.
// 2. Search for a cheap pattern for each orbit of chunks. The costs of the cheapest patterns prove a bound.
// 3. Add a row for every new pattern, and solve the program. Its value is at least the bound of any prices.
// 4. End if bound and value meet. Otherwise choose the next prices: the program's own, or prices half way
//    between these and the best prices so far.
#include "synth/smt/prices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "base/graph/lp.h"
#include "synth/smt/trees.h"

namespace xccl::smt {
namespace {

// The most operations of the tree searches of one round. Also the most iterations of one linear program.
constexpr int32_t kMostOperations = 20'000'000;
// The most rounds of the cutting planes. The bound so far holds whenever they end.
constexpr int32_t kMostRounds = 400;
// Relative error of the linear program's values. The values of two fractions can be told apart if their
// denominators are below 1 ÷ sqrt(kTolerance).
constexpr double kTolerance = 1e-7;

class PriceProgram {
 public:
  PriceProgram(const Machine& machine, const std::vector<Image>& images,
               const std::vector<ChunkOrbit>& orbits, const PatternSearch& search,
               const PriceOptions& options)
      : machine_(machine),
        orbits_(orbits),
        search_(search),
        options_(options),
        times_(options.untimed ? 1 : options.steps) {
    share_.assign(machine_.capacities.size(), -1);
    for (size_t c = 0; c < share_.size(); ++c) {
      if (share_[c] >= 0) continue;
      for (const Image& image : images) share_[image.capacity[c]] = static_cast<int32_t>(num_shares_);
      ++num_shares_;
    }
  }

  PriceResult Solve() {
    if (orbits_.empty() || options_.steps == 0) return {};
    num_prices_ = num_shares_ * static_cast<size_t>(times_);
    std::vector<double> costs(num_prices_, 0);
    for (const ChunkOrbit& orbit : orbits_) costs.push_back(static_cast<double>(orbit.chunks));
    LinearProgram program(costs);
    AddRoom(program);
    double total = 0;
    for (const Capacity& capacity : machine_.capacities) total += capacity.per_round;
    std::vector<double> center(num_prices_, 1 / std::max(1.0, total)), best = center;
    std::vector<double> asked(orbits_.size(), 0);  // by orbit: limit on a pattern's cost; zero: no limit
    PriceResult result;
    for (int32_t round = 0; round < kMostRounds; ++round) {
      bool added = false;
      const Tried tried = Try(Whole(center), asked, program, added);
      result.infeasible = tried.infeasible;
      if (tried.stopped || tried.infeasible) break;
      if (tried.proved && result.bound.IsLessThan(tried.bound)) result.bound = tried.bound, best = center;
      if (added && !program.Solve(kMostOperations)) break;
      const double objective = program.Objective();
      const RoundsBound& known = result.bound.IsLessThan(options_.target) ? options_.target : result.bound;
      if (objective <= Value(known) * (1 + kTolerance)) {
        result.bound = known;
        break;
      }
      if (options_.stopped && options_.stopped()) break;
      const std::span<const double> values = program.Values();
      for (size_t k = 0; k < orbits_.size(); ++k) asked[k] = values[num_prices_ + k];
      // The next prices mostly lie half way between the best prices and the program's own. The program's own
      // are tried if the last prices brought no new pattern, in every third round, and in the last half of
      // all rounds.
      const bool corner = !added || round % 3 == 2 || round > kMostRounds / 2;
      for (size_t i = 0; i < num_prices_; ++i)
        center[i] = std::max(0.0, corner ? values[i] : 0.5 * (values[i] + best[i]));
      if (!corner) std::fill(asked.begin(), asked.end(), 0);
    }
    return result;
  }

 private:
  struct WholePrices {
    std::vector<int64_t> price;
    double scale = 1;  // whole price ÷ price in the program
  };
  struct Tried {
    RoundsBound bound;
    bool proved = true, stopped = false, infeasible = false;
  };

  static double Value(const RoundsBound& bound) {
    return static_cast<double>(bound.numerator) / static_cast<double>(bound.denominator);
  }
  size_t Variable(int32_t step, int32_t capacity) const {
    return static_cast<size_t>(options_.untimed ? 0 : step) * num_shares_ +
           static_cast<size_t>(share_[capacity]);
  }

  // Adds a row for every step: Σ per_round × price over all capacities is at most one.
  void AddRoom(LinearProgram& program) const {
    for (int32_t t = 0; t < times_; ++t) {
      std::map<int32_t, double> room;
      for (size_t c = 0; c < machine_.capacities.size(); ++c)
        room[static_cast<int32_t>(Variable(t, static_cast<int32_t>(c)))] += machine_.capacities[c].per_round;
      const std::vector<std::pair<int32_t, double>> terms(room.begin(), room.end());
      program.AddRow(terms, -LinearProgram::kInfinity, 1);
    }
  }

  // Returns the prices as whole numbers: multiplied by their small common denominator if they have one,
  // otherwise multiplied by options_.scale and rounded.
  WholePrices Whole(const std::vector<double>& prices) const {
    int64_t denominator = options_.scale;
    const int64_t most = std::min<int64_t>(std::llround(1 / std::sqrt(kTolerance)), options_.scale);
    for (int64_t d = 1; d <= most; ++d) {
      const bool even = std::all_of(prices.begin(), prices.end(), [&](double price) {
        const double times = price * static_cast<double>(d);
        return std::abs(times - std::round(times)) < kTolerance * static_cast<double>(d);
      });
      if (!even) continue;
      denominator = d;
      break;
    }
    WholePrices whole{.price = {}, .scale = static_cast<double>(denominator)};
    for (double price : prices) whole.price.push_back(std::llround(price * whole.scale));
    return whole;
  }

  EdgePrices OfEdges(const std::vector<int64_t>& price) const {
    EdgePrices of_edge(static_cast<size_t>(options_.steps));
    for (int32_t s = 0; s < options_.steps; ++s)
      for (const Edge& edge : machine_.edges) {
        int64_t sum = 0;
        for (int32_t c : edge.over) sum += price[Variable(s, c)];
        of_edge[s].push_back(sum);
      }
    return of_edge;
  }

  int64_t Room(const std::vector<int64_t>& price) const {
    int64_t most = 0;
    for (int32_t t = 0; t < times_; ++t) {
      int64_t sum = 0;
      for (size_t c = 0; c < machine_.capacities.size(); ++c)
        sum += machine_.capacities[c].per_round * price[Variable(t, static_cast<int32_t>(c))];
      most = std::max(most, sum);
    }
    return most;
  }

  // Returns the bound that the prices prove. Asks for patterns that are cheaper than `asked`. For each
  // pattern that is new, adds a row and sets `added`.
  Tried Try(const WholePrices& whole, const std::vector<double>& asked, LinearProgram& program, bool& added) {
    const EdgePrices of_edge = OfEdges(whole.price);
    Tried tried;
    for (size_t k = 0; k < orbits_.size(); ++k) {
      const int64_t below = asked[k] > 0 ? static_cast<int64_t>(std::ceil(asked[k] * whole.scale - 1e-6))
                                         : std::numeric_limits<int64_t>::max();
      const Priced priced = search_(k, of_edge, below);
      const bool none = priced.pattern.empty() && below == std::numeric_limits<int64_t>::max();
      if (priced.stopped || none)
        return {.bound = {}, .proved = false, .stopped = priced.stopped, .infeasible = none && priced.proved};
      tried.proved &= priced.proved;
      tried.bound.numerator += orbits_[k].chunks * (priced.pattern.empty() ? below : priced.cost);
      if (priced.pattern.empty() ||
          std::find(known_.begin(), known_.end(), std::pair(k, priced.pattern)) != known_.end())
        continue;
      added = true;
      known_.emplace_back(k, priced.pattern);
      std::map<int32_t, double> row;
      for (const Send& send : priced.pattern)
        for (int32_t c : machine_.edges[send.edge].over)
          row[static_cast<int32_t>(Variable(send.step, c))] -= 1;
      row[static_cast<int32_t>(num_prices_ + k)] += 1;
      const std::vector<std::pair<int32_t, double>> terms(row.begin(), row.end());
      program.AddRow(terms, -LinearProgram::kInfinity, 0);
    }
    tried.bound.denominator = Room(whole.price);
    if (tried.bound.denominator == 0) return {.bound = {}, .proved = false};
    tried.bound = InLowestTerms(tried.bound);
    return tried;
  }

  const Machine& machine_;
  const std::vector<ChunkOrbit>& orbits_;
  const PatternSearch& search_;
  const PriceOptions& options_;
  const int32_t times_;
  std::vector<int32_t> share_;  // by capacity: index of its price
  size_t num_shares_ = 0, num_prices_ = 0;
  std::vector<std::pair<size_t, Pattern>> known_;  // (orbit, pattern) by row, after the rows of AddRoom()
};

}  // namespace

bool RoundsBound::IsLessThan(const RoundsBound& other) const {
  return static_cast<__int128>(numerator) * other.denominator <
         static_cast<__int128>(other.numerator) * denominator;
}

int64_t RoundsBound::Rounds(int64_t times) const {
  const __int128 product = static_cast<__int128>(numerator) * times;
  return static_cast<int64_t>((product + denominator - 1) / denominator);
}

RoundsBound InLowestTerms(const RoundsBound& bound) {
  const int64_t common = std::max<int64_t>(1, std::gcd(bound.numerator, bound.denominator));
  return {bound.numerator / common, bound.denominator / common};
}

PriceResult SolvePrices(const Machine& machine, const std::vector<Image>& images,
                        const std::vector<ChunkOrbit>& orbits, const PatternSearch& search,
                        const PriceOptions& options) {
  return PriceProgram(machine, images, orbits, search, options).Solve();
}

RoundsBound PriceCopies(const Machine& machine, const CopyProblem& problem, const std::vector<Image>& images,
                        const PriceOptions& options) {
  std::vector<ChunkOrbit> orbits;
  std::map<Ends, size_t> known;
  // A tree search looks at every part of every set of needers (3^needers pairs) for every edge in every step.
  const double places =
      options.steps * static_cast<double>(machine.edges.size() + static_cast<size_t>(machine.ranks));
  double work = 0;
  for (const auto& [ends, chunks] : ClassesOf(problem)) {
    work += std::pow(3, ends.needers.size()) * places;
    if (work > kMostOperations) return {};
    for (const Image& image : images) known.try_emplace(Moved(image, ends), orbits.size());
    const size_t orbit = known.at(ends);
    if (orbit == orbits.size()) orbits.push_back({chunks[0], 0});
    orbits[orbit].chunks += static_cast<int64_t>(chunks.size());
  }
  const PatternSearch search = [&](size_t orbit, const EdgePrices& prices, int64_t) {
    TreeSearch trees(machine, options.steps);
    const int32_t chunk = orbits[orbit].chunk;
    Priced priced;
    priced.cost = trees.Search(prices, problem.holders[chunk], problem.needers[chunk]);
    priced.stopped = priced.cost >= TreeSearch::kInfinite;  // the caller promised that a tree exists
    priced.proved = true;
    if (!priced.stopped) priced.pattern = trees.Tree();
    return priced;
  };
  return SolvePrices(machine, images, orbits, search, options).bound;
}

}  // namespace xccl::smt
