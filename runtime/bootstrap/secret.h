// Files whose text only the processes of one user know.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace xccl::bootstrap {

// The text of a file, without the line breaks at its end. Errors: kInvalidInput where it is not owned by this
// user or root, others may use it, or it is empty or has more than 4096 bytes; those of ReadFile.
StatusOr<std::string> ReadSecret(const std::string& path);

// The user's own secret, which is made the first time: HOME/.local/state/xccl/secret, 256 random bits. Hosts
// that share the home share it. None where `home` is not this user's, or cannot be written. Errors:
// ReadSecret's.
StatusOr<std::optional<std::string>> UserSecret(const std::string& home);

}  // namespace xccl::bootstrap
