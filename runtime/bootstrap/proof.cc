#include "runtime/bootstrap/proof.h"

#define OPENSSL_SUPPRESS_DEPRECATED  // SHA256_Init is; its replacements share state
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "base/random.h"

namespace xccl::bootstrap {
namespace {

// Functions of libcrypto that share no state: what does ends as the process begins to, while threads of
// communicators that nobody destroyed go on.
Digest Sha256(std::initializer_list<std::string_view> parts) {
  SHA256_CTX state;
  Digest digest = {};
  SHA256_Init(&state);
  for (const std::string_view part : parts) SHA256_Update(&state, part.data(), part.size());
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &state);
  return digest;
}

// RFC 2104. Requires: the key fits a block.
Digest Hmac(std::string_view key, std::string_view first, std::string_view second) {
  constexpr size_t kBlock = 64;
  std::string inner(kBlock, '\x36'), outer(kBlock, '\x5c');
  for (size_t i = 0; i < key.size(); ++i) {
    inner[i] = static_cast<char>(inner[i] ^ key[i]);
    outer[i] = static_cast<char>(outer[i] ^ key[i]);
  }
  return Sha256({outer, View(Sha256({inner, first, second}))});
}

// It takes the same time wherever they differ.
bool Same(std::string_view a, const Digest& b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < b.size(); ++i)
    differs = static_cast<unsigned char>(differs | static_cast<unsigned char>(a[i] ^ b[i]));
  return differs == 0;
}

Digest HashOfMessage(const Digest& key, uint64_t number, MessageType type, std::string_view body) {
  return Hmac(View(key), Packer().Put(number).Put(static_cast<uint16_t>(type)).Take(), body);
}

}  // namespace

Digest RandomDigest() {
  Digest digest;
  for (size_t at = 0; at < digest.size(); at += sizeof(uint64_t)) {
    const uint64_t drawn = SystemRandom();
    std::memcpy(digest.data() + at, &drawn, sizeof drawn);
  }
  return digest;
}

Digest KeyedHash(const Digest& key, std::string_view use, std::string_view bytes) {
  return Hmac(View(key), std::string(use) + '\0', bytes);
}

Digest KeyOf(std::string_view secret) { return Hmac("XCCL", secret, ""); }

Seal::Seal(const Digest& key, bool calls)
    : sends_(KeyedHash(key, calls ? "caller" : "door", "")),
      hears_(KeyedHash(key, calls ? "door" : "caller", "")) {}

std::string Seal::Close(MessageType type, std::string_view body) {
  std::string closed(body);
  closed.append(View(HashOfMessage(sends_, sent_++, type, body)));
  return Encode(type, closed);
}

Status Seal::Open(Message& message) {
  const size_t bytes = message.body.size() - std::min(message.body.size(), sizeof(Digest));
  const std::string_view body = message.body;
  if (!Same(body.substr(bytes), HashOfMessage(hears_, heard_, message.type, body.substr(0, bytes))))
    return InvalidInput("a message that was not sent by who holds the connection");
  ++heard_;
  message.body.resize(bytes);
  return OkStatus();
}

}  // namespace xccl::bootstrap
