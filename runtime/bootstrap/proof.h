// Two ends of a connection show each other that they know one secret, which nobody sends: keyed hashes (HMAC
// with SHA-256, RFC 2104) over random challenges.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/bootstrap/wire.h"

namespace xccl::bootstrap {

// 256 bits: a key, a challenge or a hash.
using Digest = std::array<char, 32>;
inline std::string_view View(const Digest& digest) { return {digest.data(), digest.size()}; }

Digest RandomDigest();  // random bits from the system
// `use` tells the hashes of one key and different purposes apart; it has no byte of 0.
Digest KeyedHash(const Digest& key, std::string_view use, std::string_view bytes);
// A key for a text that is a secret, of any length.
Digest KeyOf(std::string_view secret);

// Closes what one end of a connection sends, and opens what it hears. Behind the body of a message comes a
// hash over its number, type and body, so that no message of anybody else is taken, and none twice.
class Seal {
 public:
  Seal() = default;
  // `key`: of this connection alone. `calls`: this end made the connection.
  Seal(const Digest& key, bool calls);
  // The message's bytes.
  std::string Close(MessageType type, std::string_view body);
  // Cuts the hash off the body. Errors: kInvalidInput where it is not the other end's next message; the body
  // is as before.
  Status Open(Message& message);

 private:
  Digest sends_ = {}, hears_ = {};
  uint64_t sent_ = 0, heard_ = 0;
};

}  // namespace xccl::bootstrap
