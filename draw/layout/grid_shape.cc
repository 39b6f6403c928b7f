// In a row-major grid, vertex 0's neighbours are the strides of the dimensions, and the last vertex of each
// dimension that wraps. So the strides are among its neighbours, and every chain of strides in which each
// divides the next is tried.
#include "draw/layout/grid_shape.h"

#include <fmt/core.h>

#include <algorithm>

namespace xccl {
namespace {

bool Joined(const Neighbours& neighbours, int32_t a, int32_t b) {
  return std::ranges::binary_search(neighbours[static_cast<size_t>(a)], b);
}

class GridSearch {
 public:
  explicit GridSearch(const Neighbours& neighbours)
      : neighbours_(neighbours), count_(static_cast<int32_t>(neighbours.size())) {
    for (const std::vector<int32_t>& of : neighbours) degrees_ += std::ssize(of);
  }

  std::optional<GridShape> Run() {
    if (count_ < 2 || !Joined(neighbours_, 0, 1)) return std::nullopt;
    for (size_t dims = 1; dims <= 24 && !found_; ++dims) {
      wanted_ = dims;
      strides_ = {1};
      Extend();
    }
    return found_;
  }

 private:
  // Adds strides that are larger than the last, until there are as many as wanted.
  void Extend() {
    if (found_ || tries_ > 4096) return;
    if (strides_.size() == wanted_) return Try();
    for (const int32_t stride : neighbours_[0]) {
      if (stride <= strides_.back() || stride % strides_.back() != 0 || count_ % stride != 0) continue;
      if (stride == count_) continue;
      strides_.push_back(stride);
      Extend();
      strides_.pop_back();
    }
  }

  void Try() {
    ++tries_;
    GridShape shape;
    int64_t degrees = 0;
    for (size_t k = strides_.size(); k-- > 0;) {
      const int32_t above = k + 1 < strides_.size() ? strides_[k + 1] : count_;
      const int32_t dim = above / strides_[k];
      if (dim < 2) return;
      shape.dims.push_back(dim);
      shape.wraps.push_back(dim > 2 && Joined(neighbours_, 0, (dim - 1) * strides_[k]));
      degrees += int64_t{2} * (count_ / dim) * (shape.wraps.back() ? dim : dim - 1);
    }
    if (degrees != degrees_) return;
    for (size_t k = 0; k < shape.dims.size(); ++k) {
      const int32_t stride = strides_[strides_.size() - 1 - k], dim = shape.dims[k];
      for (int32_t v = 0; v < count_; ++v) {
        const int32_t at = v / stride % dim;
        if (at + 1 < dim && !Joined(neighbours_, v, v + stride)) return;
        if (at + 1 == dim && shape.wraps[k] && !Joined(neighbours_, v, v - at * stride)) return;
      }
    }
    found_ = shape;
  }

  const Neighbours& neighbours_;
  const int32_t count_;
  int64_t degrees_ = 0;
  size_t wanted_ = 1;
  int32_t tries_ = 0;
  std::vector<int32_t> strides_;
  std::optional<GridShape> found_;
};

}  // namespace

std::string GridShape::ToString() const {
  const bool all_two = std::ranges::all_of(dims, [](int32_t d) { return d == 2; });
  if (dims.size() == 1) return fmt::format("{} {}", wraps[0] ? "ring" : "line", dims[0]);
  if (all_two) return fmt::format("hypercube {}", dims.size());
  std::string text = std::ranges::any_of(wraps, [](bool wrap) { return wrap; }) ? "torus " : "mesh ";
  for (size_t k = 0; k < dims.size(); ++k) text += fmt::format("{}{}", k > 0 ? "x" : "", dims[k]);
  return text;
}

std::optional<GridShape> FindGrid(const Neighbours& neighbours) { return GridSearch(neighbours).Run(); }

bool IsFullMesh(const Neighbours& neighbours) {
  return std::ranges::all_of(
      neighbours, [&](const std::vector<int32_t>& of) { return of.size() + 1 == neighbours.size(); });
}

}  // namespace xccl
