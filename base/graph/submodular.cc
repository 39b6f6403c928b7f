// The point of least norm in the base polytope (Fujishige and Isotani 2011, by Wolfe's method 1976). An order
// of the elements gives a corner of that polytope: what each element adds to those before it. The negative
// parts of any point of it sum to a lower bound of the function, and the point of least norm attains it. The
// search ends as soon as a set below zero is seen, or the negative parts of its point vanish.
#include "base/graph/submodular.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace xccl {
namespace {

constexpr int32_t kRounds = 1000;
constexpr double kZero = 1e-12;

using Point = std::vector<double>;

double Dot(const Point& a, const Point& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

// The point of least norm on the plane through some corners, as their weights: (G + 1) w = 1, scaled to sum
// 1, where G holds the products of the corners. Empty if they lie in a smaller plane.
std::vector<double> LeastOnPlane(const std::vector<Point>& corners) {
  const size_t n = corners.size();
  std::vector<Point> rows(n, Point(n + 1, 1));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) rows[i][j] = Dot(corners[i], corners[j]) + 1;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(rows[i][k]) > std::abs(rows[pivot][k])) pivot = i;
    std::swap(rows[k], rows[pivot]);
    if (std::abs(rows[k][k]) < kZero * kZero) return {};
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (size_t j = k; j <= n; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  std::vector<double> weights(n);
  for (size_t i = 0; i < n; ++i) weights[i] = rows[i][n] / rows[i][i];
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(std::abs(sum) > kZero * kZero)) return {};
  for (double& weight : weights) weight /= sum;
  return weights;
}

class LeastNorm {
 public:
  // Adds a corner and moves to the point of least norm in the hull of corners, of which those without weight
  // are dropped. False if rounding stopped it.
  bool Add(Point corner) {
    corners_.push_back(std::move(corner));
    weights_.push_back(corners_.size() == 1 ? 1 : 0);
    while (true) {
      const std::vector<double> target = LeastOnPlane(corners_);
      if (target.empty()) return false;
      double step = 1;
      for (size_t i = 0; i < target.size(); ++i)
        if (target[i] < kZero) step = std::min(step, weights_[i] / std::max(weights_[i] - target[i], kZero));
      for (size_t i = 0; i < target.size(); ++i) weights_[i] += step * (target[i] - weights_[i]);
      if (step >= 1) break;
      DropThoseWithoutWeight();
    }
    point_.assign(corners_[0].size(), 0);
    for (size_t i = 0; i < corners_.size(); ++i)
      for (size_t e = 0; e < point_.size(); ++e) point_[e] += weights_[i] * corners_[i][e];
    return true;
  }
  const Point& point() const { return point_; }

 private:
  void DropThoseWithoutWeight() {
    const auto least = static_cast<size_t>(std::ranges::min_element(weights_) - weights_.begin());
    weights_[least] = 0;
    size_t kept = 0;
    for (size_t i = 0; i < corners_.size(); ++i) {
      if (weights_[i] <= kZero) continue;
      if (kept != i) corners_[kept] = std::move(corners_[i]);
      weights_[kept++] = weights_[i];
    }
    corners_.resize(kept);
    weights_.resize(kept);
  }

  std::vector<Point> corners_;
  std::vector<double> weights_;
  Point point_;
};

}  // namespace

std::optional<std::vector<int32_t>> FindNegativeSet(const NegativeSetSearch& search) {
  if (search.elements == 0) return std::nullopt;
  LeastNorm least;
  std::vector<int32_t> order = search.first_order;
  for (int32_t round = 0; round < kRounds; ++round) {
    if (search.stopped && search.stopped()) return std::nullopt;
    const std::vector<double> values = search.values_along(order);
    const auto lowest = std::ranges::min_element(values);
    if (*lowest < -search.tolerance) {
      order.resize(static_cast<size_t>(lowest - values.begin()) + 1);
      std::ranges::sort(order);
      return order;
    }
    Point corner(order.size());
    double before = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      corner[static_cast<size_t>(order[i])] = values[i] - before;
      before = values[i];
    }
    const Point& point = least.point();
    if (round > 0 && Dot(point, corner) >= Dot(point, point) - kZero * kZero) return std::nullopt;
    if (!least.Add(std::move(corner))) return std::nullopt;
    double below = 0;
    for (const double x : point) below += std::min(x, 0.0);
    if (below >= -search.tolerance) return std::nullopt;
    std::ranges::stable_sort(order, {}, [&](int32_t e) { return point[static_cast<size_t>(e)]; });
  }
  return std::nullopt;
}

}  // namespace xccl
