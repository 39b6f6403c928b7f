#include "runtime/pairs.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace xccl {
namespace {

std::array<int32_t, 100> memory;

PairMessage Of(bool sends, int64_t at, int64_t count) {
  PairMessage message;
  message.sends = sends;
  message.peer = Rank(1);
  message.data = reinterpret_cast<std::byte*>(memory.data() + at);
  message.count = count;
  message.type = DataType::kInt32;
  return message;
}
PairMessage Send(int64_t at, int64_t count) { return Of(true, at, count); }
PairMessage Receive(int64_t at, int64_t count) { return Of(false, at, count); }

// Where the sends read: "=" for the memory itself, "C20" for 20 elements behind the first byte of the copy.
std::string Places(const std::vector<PairMessage>& messages, const std::byte* copy) {
  std::string text;
  const auto* const first = reinterpret_cast<const std::byte*>(memory.data());
  for (const PairMessage& message : messages) {
    if (!message.sends) continue;
    const bool own = message.data >= first && message.data < first + sizeof memory;
    text += own ? std::string("= ") : "C" + std::to_string((message.data - copy) / 4) + " ";
  }
  return text;
}

TEST(HoldSends, CopiesOnceWhatAReceiveWrites) {
  const struct {
    std::string name;
    std::vector<PairMessage> messages;
    std::string expected;
  } cases[] = {
      {"apart", {Send(0, 10), Receive(10, 10)}, "= "},
      {"the very place", {Receive(0, 10), Send(0, 10)}, "C0 "},
      {"one element", {Send(0, 10), Receive(9, 10)}, "C0 "},
      {"one of several", {Send(0, 10), Send(50, 10), Receive(55, 2), Receive(20, 10)}, "= C0 "},
      {"to many ranks", {Send(0, 10), Send(0, 10), Send(5, 10), Receive(7, 1)}, "C0 C0 C5 "},
      {"two places", {Send(40, 10), Send(0, 10), Receive(45, 1), Receive(5, 1)}, "C10 C0 "},
      {"nothing", {Send(5, 0), Receive(0, 10), Send(0, 10), Receive(3, 0)}, "= C0 "},
      {"a long one over short ones", {Receive(0, 50), Send(10, 1), Send(20, 1), Send(10, 20)}, "C0 C10 C0 "},
  };
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int32_t>(i);
  for (const auto& c : cases) {
    std::vector<PairMessage> messages = c.messages;
    const std::unique_ptr<std::byte[]> copy = HoldSends(messages);
    EXPECT_EQ(Places(messages, copy.get()), c.expected) << c.name;
    for (size_t i = 0; i < messages.size(); ++i)
      for (int64_t k = 0; k < messages[i].count; ++k)
        EXPECT_EQ(reinterpret_cast<int32_t*>(messages[i].data)[k],
                  reinterpret_cast<int32_t*>(c.messages[i].data)[k])
            << c.name;
  }
}

TEST(CheckReceives, NamesTwoThatShareBytes) {
  EXPECT_EQ(
      CheckReceives(std::vector<PairMessage>{Receive(0, 10), Receive(10, 10), Send(5, 20), Receive(15, 0)}),
      OkStatus());
  EXPECT_EQ(
      CheckReceives(std::vector<PairMessage>{Receive(30, 10), Send(0, 5), Receive(39, 2)}),
      UsageError("sendrecv of 10 int32 from rank 1 and sendrecv of 2 int32 from rank 1 are received into "
                 "memory that overlaps; expected ranges apart"));
}

}  // namespace
}  // namespace xccl
