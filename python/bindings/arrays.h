// Columns as numpy arrays over the memory of the C++ value, without a copy. They cannot be written to, and
// keep the value alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "python/bindings/bindings.h"

namespace xccl::python {

inline void MakeReadOnly(const py::array& array) { array.attr("setflags")(py::arg("write") = false); }

// Values that lie `stride` bytes apart, from `first` on, in what `owner` owns.
template <typename T, typename Owner>
py::array View(const std::shared_ptr<Owner>& owner, const T* first, size_t size, size_t stride = sizeof(T)) {
  using Held = std::shared_ptr<const void>;
  const py::capsule base(new Held(owner), [](void* held) { delete static_cast<Held*>(held); });
  py::array_t<T> array({static_cast<py::ssize_t>(size)}, {static_cast<py::ssize_t>(stride)}, first, base);
  MakeReadOnly(array);
  return array;
}

// A vector of numbers.
template <typename T, typename Owner>
py::array View(const std::shared_ptr<Owner>& owner, const std::vector<T>& values) {
  return View(owner, values.data(), values.size());
}
// A vector of ids, as the numbers that they are.
template <typename Tag, typename Owner>
py::array View(const std::shared_ptr<Owner>& owner, const std::vector<TypedId<Tag>>& ids) {
  static_assert(sizeof(TypedId<Tag>) == sizeof(int32_t) && offsetof(TypedId<Tag>, value) == 0);
  return View(owner, ids.empty() ? nullptr : &ids.data()->value, ids.size());
}
// A field of each struct in a vector.
template <typename T, typename Struct, typename Owner>
py::array ViewField(const std::shared_ptr<Owner>& owner, const std::vector<Struct>& items, T Struct::*field) {
  return View(owner, items.empty() ? nullptr : &(items.data()->*field), items.size(), sizeof(Struct));
}

// Values that were made for Python: the array owns them.
template <typename T>
py::array Owned(std::vector<T> values) {
  const auto owner = std::make_shared<std::vector<T>>(std::move(values));
  return View(owner, *owner);
}

}  // namespace xccl::python
