// Errors as values. A function that a user's file, flag or machine can make fail returns Status or
// StatusOr<T>. Only a programmer's mistake fails an XCCL_CHECK, which is on in all builds. No exception
// leaves the file that includes a throwing library. Texts follow `place: what was seen; what was expected`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace xccl {

// Kinds of error, grouped by what the caller can do about them. The command line exits with ExitCode(code).
enum class StatusCode {
  kOk,
  kInvalidInput,  // a file, a plan or a machine is wrong: exit 1
  kUsage,         // the command line is wrong: exit 2
  kInfeasible,    // proved that no answer exists: exit 3
  kBug,           // our own invariant is broken: exit 4
  kLimit,         // a limit was reached before anything was found: exit 5
  kSystem,        // the machine has no more memory or threads: exit 5
  kPeerEnded,     // another process of the run ended; its own failure says more: exit 5
};

int ExitCode(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(StatusCode code, std::string message, std::optional<int64_t> needed = {})
      : code_(code), message_(std::move(message)), needed_(needed) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  // Complete text for the user, without a final period or line break; empty when ok().
  const std::string& message() const { return message_; }
  // kLimit: a value of the limit that was reached with which there is an answer; absent where none is known.
  std::optional<int64_t> needed() const { return needed_; }

  bool operator==(const Status&) const = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::optional<int64_t> needed_;
};

inline Status OkStatus() { return Status(); }
inline Status InvalidInput(std::string message) {
  return Status(StatusCode::kInvalidInput, std::move(message));
}
inline Status UsageError(std::string message) { return Status(StatusCode::kUsage, std::move(message)); }
inline Status Infeasible(std::string message) { return Status(StatusCode::kInfeasible, std::move(message)); }
inline Status BugError(std::string message) { return Status(StatusCode::kBug, std::move(message)); }
inline Status LimitReached(std::string message, std::optional<int64_t> needed = {}) {
  return Status(StatusCode::kLimit, std::move(message), needed);
}
inline Status SystemError(std::string message) { return Status(StatusCode::kSystem, std::move(message)); }
inline Status PeerEnded(std::string message) { return Status(StatusCode::kPeerEnded, std::move(message)); }

// The status with `prefix: ` before its message and its code unchanged.
Status Annotate(Status status, std::string_view prefix);

// Aborts as XCCL_CHECK does, with the status' message: somebody read a value that is not there.
[[noreturn]] void ReadWithoutValue(const Status& status);

// A value, or the reason why there is none. value(), * and -> check ok().
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  StatusOr(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    if (status_.ok()) status_ = BugError("a StatusOr was made from an OK status without a value");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return Checked(); }
  const T& value() const& { return Checked(); }
  T&& value() && { return std::move(Checked()); }
  T& operator*() & { return Checked(); }
  const T& operator*() const& { return Checked(); }
  T&& operator*() && { return std::move(Checked()); }
  T* operator->() { return &Checked(); }
  const T* operator->() const { return &Checked(); }

 private:
  T& Checked() {
    if (__builtin_expect(!ok(), 0)) ReadWithoutValue(status_);
    return *value_;
  }
  const T& Checked() const {
    if (__builtin_expect(!ok(), 0)) ReadWithoutValue(status_);
    return *value_;
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace xccl

#define XCCL_RETURN_IF_ERROR(expression)                                                     \
  do {                                                                                       \
    if (::xccl::Status xccl_status_ = (expression); !xccl_status_.ok()) return xccl_status_; \
  } while (false)

#define XCCL_CONCAT_INNER_(a, b) a##b
#define XCCL_CONCAT_(a, b) XCCL_CONCAT_INNER_(a, b)
#define XCCL_ASSIGN_OR_RETURN_IMPL_(temporary, target, expression) \
  auto temporary = (expression);                                   \
  if (!temporary.ok()) return temporary.status();                  \
  target = std::move(temporary).value()
// XCCL_ASSIGN_OR_RETURN(auto x, F()): returns F's status if it failed, else assigns its value to x.
#define XCCL_ASSIGN_OR_RETURN(target, expression) \
  XCCL_ASSIGN_OR_RETURN_IMPL_(XCCL_CONCAT_(xccl_result_, __LINE__), target, expression)
