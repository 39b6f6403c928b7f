#include "ir/testing/programs.h"

#include <algorithm>
#include <cstring>

#include "ir/sizes.h"

namespace xccl {
namespace {

TopologySpec Gpus(int32_t ranks) {
  TopologySpec spec;
  spec.name = "test";
  spec.hosts.push_back({"h0"});
  for (int32_t r = 0; r < ranks; ++r)
    spec.nodes.push_back({NodeKind::kGpu, std::to_string(r), HostId(0), false, false});
  return spec;
}

Link Cable(int64_t from, int64_t to) { return {NodeId(from), NodeId(to), 50'000'000'000, 500'000, 0}; }

Topology Made(TopologySpec spec) {
  StatusOr<Topology> topology = Topology::Create(std::move(spec));
  XCCL_CHECK(topology.ok());
  return std::move(topology).value();
}

// For a part of a collective without sums: the member that holds it first, and the members that need it.
struct Copying {
  Rank from;
  std::vector<Rank> to;
};

Copying CopyingOf(const Collective& collective, ChunkId c) {
  std::vector<Holding> before, after;
  collective.Before(c, before);
  collective.After(c, after);
  Copying copying{before.front().rank, {}};
  for (const Holding& holding : after)
    if (holding.rank != copying.from) copying.to.push_back(holding.rank);
  return copying;
}

class Hand {
 public:
  Hand(const Collective& collective, const Topology& topology)
      : collective_(collective), topology_(topology), n_(collective.num_members()) {
    schedule_.num_chunks = collective.num_chunks();
  }

  void Send(ChunkId c, Rank src, Rank dst, TransferOp op, int32_t step) {
    if (src != dst) schedule_.Add(c, 1, src, dst, LinkBetween(topology_, src, dst), op, step);
  }
  Rank Member(int32_t i) const { return collective_.ranks()[static_cast<size_t>((i % n_ + n_) % n_)]; }
  int32_t IndexOf(Rank r) const { return *collective_.MemberIndex(r); }
  int32_t size() const { return n_; }

  // Broadcasts one chunk from `from` to `to`, from `step` on.
  void Spread(Algorithm algorithm, ChunkId c, Rank from, const std::vector<Rank>& to, int32_t step) {
    switch (algorithm) {
      case Algorithm::kDirect:
        for (Rank r : to) Send(c, from, r, TransferOp::kCopy, step);
        return;
      case Algorithm::kRing: {
        int32_t last = 0;  // the farthest member that needs it
        for (Rank r : to) last = std::max(last, (IndexOf(r) - IndexOf(from) + n_) % n_);
        for (int32_t i = 0; i < last; ++i)
          Send(c, Member(IndexOf(from) + i), Member(IndexOf(from) + i + 1), TransferOp::kCopy, step + i);
        return;
      }
      case Algorithm::kTree:
        for (int32_t have = 1, s = step; have < n_; have *= 2, ++s)
          for (int32_t i = 0; i < have && i + have < n_; ++i)
            Send(c, Member(IndexOf(from) + i), Member(IndexOf(from) + i + have), TransferOp::kCopy, s);
        return;
    }
  }

  // Reduces one chunk into `to`; returns the first step after it.
  int32_t Gather(Algorithm algorithm, ChunkId c, Rank to) {
    switch (algorithm) {
      case Algorithm::kDirect:
        for (Rank r : collective_.ranks()) Send(c, r, to, TransferOp::kReduce, 0);
        return 1;
      case Algorithm::kRing:
        for (int32_t i = 1; i < n_; ++i)
          Send(c, Member(IndexOf(to) + i), Member(IndexOf(to) + i + 1), TransferOp::kReduce, i - 1);
        return n_ - 1;
      case Algorithm::kTree: {
        int32_t span = 1, step = 0;
        while (span < n_) span *= 2;
        for (span /= 2; span >= 1; span /= 2, ++step)
          for (int32_t i = 0; i < span && i + span < n_; ++i)
            Send(c, Member(IndexOf(to) + i + span), Member(IndexOf(to) + i), TransferOp::kReduce, step);
        return step;
      }
    }
    return 0;
  }

  Schedule Take() {
    Normalize(schedule_);
    return std::move(schedule_);
  }

 private:
  const Collective& collective_;
  const Topology& topology_;
  const int32_t n_;
  Schedule schedule_;
};

double AsDouble(DataType type, const std::byte* at) {
  const auto load = [&](auto zero) {
    std::memcpy(&zero, at, sizeof(zero));
    return zero;
  };
  switch (type) {
    case DataType::kInt8:
      return load(int8_t());
    case DataType::kUint8:
      return load(uint8_t());
    case DataType::kInt32:
      return load(int32_t());
    case DataType::kUint32:
      return load(uint32_t());
    case DataType::kInt64:
      return static_cast<double>(load(int64_t()));
    case DataType::kUint64:
      return static_cast<double>(load(uint64_t()));
    case DataType::kHalf:
      return HalfToFloat(load(uint16_t()));
    case DataType::kFloat:
      return load(float());
    case DataType::kDouble:
      return load(double());
    case DataType::kBfloat16:
      return Bfloat16ToFloat(load(uint16_t()));
    case DataType::kFp8E4m3:
      return E4m3ToFloat(load(uint8_t()));
    case DataType::kFp8E5m2:
      return E5m2ToFloat(load(uint8_t()));
  }
  return 0;
}

void FromDouble(DataType type, double value, std::byte* at) {
  const auto store = [&](auto number) { std::memcpy(at, &number, sizeof(number)); };
  switch (type) {
    case DataType::kInt8:
      return store(static_cast<int8_t>(value));
    case DataType::kUint8:
      return store(static_cast<uint8_t>(value));
    case DataType::kInt32:
      return store(static_cast<int32_t>(value));
    case DataType::kUint32:
      return store(static_cast<uint32_t>(value));
    case DataType::kInt64:
      return store(static_cast<int64_t>(value));
    case DataType::kUint64:
      return store(static_cast<uint64_t>(value));
    case DataType::kHalf:
      return store(FloatToHalf(static_cast<float>(value)));
    case DataType::kFloat:
      return store(static_cast<float>(value));
    case DataType::kDouble:
      return store(value);
    case DataType::kBfloat16:
      return store(FloatToBfloat16(static_cast<float>(value)));
    case DataType::kFp8E4m3:
      return store(FloatToE4m3(static_cast<float>(value)));
    case DataType::kFp8E5m2:
      return store(FloatToE5m2(static_cast<float>(value)));
  }
}

// Small whole numbers, whose sums over 8 ranks are exact in the type.
double ExactValue(const InterpretOptions& options, int32_t members, Rank r, int64_t element) {
  const int64_t mixed = (r.value * 5 + element * 3 + r.value * element) % 7;
  switch (options.op) {
    case ReduceOp::kSum:
      // fp8 e5m2 counts exactly up to 8, so its values are 0 or 1.
      return SizeOf(options.type) == 1 && IsFloating(options.type) ? static_cast<double>(mixed % 2) : mixed;
    case ReduceOp::kProd:
      return mixed < 2 ? 2 : 1;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return static_cast<double>(mixed);
    case ReduceOp::kAvg:
      // Each contribution must survive the division by n, so it is 0 or n.
      return static_cast<double>(members * (mixed % 2));
  }
  return 0;
}

double Reduced(const InterpretOptions& options, const std::vector<double>& values, int32_t members) {
  double result = values.front();
  for (size_t i = 1; i < values.size(); ++i) {
    switch (options.op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        result += values[i];
        break;
      case ReduceOp::kProd:
        result *= values[i];
        break;
      case ReduceOp::kMin:
        result = std::min(result, values[i]);
        break;
      case ReduceOp::kMax:
        result = std::max(result, values[i]);
        break;
    }
  }
  return options.op == ReduceOp::kAvg ? result / members : result;
}

}  // namespace

std::string_view ToString(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kTree:
      return "tree";
  }
  return "";
}

Topology FullMesh(int32_t ranks) {
  TopologySpec spec = Gpus(ranks);
  for (int32_t a = 0; a < ranks; ++a)
    for (int32_t b = 0; b < ranks; ++b)
      if (a != b) spec.links.push_back(Cable(a, b));
  return Made(std::move(spec));
}

Topology OneSwitch(int32_t ranks) {
  TopologySpec spec = Gpus(ranks);
  spec.nodes.push_back({NodeKind::kSwitch, "s", HostId(0), false, false});
  for (int32_t r = 0; r < ranks; ++r) {
    spec.links.push_back(Cable(r, ranks));
    spec.links.push_back(Cable(ranks, r));
  }
  return Made(std::move(spec));
}

Topology RingOf(int32_t ranks) {
  TopologySpec spec = Gpus(ranks);
  const int32_t cables = ranks == 2 ? 1 : ranks == 1 ? 0 : ranks;
  for (int32_t r = 0; r < cables; ++r) {
    spec.links.push_back(Cable(r, (r + 1) % ranks));
    spec.links.push_back(Cable((r + 1) % ranks, r));
  }
  return Made(std::move(spec));
}

Collective MakeCollective(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  const std::vector<int64_t> pattern = {1, 2, 0, 3};
  int64_t counts = 0;
  if (kind == CollectiveKind::kAllgatherv || kind == CollectiveKind::kReduceScatterv) counts = ranks;
  if (kind == CollectiveKind::kAlltoallv) counts = ranks * ranks;
  for (int64_t i = 0; i < counts; ++i) spec.counts.push_back(pattern[static_cast<size_t>(i % 4)]);
  if (IsRooted(kind)) spec.root = Rank(ranks / 2);
  if (kind == CollectiveKind::kSendrecv)
    for (int32_t r = 0; r + 1 < ranks; ++r) spec.pairs.emplace_back(Rank(r), Rank(r + 1));
  StatusOr<Collective> made = Collective::Create(std::move(spec));
  XCCL_CHECK(made.ok());
  return std::move(made).value();
}

Path LinkBetween(const Topology& topology, Rank src, Rank dst) {
  const NodeId from = topology.NodeOf(src), to = topology.NodeOf(dst);
  for (LinkId l : topology.Out(from)) {
    const NodeId middle = topology.link(l).to;
    if (middle == to) return {l};
    if (topology.IsGpu(middle)) continue;
    for (LinkId second : topology.Out(middle))
      if (topology.link(second).to == to) return {l, second};
  }
  XCCL_CHECK(false);
  return {};
}

std::optional<Schedule> HandSchedule(Algorithm algorithm, const Collective& collective,
                                     const Topology& topology) {
  Hand hand(collective, topology);
  for (int32_t i = 0; i < collective.num_chunks(); ++i) {
    const ChunkId c(i);
    if (collective.AlwaysEmpty(c)) continue;
    if (!collective.Reduces()) {
      const Copying copying = CopyingOf(collective, c);
      hand.Spread(algorithm, c, copying.from, copying.to, 0);
      continue;
    }
    std::vector<Holding> after;
    collective.After(c, after);
    // Chunks of an allreduce are summed at the ranks in turn.
    const Rank owner = after.size() == 1 ? after.front().rank : hand.Member(i);
    const int32_t step = hand.Gather(algorithm, c, owner);
    if (after.size() == 1) continue;
    std::vector<Rank> others;
    for (const Holding& holding : after)
      if (holding.rank != owner) others.push_back(holding.rank);
    hand.Spread(algorithm, c, owner, others, step);
  }
  return hand.Take();
}

std::vector<std::vector<std::byte>> ExactInputs(const Program& program, const Collective& collective,
                                                const InterpretOptions& options) {
  const int64_t element_bytes = SizeOf(options.type);
  const CollectiveSizes sizes(collective, options.size_bytes, element_bytes);
  std::vector<std::vector<std::byte>> inputs(static_cast<size_t>(program.ranks.size()));
  for (Rank r : collective.ranks()) {
    const BufferLayout layout = LayoutOf(program, collective, sizes, r, BufferKind::kInput);
    std::vector<std::byte>& bytes = inputs[r.index()];
    bytes.resize(static_cast<size_t>(layout.elements * element_bytes));
    for (int64_t e = 0; e < layout.elements; ++e)
      FromDouble(options.type, ExactValue(options, collective.num_members(), r, e),
                 &bytes[static_cast<size_t>(e * element_bytes)]);
  }
  return inputs;
}

std::vector<std::vector<std::byte>> ExpectedOutputs(const Program& program, const Collective& collective,
                                                    const std::vector<std::vector<std::byte>>& inputs,
                                                    const InterpretOptions& options) {
  const int64_t element_bytes = SizeOf(options.type);
  const CollectiveSizes sizes(collective, options.size_bytes, element_bytes);
  std::vector<std::vector<std::byte>> outputs(static_cast<size_t>(program.ranks.size()));
  std::vector<BufferLayout> in(outputs.size()), out(outputs.size());
  for (Rank r : collective.ranks()) {
    in[r.index()] = LayoutOf(program, collective, sizes, r, BufferKind::kInput);
    out[r.index()] = LayoutOf(program, collective, sizes, r, BufferKind::kOutput);
    outputs[r.index()].assign(static_cast<size_t>(out[r.index()].elements * element_bytes), std::byte{0xCB});
  }
  const auto begin_of = [](const BufferLayout& layout, ChunkId c) {
    const auto at = std::find(layout.chunk.begin(), layout.chunk.end(), c);
    return layout.begin[static_cast<size_t>(at - layout.chunk.begin())];
  };
  std::vector<Holding> after;
  for (int32_t i = 0; i < collective.num_chunks(); ++i) {
    const ChunkId c(i);
    collective.After(c, after);
    for (const Holding& holding : after) {
      for (int64_t e = 0; e < sizes.ChunkElements(c); ++e) {
        std::vector<double> values;
        for (Rank source : holding.contributions) {
          const int64_t at = (begin_of(in[source.index()], c) + e) * element_bytes;
          values.push_back(AsDouble(options.type, &inputs[source.index()][static_cast<size_t>(at)]));
        }
        const double value =
            collective.Reduces() ? Reduced(options, values, collective.num_members()) : values.front();
        const int64_t to = (begin_of(out[holding.rank.index()], c) + e) * element_bytes;
        FromDouble(options.type, value, &outputs[holding.rank.index()][static_cast<size_t>(to)]);
      }
    }
  }
  return outputs;
}

}  // namespace xccl
