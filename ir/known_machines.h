// Machine models of the GPUs that NCCL and RCCL have figures for.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/machine_model.h"

namespace xccl {

MachineModel AmpereModel();     // A100: sm80 and the like
MachineModel HopperModel();     // H100, H200: sm90
MachineModel BlackwellModel();  // B200, GB200: sm100 and later
MachineModel Gb300Model();      // GB300: sm103
MachineModel Mi250xModel();     // MI250X, a die: gfx90a
MachineModel Mi300xModel();     // MI300X: gfx942

// Returns the models' names, sorted: "ampere", "b200" and so on. "b200" is another name of "blackwell".
std::span<const std::string_view> KnownMachineNames();
// Returns the model of a name; nullopt for any other.
std::optional<MachineModel> KnownMachine(std::string_view name);
// Returns the model of a GPU's architecture, such as "sm90" or "gfx942"; nullopt if there is none.
std::optional<MachineModel> MachineOfArch(std::string_view arch);
// Returns the name of a model to try for GPUs that have none: a model of the same maker's GPUs.
std::string_view ModelInstead(std::string_view arch);
// Returns why the GPUs of a topology have no model: "no machine model: the topology has no arch; hint: ...",
// or "no machine model of sm70; hint: ...". Returns no text if they have one.
std::string WhyNoModel(std::string_view arch);

}  // namespace xccl
