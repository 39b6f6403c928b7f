#include "runtime/bootstrap/proof.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace xccl::bootstrap {
namespace {

// Of libcrypto 1.1 and 3, whose ABIs agree in these two functions.
struct Library {
  const void* (*sha256)() = nullptr;
  unsigned char* (*hmac)(const void* hash, const void* key, int key_bytes, const unsigned char* data,
                         size_t data_bytes, unsigned char* result, unsigned int* result_bytes) = nullptr;
};

StatusOr<Library> Open() {
  void* opened = nullptr;
  for (const char* name : {"libcrypto.so.1.1", "libcrypto.so.3"})
    if (void* const found = dlopen(name, RTLD_NOW | RTLD_LOCAL); found != nullptr) opened = found;
  if (opened == nullptr)
    return SystemError(fmt::format(
        "{}; ranks that are processes prove with it who they are; hint: apt-get install libssl3", dlerror()));
  Library library;
  library.sha256 = reinterpret_cast<decltype(library.sha256)>(dlsym(opened, "EVP_sha256"));
  library.hmac = reinterpret_cast<decltype(library.hmac)>(dlsym(opened, "HMAC"));
  if (library.sha256 == nullptr || library.hmac == nullptr)
    return SystemError("libcrypto: expected the functions EVP_sha256 and HMAC");
  return library;
}

const StatusOr<Library>& TheLibrary() {
  static const StatusOr<Library> library = Open();
  return library;
}

Digest Hmac(std::string_view key, std::string_view bytes) {
  const Library& library = TheLibrary().value();
  Digest hash = {};
  unsigned int size = hash.size();
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (library.hmac(library.sha256(), key.data(), static_cast<int>(key.size()), data, bytes.size(),
                   reinterpret_cast<unsigned char*>(hash.data()), &size) == nullptr)
    throw std::runtime_error("libcrypto has no HMAC with SHA-256");
  return hash;
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
  std::string bytes = Packer().Put(number).Put(static_cast<uint16_t>(type)).Take();
  bytes.append(body);
  return Hmac(View(key), bytes);
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
  std::string all(use);
  all.push_back('\0');
  all.append(bytes);
  return Hmac(View(key), all);
}

Digest KeyOf(std::string_view secret) { return Hmac("XCCL", secret); }

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
