// What generated CUDA source includes.
#pragma once

#include "device/block.h"
