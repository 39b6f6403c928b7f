// A home's rows are read in runs: tokens that follow one another are one piece of its memory, and up to
// kPieces pieces are one request to the kernel, which writes them where they belong, one after another.
#include "runtime/experts/loan.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace xccl::dispatch {
namespace {

constexpr size_t kPieces = 512;                         // the kernel takes 1,024 (IOV_MAX)
constexpr int64_t kMostRequested = int64_t{256} << 20;  // bytes; the kernel takes 2 GiB less a page

// Memory of one rank.
class Memory {
 public:
  // process < 0: this process's own.
  explicit Memory(pid_t process) : process_(process) {}

  bool Read(const std::byte* from, int64_t bytes, std::byte* to) {
    if (process_ < 0) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      return true;
    }
    if (pieces_.size() == kPieces || bytes_ + bytes > kMostRequested || to != to_ + bytes_)
      if (!Flush()) return false;
    if (pieces_.empty()) to_ = to;
    if (!pieces_.empty() && End() == from)
      pieces_.back().iov_len += static_cast<size_t>(bytes);
    else
      pieces_.push_back({const_cast<std::byte*>(from), static_cast<size_t>(bytes)});
    bytes_ += bytes;
    return true;
  }
  // Waits for all that was asked for.
  bool Flush() {
    if (pieces_.empty()) return true;
    const iovec into{to_, static_cast<size_t>(bytes_)};
    const ssize_t read = process_vm_readv(process_, &into, 1, pieces_.data(), pieces_.size(), 0);
    const bool all = read == bytes_;
    pieces_.clear();
    bytes_ = 0;
    return all;
  }

 private:
  const std::byte* End() const {
    return static_cast<const std::byte*>(pieces_.back().iov_base) + pieces_.back().iov_len;
  }

  const pid_t process_;
  std::vector<iovec> pieces_;
  std::byte* to_ = nullptr;  // where all pieces go, one after another
  int64_t bytes_ = 0;
};

// One array of the rows of one home: rows first .. first + tokens.size() of `to` are the home's tokens.
bool TakeArray(Memory& memory, std::span<const int32_t> tokens, const std::byte* from, int64_t row_bytes,
               std::byte* to) {
  for (size_t i = 0; i < tokens.size(); ++i, to += row_bytes)
    if (row_bytes > 0 && !memory.Read(from + tokens[i] * row_bytes, row_bytes, to)) return false;
  return memory.Flush();
}

bool TakeOfHome(const Loan& loan, bool readable, std::span<const int32_t> tokens, int64_t first,
                const RowPlace& to) {
  Memory memory(readable ? -1 : loan.process);
  Lender lender;
  if (!memory.Read(reinterpret_cast<const std::byte*>(loan.lender), sizeof lender,
                   reinterpret_cast<std::byte*>(&lender)) ||
      !memory.Flush() || lender.number != loan.number || lender.rows.row_bytes != to.row_bytes ||
      lender.rows.beside_bytes != to.beside_bytes)
    return false;
  return TakeArray(memory, tokens, lender.rows.rows, to.row_bytes, to.rows + first * to.row_bytes) &&
         TakeArray(memory, tokens, lender.rows.beside, to.beside_bytes, to.beside + first * to.beside_bytes);
}

}  // namespace

bool TakeLent(const Received& received, const std::vector<Loan>& loans, int32_t rank, const Lender& own,
              bool threads, const RowPlace& to) {
  std::vector<int32_t> tokens;  // by row
  for (size_t i = 0; i < received.seen.size(); ++i)
    if (received.seen.rows[i] >= 0) tokens.push_back(received.seen.tokens[i]);
  int64_t first = 0;
  for (size_t home = 0; home < received.rows_of_home.size(); ++home) {
    const auto count = static_cast<size_t>(received.rows_of_home[home]);
    if (count == 0) continue;
    const bool self = static_cast<int32_t>(home) == rank;
    const Loan loan = self ? Loan{.lender = &own, .number = own.number} : loans[first];
    if (!TakeOfHome(loan, threads || self, std::span(tokens).subspan(first, count), first, to)) return false;
    first += static_cast<int64_t>(count);
  }
  return true;
}

}  // namespace xccl::dispatch
