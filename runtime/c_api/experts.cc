// Expert dispatch and combine in C. What a caller can know is checked at once; the rest runs on the
// communicator's thread, whose failures end the communicator.
#include "runtime/c_api/experts.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "runtime/c_api/group.h"
#include "runtime/c_api/run.h"
#include "runtime/call_counter.h"
#include "runtime/communicator.h"

namespace {

using xccl::DataType;
using xccl::InvalidInput;
using xccl::OkStatus;
using xccl::Status;
using xccl::StatusOr;
using xccl::UsageError;
using xccl::c_api::Comm;
using xccl::c_api::Experts;
using xccl::c_api::LoadedExperts;
using xccl::c_api::RunFor;
using xccl::c_api::RunOn;
using xccl::dispatch::Outputs;
using xccl::dispatch::Received;
using xccl::dispatch::RowPlace;
using xccl::dispatch::RowSource;
using xccl::dispatch::Sizes;

constexpr const char* kHandle = "the handle of experts";
constexpr size_t kMostRow = size_t{1} << 28;  // bytes; every product of sizes then fits 64 bits

using Limit = std::chrono::nanoseconds;

bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto *const first = static_cast<const std::byte*>(a), *const second =
                                                                  static_cast<const std::byte*>(b);
  return a_bytes > 0 && b_bytes > 0 && std::less<>()(first, second + b_bytes) &&
         std::less<>()(second, first + a_bytes);
}

// Before anything else of them is read: a program of another header has them in another size.
Status CheckStructs(const xcclDispatchIn_t* in, const xcclDispatchOut_t* out) {
  if (in == nullptr || out == nullptr)
    return UsageError(fmt::format("dispatch: {} is null", in == nullptr ? "in" : "out"));
  if (in->size != sizeof *in)
    return UsageError(fmt::format("dispatch: in.size is {}; expected {}; hint: XCCL_DISPATCH_IN_INITIALIZER",
                                  in->size, sizeof *in));
  if (out->size != sizeof *out)
    return UsageError(
        fmt::format("dispatch: out.size is {}; expected {}; hint: XCCL_DISPATCH_OUT_INITIALIZER", out->size,
                    sizeof *out));
  return OkStatus();
}

Status CheckIn(const xcclDispatchIn_t& in, const Sizes& sizes) {
  if (in.rowBytes > kMostRow || in.scaleBytes > kMostRow || (in.rowBytes + in.scaleBytes) % 16 != 0)
    return UsageError(fmt::format(
        "dispatch: rows of {} bytes with scales of {}; expected a multiple of 16 together, each at most {}",
        in.rowBytes, in.scaleBytes, kMostRow));
  if (in.tokens > static_cast<size_t>(sizes.max_tokens))
    return UsageError(
        fmt::format("dispatch: {} tokens; expected at most {}, the plan's", in.tokens, sizes.max_tokens));
  if (in.tokens > 0 &&
      ((in.rowBytes > 0 && in.rows == nullptr) || (in.scaleBytes > 0 && in.scales == nullptr)))
    return UsageError(
        fmt::format("dispatch: in.{} is null", in.rowBytes > 0 && in.rows == nullptr ? "rows" : "scales"));
  if (in.sameChoices != 0) return OkStatus();
  if (in.choices == nullptr && in.tokens > 0)
    return UsageError("dispatch: in.choices is null; hint: sameChoices");
  if (in.choices != nullptr && in.choiceType != xcclInt32 && in.choiceType != xcclInt64)
    return UsageError(fmt::format("dispatch: choices of data type {}; expected xcclInt32 or xcclInt64",
                                  static_cast<int>(in.choiceType)));
  return OkStatus();
}

Status CheckOut(const xcclDispatchOut_t& out, const xcclDispatchIn_t& in, const Sizes& sizes) {
  const size_t most = static_cast<size_t>(sizes.ranks) * static_cast<size_t>(sizes.max_tokens);
  const size_t rows = std::min(out.maxRows, most);
  if (rows > 0 && ((in.rowBytes > 0 && out.rows == nullptr) || (in.scaleBytes > 0 && out.scales == nullptr)))
    return UsageError(
        fmt::format("dispatch: out.{} is null", in.rowBytes > 0 && out.rows == nullptr ? "rows" : "scales"));
  const std::pair<const void*, size_t> from[] = {{in.rows, in.tokens * in.rowBytes},
                                                 {in.scales, in.tokens * in.scaleBytes}},
                                       to[] = {{out.rows, rows * in.rowBytes},
                                               {out.scales, rows * in.scaleBytes}};
  for (const auto& [read, read_bytes] : from)
    for (const auto& [written, written_bytes] : to)
      if (Overlap(read, read_bytes, written, written_bytes))
        return UsageError(
            "dispatch: rows that are read and rows that are written overlap; expected them apart");
  return OkStatus();
}

// A token's choices as the plan's; entries of 8 bytes may be anything. Errors: kInvalidInput naming the
// token.
StatusOr<std::vector<int32_t>> ReadChoices(const xcclDispatchIn_t& in, const Sizes& sizes, int32_t rank) {
  const size_t count = in.tokens * static_cast<size_t>(sizes.top_k);
  std::vector<int32_t> experts(count);
  if (in.choiceType == xcclInt32) {
    if (count > 0) std::memcpy(experts.data(), in.choices, count * sizeof(int32_t));
    return experts;
  }
  for (size_t i = 0; i < count; ++i) {
    int64_t choice = 0;
    std::memcpy(&choice, static_cast<const std::byte*>(in.choices) + i * sizeof choice, sizeof choice);
    if (choice < -1 || choice >= sizes.experts)
      return InvalidInput(fmt::format("rank {}, token {}: expert {}; expected -1 to {}", rank,
                                      i / static_cast<size_t>(sizes.top_k), choice, sizes.experts - 1));
    experts[i] = static_cast<int32_t>(choice);
  }
  return experts;
}

void Copy(const std::vector<int32_t>& from, int* to) {
  if (to != nullptr) std::ranges::copy(from, to);
}

// Rows' tokens and choices, and the entries.
void Describe(const Received& ways, const Sizes& sizes, int32_t rank, const xcclDispatchOut_t& out) {
  if (out.numRows != nullptr) *out.numRows = ways.num_rows;
  Copy(ways.rows_of_home, out.rowsOfRank);
  Copy(ways.rows_of_expert, out.rowsOfExpert);
  Copy(ways.first_of_expert, out.firstOfExpert);
  Copy(ways.row_of_entry, out.rowOfEntry);
  if (out.weightOfEntry != nullptr) std::ranges::copy(ways.weight_of_entry, out.weightOfEntry);
  const auto top_k = static_cast<size_t>(sizes.top_k);
  for (size_t i = 0; i < ways.seen.size(); ++i) {
    if (ways.seen.rows[i] < 0) continue;
    const auto row = static_cast<size_t>(ways.seen.rows[i]);
    if (out.homes != nullptr) out.homes[row] = ways.seen.homes[i];
    if (out.tokens != nullptr) out.tokens[row] = ways.seen.tokens[i];
    for (size_t k = 0; k < top_k; ++k) {
      const int32_t expert = ways.seen.experts[i * top_k + k];
      const bool here = expert >= 0 && sizes.RankOfExpert(expert) == rank;
      if (out.experts != nullptr) out.experts[row * top_k + k] = here ? expert % sizes.local_experts() : -1;
      if (out.weights != nullptr) out.weights[row * top_k + k] = here ? ways.seen.weights[i * top_k + k] : 0;
    }
  }
}

// The place of the rows, which there is room for, and all that says what they are.
StatusOr<RowPlace> PlaceRows(const Received& ways, const Sizes& sizes, int32_t rank,
                             const xcclDispatchIn_t& in, const xcclDispatchOut_t& out) {
  const bool has_rows = in.rowBytes > 0 || in.scaleBytes > 0 || out.homes != nullptr ||
                        out.tokens != nullptr || out.experts != nullptr || out.weights != nullptr;
  if (has_rows && static_cast<size_t>(ways.num_rows) > out.maxRows)
    return InvalidInput(fmt::format("dispatch: {} rows come; expected at most {}, as out.maxRows says",
                                    ways.num_rows, out.maxRows));
  const bool has_entries = out.rowOfEntry != nullptr || out.weightOfEntry != nullptr;
  if (has_entries && ways.row_of_entry.size() > out.maxEntries)
    return InvalidInput(fmt::format("dispatch: {} entries come; expected at most {}, as out.maxEntries says",
                                    ways.row_of_entry.size(), out.maxEntries));
  Describe(ways, sizes, rank, out);
  return RowPlace{.rows = static_cast<std::byte*>(out.rows),
                  .row_bytes = static_cast<int64_t>(in.rowBytes),
                  .beside = static_cast<std::byte*>(out.scales),
                  .beside_bytes = static_cast<int64_t>(in.scaleBytes)};
}

Status RunDispatch(Experts& experts, const xcclDispatchIn_t& in, const xcclDispatchOut_t& out, Limit limit) {
  xccl::dispatch::ExpertRank& on = *experts.loaded->rank;
  const Sizes& sizes = on.sizes();
  const RowSource rows{.rows = static_cast<const std::byte*>(in.rows),
                       .row_bytes = static_cast<int64_t>(in.rowBytes),
                       .beside = static_cast<const std::byte*>(in.scales),
                       .beside_bytes = static_cast<int64_t>(in.scaleBytes)};
  const auto place = [&](Received& ways) { return PlaceRows(ways, sizes, on.rank(), in, out); };
  if (in.sameChoices != 0) {
    StatusOr<RowPlace> to = place(experts.ways);
    if (!to.ok()) return Annotate(to.status(), fmt::format("rank {}", on.rank()));
    return on.DispatchAgain(experts.ways, rows, *to, limit);
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> choices, ReadChoices(in, sizes, on.rank()));
  const size_t weights = in.weights == nullptr ? 0 : choices.size();
  XCCL_ASSIGN_OR_RETURN(
      experts.ways,
      on.Dispatch({static_cast<int32_t>(in.tokens), choices, {in.weights, weights}}, rows, place, limit));
  return OkStatus();
}

Status RunCombine(Experts& experts, const void* rows, void* sums, size_t row_bytes, size_t elements,
                  DataType type, Outputs of, Limit limit) {
  const Received& ways = experts.ways;
  const size_t given = of == Outputs::kOfRows ? static_cast<size_t>(ways.num_rows) : ways.row_of_entry.size();
  const auto name = [&] { return fmt::format("rank {}: combine", experts.loaded->rank->rank()); };
  if (rows == nullptr && given > 0)
    return InvalidInput(fmt::format("{}: the rows are null; expected {} of them", name(), given));
  if (Overlap(rows, given * row_bytes, sums, static_cast<size_t>(ways.own_tokens) * row_bytes))
    return InvalidInput(fmt::format("{}: rows and sums overlap; expected them apart", name()));
  return experts.loaded->rank->Combine(ways, type, static_cast<int64_t>(elements), of,
                                       static_cast<const std::byte*>(rows), static_cast<std::byte*>(sums),
                                       limit);
}

// The device alone knows how many entries came; where any did, there is a row at least. Rows that go by
// places have room for all of them.
Status CheckApartOnGpu(const Sizes& sizes, const void* rows, const void* sums, int32_t tokens,
                       size_t row_bytes, Outputs of) {
  const size_t places = static_cast<size_t>(sizes.ranks) * static_cast<size_t>(sizes.max_tokens);
  const size_t known = rows == nullptr ? 0 : of == Outputs::kOfRows ? places : 1;
  if (Overlap(rows, known * row_bytes, sums, static_cast<size_t>(tokens) * row_bytes))
    return UsageError("combine: rows and sums overlap; expected them apart");
  return OkStatus();
}

xccl::CallCounter::ExpertKey KeyOf(const Experts& with, bool combines, size_t row_bytes) {
  return {.combines = combines, .row_bytes = static_cast<int64_t>(row_bytes), .served_by = with.loaded->file};
}

// Queues a kernel, which is counted at once: nobody waits to know its time.
Status LaunchCounted(Comm& on, const Experts& with, bool combines, size_t row_bytes, int32_t tokens,
                     const std::function<Status()>& launch) {
  XCCL_RETURN_IF_ERROR(on.communicator.Launch(launch));
  if (on.communicator.counter() != nullptr)
    on.communicator.counter()->AddExperts(KeyOf(with, combines, row_bytes), tokens, std::nullopt);
  return OkStatus();
}

// Queues a call's work, which is counted once it has succeeded. Its tokens are those that the handle has
// then.
Status EnqueueCounted(Comm& on, const std::shared_ptr<Experts>& with, bool combines, size_t row_bytes,
                      std::function<Status(Limit limit)> work) {
  const std::shared_ptr<xccl::CallCounter> counter = on.communicator.counter();
  if (counter == nullptr) return on.communicator.EnqueueJob(std::move(work));
  return on.communicator.EnqueueJob([=, work = std::move(work)](Limit limit) -> Status {
    const auto began = std::chrono::steady_clock::now();
    XCCL_RETURN_IF_ERROR(work(limit));
    const Limit took = std::chrono::steady_clock::now() - began;
    counter->AddExperts(KeyOf(*with, combines, row_bytes), with->ways.own_tokens, took.count());
    return OkStatus();
  });
}

// Queues work of a handle, at once or when the group ends. queue(): checks what earlier calls decide, and
// queues it; it runs with the handle's mutex held.
xcclResult_t Enqueue(xcclExperts_t handle, const std::function<Status(const Experts&)>& check,
                     const std::function<Status(Comm&, const std::shared_ptr<Experts>&)>& queue,
                     xccl::c_api::GroupCall deferred) {
  std::shared_ptr<Experts> experts;
  const xcclResult_t found = RunFor(handle, kHandle, [&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(experts, xccl::c_api::FindExperts(handle));
    return OkStatus();
  });
  if (found != xcclSuccess) return found;
  const xcclComm_t comm = experts->comm;
  return RunOn(comm, [&](Comm& on) -> Status {
    XCCL_RETURN_IF_ERROR(check(*experts));
    if (experts->loaded->gpus != nullptr) deferred.memory.clear();  // streams order what GPUs do
    if (!xccl::c_api::InGroup()) {
      const std::lock_guard lock(experts->mutex);
      return queue(on, experts);
    }
    deferred.run = [=] {
      return RunOn(comm, [&](Comm& then) {
        const std::lock_guard lock(experts->mutex);
        return queue(then, experts);
      });
    };
    deferred.name = fmt::format("rank {}: {}", on.communicator.rank().value, deferred.name);
    xccl::c_api::Defer(comm, /*waits=*/false, std::move(deferred));
    return OkStatus();
  });
}

bool IsOnGpu(Comm& on) {
  const std::lock_guard lock(on.mutex);
  return on.settings.device.has_value();
}

StatusOr<xccl::Wiring> WiringOf(const StatusOr<std::shared_ptr<LoadedExperts>>& read) {
  XCCL_RETURN_IF_ERROR(read.status());
  XCCL_ASSIGN_OR_RETURN((*read)->wires, xccl::dispatch::WireExperts((*read)->plan));
  return (*read)->wires->wiring;
}

// Ranks that have read their plan must not wait for one that could not.
Status Connect(Comm& on, const StatusOr<std::shared_ptr<LoadedExperts>>& read, uint64_t hash) {
  XCCL_ASSIGN_OR_RETURN(xccl::Endpoint* const endpoint, on.communicator.ConnectFor(WiringOf(read), hash));
  (*read)->rank = std::make_unique<xccl::dispatch::ExpertRank>(*(*read)->wires, *endpoint);
  return OkStatus();
}

}  // namespace

xcclResult_t xcclCommLoadExperts(xcclComm_t comm, const char* plan) {
  if (plan == nullptr) return RunOn(comm, [](const Comm&) { return UsageError("the plan's file is null"); });
  return xccl::c_api::RunWaiting(comm, [path = std::string(plan)](Comm& on) -> Status {
    StatusOr<std::shared_ptr<LoadedExperts>> read = xccl::c_api::ReadExperts(path, on.communicator.ranks());
    const StatusOr<std::string> text = xccl::ReadFile(path);
    const uint64_t hash = xccl::HashOf(text.ok() ? *text : "");
    XCCL_RETURN_IF_ERROR(IsOnGpu(on) ? xccl::c_api::LoadOnGpus(on, read, hash) : Connect(on, read, hash));
    const std::lock_guard lock(on.mutex);
    on.experts = *std::move(read);
    return OkStatus();
  });
}

xcclResult_t xcclExpertsCreate(xcclExperts_t* experts, xcclComm_t comm) {
  return RunOn(comm, [&](Comm& on) -> Status {
    if (experts == nullptr) return UsageError(fmt::format("{} is null", kHandle));
    *experts = nullptr;
    auto made = std::make_shared<Experts>();
    made->comm = comm;
    {
      const std::lock_guard lock(on.mutex);
      made->loaded = on.experts;
    }
    if (made->loaded == nullptr)
      return InvalidInput("no plan of experts is loaded; hint: xcclCommLoadExperts on all ranks");
    made->rank = on.communicator.rank().value;
    if (made->loaded->gpus != nullptr) XCCL_RETURN_IF_ERROR(xccl::c_api::TakeGpuHandle(*made));
    *experts = xccl::c_api::AddExperts(std::move(made));
    return OkStatus();
  });
}

xcclResult_t xcclExpertsDestroy(xcclExperts_t experts) {
  if (experts == nullptr) return xcclSuccess;
  return xccl::c_api::Run([&] { return xccl::c_api::DropExperts(experts).status(); });
}

xcclResult_t xcclExpertsGetSizes(xcclExperts_t experts, xcclExpertSizes_t* sizes) {
  return RunFor(experts, kHandle, [&]() -> Status {
    if (sizes == nullptr) return UsageError("sizes is null");
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Experts> found, xccl::c_api::FindExperts(experts));
    const Sizes& of = found->loaded->plan.sizes;
    *sizes = {.ranks = of.ranks,
              .experts = of.experts,
              .localExperts = of.local_experts(),
              .topK = of.top_k,
              .maxTokens = of.max_tokens,
              .rowBytes = static_cast<size_t>(of.row_bytes)};
    return OkStatus();
  });
}

xcclResult_t xcclDispatch(const xcclDispatchIn_t* in, const xcclDispatchOut_t* out, xcclExperts_t experts,
                          xcclStream_t stream) {
  const xcclResult_t known = xccl::c_api::Run([&] { return CheckStructs(in, out); });
  if (known != xcclSuccess) return known;
  const auto check = [&](const Experts& on) -> Status {
    XCCL_RETURN_IF_ERROR(CheckIn(*in, on.loaded->plan.sizes));
    XCCL_RETURN_IF_ERROR(CheckOut(*out, *in, on.loaded->plan.sizes));
    return on.loaded->gpus == nullptr ? OkStatus() : xccl::c_api::CheckDispatchOnGpu(*on.loaded, *in, *out);
  };
  const auto queue = [in = *in, out = *out, stream](Comm& on,
                                                    const std::shared_ptr<Experts>& with) -> Status {
    const auto tokens = static_cast<int32_t>(in.tokens);
    if (in.sameChoices != 0 && !with->tokens)
      return InvalidInput("dispatch: in.sameChoices is set; expected choices in the handle's first dispatch");
    if (in.sameChoices != 0 && with->tokens != tokens)
      return UsageError(
          fmt::format("dispatch: {} tokens; expected {}, as the handle has", tokens, *with->tokens));
    const size_t row_bytes = in.rowBytes + in.scaleBytes;
    if (with->loaded->gpus != nullptr)
      XCCL_RETURN_IF_ERROR(LaunchCounted(on, *with, /*combines=*/false, row_bytes, tokens,
                                         [&] { return xccl::c_api::DispatchOnGpu(*with, in, out, stream); }));
    else
      XCCL_RETURN_IF_ERROR(
          EnqueueCounted(on, with, /*combines=*/false, row_bytes,
                         [with, in, out](Limit limit) { return RunDispatch(*with, in, out, limit); }));
    with->tokens = tokens;
    return OkStatus();
  };
  xccl::c_api::GroupCall deferred;
  deferred.name = "dispatch";
  const auto use = [&](const void* data, size_t bytes, bool writes) {
    deferred.memory.push_back({static_cast<const std::byte*>(data), static_cast<int64_t>(bytes), writes});
  };
  use(in->rows, in->tokens * in->rowBytes, false);
  use(out->rows, out->maxRows * in->rowBytes, true);
  return Enqueue(experts, check, queue, std::move(deferred));
}

xcclResult_t xcclCombine(const void* rows, void* sums, size_t elements, xcclDataType_t type,
                         xcclExpertRows_t of, xcclExperts_t experts, xcclStream_t stream) {
  const auto check = [&](const Experts& on) -> Status {
    if (static_cast<size_t>(type) >= xcclNumTypes)
      return UsageError(fmt::format("data type {}; expected 0 to 11", static_cast<int>(type)));
    if (static_cast<size_t>(of) > xcclRows)
      return UsageError(fmt::format("combine: rows of kind {}; expected 0 to 2", static_cast<int>(of)));
    const size_t most = kMostRow / static_cast<size_t>(xccl::SizeOf(static_cast<DataType>(type)));
    if (elements > most)
      return UsageError(fmt::format("combine: {} elements; expected at most {}", elements, most));
    XCCL_RETURN_IF_ERROR(xccl::dispatch::CheckCombineType(static_cast<DataType>(type)));
    if (on.loaded->gpus == nullptr || elements == 0) return OkStatus();
    return xccl::c_api::CheckCombineOnGpu(*on.loaded, rows, sums, elements, static_cast<DataType>(type));
  };
  const auto queue = [=](Comm& on, const std::shared_ptr<Experts>& with) -> Status {
    if (!with->tokens)
      return InvalidInput("combine: the handle has no ways; expected a dispatch with it before");
    if (sums == nullptr && elements > 0 && *with->tokens > 0) return UsageError("combine: the sums are null");
    const auto add = static_cast<DataType>(type);
    const size_t row_bytes = elements * static_cast<size_t>(xccl::SizeOf(add));
    if (with->loaded->gpus != nullptr) {
      if (elements == 0) return OkStatus();
      XCCL_RETURN_IF_ERROR(CheckApartOnGpu(with->loaded->plan.sizes, rows, sums, *with->tokens, row_bytes,
                                           static_cast<Outputs>(of)));
      return LaunchCounted(on, *with, /*combines=*/true, row_bytes, *with->tokens, [&] {
        return xccl::c_api::CombineOnGpu(*with, rows, sums, elements, add, static_cast<Outputs>(of), stream);
      });
    }
    return EnqueueCounted(on, with, /*combines=*/true, row_bytes, [=](Limit limit) {
      return RunCombine(*with, rows, sums, row_bytes, elements, add, static_cast<Outputs>(of), limit);
    });
  };
  xccl::c_api::GroupCall deferred;
  deferred.name = "combine";
  return Enqueue(experts, check, queue, std::move(deferred));
}
