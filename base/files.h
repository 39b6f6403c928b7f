// Reads and writes whole files. An output is written beside its target and then renamed, so a failure or a
// kill leaves the old file as it was. A target that is a device or a pipe is written directly.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl {

// False too where nobody can tell, as for a name that is too long.
bool PathExists(const std::string& path);
bool IsDirectory(const std::string& path);
// Errors: kInvalidInput "PATH: cannot read: REASON".
StatusOr<std::string> ReadFile(const std::string& path);
// A text, without the byte-order mark of UTF-8 that some editors and spreadsheets write first. Errors: also
// kInvalidInput "PATH:1:1: ..." where it begins with the mark of UTF-16.
StatusOr<std::string> ReadTextFile(const std::string& path);
// Errors: kInvalidInput "PATH: cannot write: REASON"; the temporary file is removed.
Status WriteFileAtomically(const std::string& path, std::string_view contents);
// Checks that a file could be written there; changes nothing. Errors: as WriteFileAtomically.
Status CheckWritable(const std::string& path);
// Writes contents that are too large to hold: `write` streams them and may fail with its own Status.
Status WriteFileAtomically(const std::string& path, const std::function<Status(std::ostream&)>& write);

}  // namespace xccl
