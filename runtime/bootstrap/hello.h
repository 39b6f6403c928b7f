// The messages of a rendezvous: each rank's Hello says who it is, and each Welcome names the rank's partners.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/proof.h"

namespace xccl::bootstrap {

struct Hello {
  std::string product;  // version
  int32_t rank = 0, ranks = 1;
  int32_t pid = 0;
  std::string host;                          // name
  std::string address;                       // IP at which partners reach this rank
  uint16_t port = 0;                         // port at which partners reach this rank
  Digest challenge = {};                     // random, for the keys of its partners' connections
  std::chrono::nanoseconds limit{}, left{};  // time limit for joining, and what is left of it; max: none
};
std::string Pack(const Hello& hello);
// The texts of the Hello have gone through Cleaned (base/strings.h).
std::optional<Hello> UnpackHello(std::string_view body);

// A rank with which this rank keeps a connection. `address` and `port` say where it listens.
struct Partner {
  int32_t rank = 0, pid = 0;
  std::string host, address;
  uint16_t port = 0;
  Digest challenge = {};
};
struct Welcome {
  std::string job;  // random
  std::vector<Partner> partners;
};
std::string RandomJob();
std::string Pack(const Welcome& welcome);
std::optional<Welcome> UnpackWelcome(std::string_view body);

// "rank 2: its process has ended (host h1, pid 4711)".
Status Ended(int32_t rank, std::string_view host, int32_t pid);

// The ranks that are 1, 2, 4, ... before and after `rank`, ascending.
std::vector<int32_t> PartnersOf(int32_t rank, int32_t ranks);

}  // namespace xccl::bootstrap
