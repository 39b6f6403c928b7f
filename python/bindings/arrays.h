// Columns as numpy arrays over the memory of the C++ value, without a copy. They cannot be written to, and
// keep the value alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "python/bindings/bindings.h"

namespace xccl::python {

// Memory that numpy reads, as its array interface tells it.
struct Memory {
  std::shared_ptr<const void> owner;
  const void* first;
  size_t size, stride;
  const char* type;  // as numpy writes it: "<i4"
};
py::array ArrayOf(Memory memory);

template <typename T>
constexpr const char* NumpyType() {
  if constexpr (std::is_same_v<T, bool>) return "|b1";
  if constexpr (std::is_same_v<T, double>) return "<f8";
  if constexpr (std::is_same_v<T, uint8_t>) return "|u1";
  if constexpr (std::is_same_v<T, int32_t>) return "<i4";
  if constexpr (std::is_same_v<T, int64_t>) return "<i8";
}

// Values that lie `stride` bytes apart, from `first` on, in what `owner` owns.
template <typename T, typename Owner>
py::array View(const std::shared_ptr<Owner>& owner, const T* first, size_t size, size_t stride = sizeof(T)) {
  return ArrayOf({owner, first, size, stride, NumpyType<T>()});
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

// A column of whole numbers that Python made, contiguous and of 32 bits.
struct Numbers {
  py::object owner;
  const int32_t* first = nullptr;
  size_t size = 0;
};
Numbers NumbersOf(const py::object& array);

}  // namespace xccl::python
