// What tells hosts, processes and jobs apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl::bootstrap {

// A secret of 128 bits that all ranks of a job know.
using Token = std::array<char, 16>;
StatusOr<Token> RandomToken();
// The same for the same seed; not to be guessed without it. A seed that is no secret gives a token that only
// keeps jobs apart.
Token TokenOf(std::string_view seed);
// Takes the same time wherever they differ.
bool SameToken(std::string_view a, const Token& b);
std::string Hex(const Token& token);

// A stable hash of a text.
uint64_t HashOf(std::string_view text);
// The port of a job whose launcher gives none: 10000 to 29999.
uint16_t PortOf(std::string_view job);

// Equal for processes that share memory and a network: `given`, or the kernel's boot and the network
// namespace of this thread.
std::string HostIdentity(const std::string& given);
std::string HostName();

// "rank 3 (host h1, pid 4711)".
std::string Who(int32_t rank, std::string_view host, int32_t pid);
// "ranks 3, 5-7", "rank 3". Requires: ascending, not empty. At most eight ranges, then "...".
std::string RankList(const std::vector<int32_t>& ranks);

}  // namespace xccl::bootstrap
