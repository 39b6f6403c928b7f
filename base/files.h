// Reads and writes whole files. An output is written beside its target, under a name that nobody can guess,
// and then renamed, so a failure or a kill leaves the old file as it was. A target that is a device or a pipe
// is written directly. Inputs are regular files, or a descriptor that the user gave this process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl {

// The largest file that is read: a plan with one line of 200 bytes for each pair of 4,096 ranks has 3.2 GiB.
inline constexpr int64_t kMostFileBytes = int64_t{4} << 30;

// False too where nobody can tell, as for a name that is too long.
bool PathExists(const std::string& path);
bool IsDirectory(const std::string& path);
// Reads a regular file. /dev/stdin, /dev/fd/N and /proc/self/fd/N may be anything that can be read to its
// end. Errors: kInvalidInput "PATH: cannot read: REASON"; "PATH: a pipe; expected a regular file", for
// devices and sockets likewise; "PATH: more than N bytes; ...".
StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes = kMostFileBytes);
// A text, without the byte-order mark of UTF-8 that some editors and spreadsheets write first. Errors: also
// kInvalidInput "PATH:1:1: ..." where it begins with the mark of UTF-16.
StatusOr<std::string> ReadTextFile(const std::string& path);
// For files that are run as programs: nobody but this process's user and root owns or may write the file,
// where there is one, and the folder that it is in. A group may write where its number is the owner's, as a
// user's private group's is; all may write a folder with the sticky bit, where nobody replaces another's
// file. Errors: kInvalidInput, with a hint.
Status CheckTrusted(const std::string& path);
// Errors: kInvalidInput "PATH: cannot write: REASON"; the temporary file is removed.
Status WriteFileAtomically(const std::string& path, std::string_view contents);
// Checks that a file could be written there; changes nothing. Errors: as WriteFileAtomically.
Status CheckWritable(const std::string& path);
// Writes contents that are too large to hold: `write` streams them and may fail with its own Status.
Status WriteFileAtomically(const std::string& path, const std::function<Status(std::ostream&)>& write);
// Makes a folder, and those above it, where they are missing. Its mode is `mode` less the umask; by default
// all but its owner and group may only read it. Errors: kInvalidInput "PATH: cannot make the directory:
// REASON".
Status MakeFolders(const std::string& path, mode_t mode = 0775);

}  // namespace xccl
