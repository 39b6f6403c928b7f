// Machine models of the GPUs that NCCL has figures for.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/machine_model.h"

namespace xccl {

MachineModel AmpereModel();     // A100: sm80 and the like
MachineModel HopperModel();     // H100, H200: sm90
MachineModel BlackwellModel();  // B200, GB200: sm100 and later

// The models' names, sorted: "ampere", "blackwell", "hopper".
std::span<const std::string_view> KnownMachineNames();
// The model of a name; absent for any other.
std::optional<MachineModel> KnownMachine(std::string_view name);
// The model of a GPU's architecture, as "sm90"; absent where there is none.
std::optional<MachineModel> MachineOfArch(std::string_view arch);

}  // namespace xccl
