// Identities that tell hosts and jobs apart, and the names of ranks in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xccl::bootstrap {

std::string Hex(std::string_view bytes);

// A stable hash of a text.
uint64_t HashOf(std::string_view text);
// The port of a job whose launcher gives none: 10000 to 29999.
uint16_t PortOf(std::string_view job);

// Equal for processes that share memory and a network: `given`, or the kernel's boot and the network
// namespace of this thread.
std::string HostIdentity(const std::string& given);
std::string HostName();

// True if the text begins with the number of a rank, as the texts of ranks and of the rendezvous do. Before
// any other text from a rank, messages name the rank.
bool NamesARank(std::string_view text);
// "rank 3 (host h1, pid 4711)".
std::string Who(int32_t rank, std::string_view host, int32_t pid);
// "ranks 3, 5-7", "rank 3". Requires: ascending, not empty. At most eight ranges, then "...".
std::string RankList(const std::vector<int32_t>& ranks);

}  // namespace xccl::bootstrap
