// The steps: all learn of all devices; the process of a team's lowest rank creates, the others import; all
// join; all bind and map. After each step every process tells all, for every team, why it cannot go on, or
// nothing.
#include "runtime/cuda/switches.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace xccl::cuda {
namespace {

constexpr int32_t kSwitchArch = 90;  // from which on kernels have multimem instructions

// Travels between processes of one build.
struct Facts {
  int32_t rank = 0;
  int32_t multicast = 0;
  char uuid[16] = {};
};
// A rank's device, with the process that it is in.
struct Place {
  Facts facts;
  int32_t party = -1;
};

// The reason against the switch, by team; "": there is none.
using Reasons = std::vector<std::string>;

Parcel Pack(const Reasons& reasons) {
  Parcel parcel;
  for (const std::string& reason : reasons) AppendText(parcel, reason);
  return parcel;
}
void Merge(ParcelReader& reader, Reasons& reasons) {
  for (std::string& reason : reasons) {
    const std::string theirs = reader.Text();
    if (reason.empty()) reason = theirs;
  }
}
// Afterwards all processes have the same.
Status AgreeOn(const Exchange& exchange, Reasons& reasons) {
  XCCL_ASSIGN_OR_RETURN(std::vector<Parcel> all, exchange.all(Pack(reasons)));
  Reasons agreed(reasons.size());
  for (Parcel& parcel : all) {
    ParcelReader reader(std::move(parcel));
    Merge(reader, agreed);
  }
  reasons = std::move(agreed);
  return OkStatus();
}

std::string WhyNot(const Team& team, const std::vector<Place>& places) {
  for (size_t i = 0; i < team.ranks.size(); ++i) {
    const Facts& facts = places[team.ranks[i].index()].facts;
    for (size_t j = 0; j < i; ++j)
      if (std::memcmp(places[team.ranks[j].index()].facts.uuid, facts.uuid, sizeof facts.uuid) == 0)
        return fmt::format("ranks {} and {} share a device", team.ranks[j].value, team.ranks[i].value);
  }
  for (Rank r : team.ranks)
    if (places[r.index()].facts.multicast == 0)
      return fmt::format("the device of rank {} cannot multicast", r.value);
  return "";
}

void Keep(const Status& status, std::string& reason) {
  if (!status.ok() && reason.empty()) reason = status.message();
}

class Connector {
 public:
  Connector(const std::vector<Team>& teams, std::span<const SwitchRank> local, const Exchange& exchange)
      : teams_(teams), exchange_(exchange), reasons_(teams.size()), locals_(teams.size()) {
    made_.teams.resize(teams.size());
    for (size_t t = 0; t < teams.size(); ++t)
      for (const SwitchRank& rank : local)
        if (std::ranges::binary_search(teams[t].ranks, rank.rank)) locals_[t].push_back(&rank);
  }

  Status Learn(std::span<const SwitchRank> local, int32_t ranks, bool wanted) {
    Parcel facts;
    for (const SwitchRank& rank : local) {
      const GpuProperties& p = rank.gpu->properties();
      Facts own{rank.rank.value, 0, {}};
      own.multicast = wanted && p.multicast && p.arch >= kSwitchArch && rank.memory->handle() != 0 ? 1 : 0;
      std::memcpy(own.uuid, p.uuid.data(), std::min(sizeof own.uuid, p.uuid.size()));
      facts.bytes.append(reinterpret_cast<const char*>(&own), sizeof own);
    }
    XCCL_ASSIGN_OR_RETURN(const std::vector<Parcel> all, exchange_.all(std::move(facts)));
    std::vector<Place> places(static_cast<size_t>(ranks));
    for (size_t p = 0; p < all.size(); ++p) {
      for (size_t at = 0; at + sizeof(Facts) <= all[p].bytes.size(); at += sizeof(Facts)) {
        Facts theirs;
        std::memcpy(&theirs, all[p].bytes.data() + at, sizeof theirs);
        if (theirs.rank >= 0 && theirs.rank < ranks)
          places[static_cast<size_t>(theirs.rank)] = {theirs, static_cast<int32_t>(p)};
      }
    }
    for (size_t t = 0; t < teams_.size(); ++t) {
      reasons_[t] = WhyNot(teams_[t], places);
      creators_.push_back(places[teams_[t].ranks[0].index()].party);
    }
    return OkStatus();
  }

  // The parcel holds, for every team, the reason against it. For every team that this process made, it then
  // says how to import the object.
  Status Create() {
    Parcel handles;
    for (size_t t = 0; t < teams_.size(); ++t) {
      if (!reasons_[t].empty() || creators_[t] != exchange_.party) continue;
      const SwitchRank& first = *locals_[t][0];
      StatusOr<MulticastMemory> memory =
          MulticastMemory::Create(first.gpu, static_cast<int32_t>(teams_[t].ranks.size()),
                                  static_cast<size_t>(teams_[t].bytes), first.memory->sharing());
      StatusOr<Parcel> exported = memory.ok() ? memory->Export() : StatusOr<Parcel>(memory.status());
      Keep(exported.status(), reasons_[t]);
      if (!exported.ok()) continue;
      made_.teams[t] = *std::move(memory);
      AppendNumber(handles, t);
      AppendParcel(handles, *std::move(exported));
    }
    Parcel mine = Pack(reasons_);
    mine.bytes += handles.bytes;
    mine.files = std::move(handles.files);
    XCCL_ASSIGN_OR_RETURN(std::vector<Parcel> all, exchange_.all(std::move(mine)));
    for (size_t p = 0; p < all.size(); ++p) {
      ParcelReader reader(std::move(all[p]));
      Merge(reader, reasons_);
      if (static_cast<int32_t>(p) != exchange_.party) Import(reader);
    }
    return OkStatus();
  }

  Status Join() {
    for (size_t t = 0; t < teams_.size(); ++t) {
      if (!locals_[t].empty() && !made_.teams[t])
        Keep(BugError("cuda: no multicast object came"), reasons_[t]);
      for (const SwitchRank* rank : locals_[t])
        if (reasons_[t].empty()) Keep(made_.teams[t]->Join(*rank->gpu), reasons_[t]);
    }
    return AgreeOn(exchange_, reasons_);
  }

  Status Bind() {
    for (size_t t = 0; t < teams_.size(); ++t) {
      std::vector<std::shared_ptr<const Gpu>> gpus;
      for (const SwitchRank* rank : locals_[t]) {
        gpus.push_back(rank->gpu);
        const auto region = static_cast<size_t>(*rank->regions[t]);
        if (reasons_[t].empty()) Keep(made_.teams[t]->Bind(rank->gpu, *rank->memory, region), reasons_[t]);
      }
      if (reasons_[t].empty() && !gpus.empty()) Keep(made_.teams[t]->Map(gpus), reasons_[t]);
    }
    return AgreeOn(exchange_, reasons_);
  }

  Switches Take() {
    for (size_t t = 0; t < teams_.size(); ++t) {
      if (reasons_[t].empty()) continue;
      made_.teams[t].reset();
      if (made_.why_not.empty() && !locals_[t].empty()) made_.why_not = reasons_[t];
    }
    return std::move(made_);
  }

 private:
  void Import(ParcelReader& reader) {
    while (!reader.AtEnd()) {
      const size_t t = reader.Number();
      const Parcel one = reader.One();
      if (t >= teams_.size() || locals_[t].empty()) continue;
      StatusOr<MulticastMemory> memory = MulticastMemory::Import(locals_[t][0]->gpu, one);
      Keep(memory.status(), reasons_[t]);
      if (memory.ok()) made_.teams[t] = *std::move(memory);
    }
  }

  const std::vector<Team>& teams_;
  const Exchange& exchange_;
  Reasons reasons_;
  std::vector<std::vector<const SwitchRank*>> locals_;  // by team: this process's ranks
  std::vector<int32_t> creators_;                       // by team: the party
  Switches made_;
};

}  // namespace

StatusOr<Switches> ConnectSwitches(const std::vector<Team>& teams, std::span<const SwitchRank> local,
                                   int32_t ranks, bool wanted, const Exchange& exchange) {
  Connector connector(teams, local, exchange);
  XCCL_RETURN_IF_ERROR(connector.Learn(local, ranks, wanted));
  XCCL_RETURN_IF_ERROR(connector.Create());
  XCCL_RETURN_IF_ERROR(connector.Join());
  XCCL_RETURN_IF_ERROR(connector.Bind());
  return connector.Take();
}

}  // namespace xccl::cuda
