#include "runtime/bootstrap/hello.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/wire.h"

namespace xccl::bootstrap {
namespace {

void PutDigest(Packer& packer, const Digest& digest) {
  for (const char c : digest) packer.Put(c);
}

Digest GetDigest(Unpacker& reader) {
  Digest digest;
  for (char& c : digest) c = reader.Get<char>();
  return digest;
}

}  // namespace

std::string Pack(const Hello& hello) {
  Packer packer;
  packer.PutText(hello.product).Put(hello.rank).Put(hello.ranks).Put(hello.pid).PutText(hello.host);
  packer.PutText(hello.address).Put(hello.port);
  PutDigest(packer, hello.challenge);
  packer.Put<int64_t>(hello.limit.count()).Put<int64_t>(hello.left.count());
  return packer.Take();
}

std::optional<Hello> UnpackHello(std::string_view body) {
  Unpacker reader(body);
  Hello hello;
  hello.product = Cleaned(reader.GetText());
  hello.rank = reader.Get<int32_t>();
  hello.ranks = reader.Get<int32_t>();
  hello.pid = reader.Get<int32_t>();
  hello.host = Cleaned(reader.GetText());
  hello.address = Cleaned(reader.GetText());
  hello.port = reader.Get<uint16_t>();
  hello.challenge = GetDigest(reader);
  hello.limit = std::chrono::nanoseconds(reader.Get<int64_t>());
  hello.left = std::chrono::nanoseconds(reader.Get<int64_t>());
  if (!reader.ok()) return std::nullopt;
  return hello;
}

std::string RandomJob() {
  constexpr size_t kBytes = 16;
  return Hex(View(RandomDigest()).substr(0, kBytes));
}

std::string Pack(const Welcome& welcome) {
  Packer packer;
  packer.PutText(welcome.job);
  packer.Put(static_cast<uint32_t>(welcome.partners.size()));
  for (const Partner& partner : welcome.partners) {
    packer.Put(partner.rank).Put(partner.pid).PutText(partner.host).PutText(partner.address);
    packer.Put(partner.port);
    PutDigest(packer, partner.challenge);
  }
  return packer.Take();
}

std::optional<Welcome> UnpackWelcome(std::string_view body) {
  Unpacker reader(body);
  Welcome welcome;
  welcome.job = Cleaned(reader.GetText());
  const auto count = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    Partner& partner = welcome.partners.emplace_back();
    partner.rank = reader.Get<int32_t>();
    partner.pid = reader.Get<int32_t>();
    partner.host = Cleaned(reader.GetText());
    partner.address = Cleaned(reader.GetText());
    partner.port = reader.Get<uint16_t>();
    partner.challenge = GetDigest(reader);
  }
  if (!reader.ok()) return std::nullopt;
  return welcome;
}

Status Ended(int32_t rank, std::string_view host, int32_t pid) {
  return PeerEnded(fmt::format("rank {}: its process has ended (host {}, pid {})", rank, host, pid));
}

std::vector<int32_t> PartnersOf(int32_t rank, int32_t ranks) {
  std::vector<int32_t> partners;
  for (int64_t away = 1; away < ranks; away *= 2) {
    partners.push_back(static_cast<int32_t>((rank + away) % ranks));
    partners.push_back(static_cast<int32_t>((rank + ranks - away) % ranks));
  }
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  return partners;
}

}  // namespace xccl::bootstrap
