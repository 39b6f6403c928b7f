// A Status as an exception of xccl_synth.errors, with the same text.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "python/bindings/bindings.h"

namespace xccl::python {

// A Python text of any bytes, for example of a file's name. Bytes that are not UTF-8 become U+FFFD.
py::str TextOf(std::string_view text);

// Throws. Requires: the GIL, and a status that is not OK.
[[noreturn]] void Raise(const Status& status);

inline void Check(const Status& status) {
  if (!status.ok()) Raise(status);
}
// `name`: of the argument that is wrong; opens the message.
inline void Check(const Status& status, std::string_view name) { Check(Annotate(status, name)); }

template <typename T>
T ValueOf(StatusOr<T> value) {
  if (!value.ok()) Raise(value.status());
  return *std::move(value);
}
// The value of an argument: where it is wrong, its use is, and its name opens the message.
template <typename T>
T ValueOf(StatusOr<T> value, std::string_view name) {
  if (!value.ok()) Raise(UsageError(std::string(name) + ": " + value.status().message()));
  return *std::move(value);
}

}  // namespace xccl::python
