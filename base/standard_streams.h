// Standard input, output and error, as a program meets them in cron jobs, daemons and pipes: closed, full, or
// with nobody at the other end.
#pragma once

#include <string_view>

namespace xccl {

// To be called first in main. A standard stream that is closed is opened on /dev/null the wrong way round, so
// that it fails as before and no other file gets its number. A write to a pipe without a reader, or beyond
// the limit of a file's size, fails with its reason and ends nothing; programs that are started keep the
// defaults.
void PrepareStandardStreams() noexcept;

// To be called before this process becomes another program: signals that were ignored are so again.
void RestoreSignals() noexcept;

// Writes all of the text, also where the other end takes it bit by bit. Returns 0, or the errno of the
// failure.
int WriteWhole(int descriptor, std::string_view text) noexcept;

// Writes to standard error at once. Text that cannot be written is dropped, since nobody could be told.
void PrintError(std::string_view text) noexcept;

}  // namespace xccl
