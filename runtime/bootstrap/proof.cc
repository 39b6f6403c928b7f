#include "runtime/bootstrap/proof.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace xccl::bootstrap {
namespace {

// Functions of libcrypto 1.1 and 3 that share no state: those with state end as the process begins to, while
// threads of communicators that nobody destroyed go on.
struct Library {
  int (*begin)(void* state) = nullptr;
  int (*add)(void* state, const void* bytes, size_t count) = nullptr;
  int (*end)(unsigned char* digest, void* state) = nullptr;
};

StatusOr<Library> Open() {
  void* opened = nullptr;
  for (const char* name : {"libcrypto.so.1.1", "libcrypto.so.3"})
    if (void* const found = dlopen(name, RTLD_NOW | RTLD_LOCAL); found != nullptr) opened = found;
  if (opened == nullptr)
    return SystemError(fmt::format(
        "{}; ranks that are processes prove with it who they are; hint: apt-get install libssl3", dlerror()));
  Library library;
  library.begin = reinterpret_cast<decltype(library.begin)>(dlsym(opened, "SHA256_Init"));
  library.add = reinterpret_cast<decltype(library.add)>(dlsym(opened, "SHA256_Update"));
  library.end = reinterpret_cast<decltype(library.end)>(dlsym(opened, "SHA256_Final"));
  if (library.begin == nullptr || library.add == nullptr || library.end == nullptr)
    return SystemError("libcrypto: expected the functions SHA256_Init, SHA256_Update and SHA256_Final");
  return library;
}

const StatusOr<Library>& TheLibrary() {
  static const StatusOr<Library> library = Open();
  return library;
}

using Parts = std::initializer_list<std::string_view>;

Digest Sha256(Parts parts) {
  const Library& library = TheLibrary().value();
  alignas(8) std::array<char, 128> state = {};  // SHA256_CTX has 112 bytes
  Digest digest = {};
  library.begin(state.data());
  for (const std::string_view part : parts) library.add(state.data(), part.data(), part.size());
  library.end(reinterpret_cast<unsigned char*>(digest.data()), state.data());
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

Status LoadHash() { return TheLibrary().status(); }

StatusOr<Digest> RandomDigest() {
  Digest digest = {};
  if (getrandom(digest.data(), digest.size(), 0) != static_cast<ssize_t>(digest.size()))
    return SystemError(fmt::format("the system has no random numbers: {}", std::strerror(errno)));
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
