// Files whose text only the processes of one user know.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl::bootstrap {

// The text of a regular file, or of one that a link leads to, without the line breaks at its end. Errors:
// kInvalidInput where it is not owned by this user or root, others may use it, the kernel makes it up, it is
// blank or has more than 4096 bytes, or cannot be read.
StatusOr<std::string> ReadSecret(const std::string& path);

// Nobody means it as a token.
bool IsBlank(std::string_view token);

// The user's own secret, which is made the first time: HOME/.local/state/xccl/secret, 256 random bits in hex.
// Hosts that share the home share it. None where `home` is not this user's, or cannot be written. Errors:
// kInvalidInput where others may write the home or a folder below it, or one of them or the file is a link,
// so that they may have put the secret there; ReadSecret's; where the file holds something else.
StatusOr<std::optional<std::string>> UserSecret(const std::string& home);

}  // namespace xccl::bootstrap
